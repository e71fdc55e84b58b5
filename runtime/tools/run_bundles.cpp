#include "run_bundles.h"

#include <stdio.h>

#include "list_bundle.h"

namespace quernel::run {
namespace {

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Of a bundle that could not run.
void print_failure(const BundlesOptions& options, const std::string& path, const std::string& reason) {
  if (options.tests.json)
    printf("{%s\"error\": %s}\n", json_bundle(path).c_str(), json_string(reason.c_str()).c_str());
  else
    printf("FAIL %s: %s\n", shown(name_of(path).c_str()).c_str(), shown(reason.c_str()).c_str());
}

// Runs one bundle; false if it fails. *error says whether the device was lost.
bool run_bundle(const BundlesOptions& options, const std::string& path, OpenedDevice* opened,
                qnl_error* error) {
  qnl_bundle_options bundle_options = {};
  bundle_options.verify_weights = options.verify_weights;
  Bundle bundle;
  if (bundle.open(path.c_str(), &bundle_options, error) != QNL_OK) {
    print_failure(options, path, error_text(*error));
    return false;
  }
  qnl_device_info info;
  qnl_device_get_info(opened->device.get(), &info);
  TestOptions tests = options.tests;
  tests.bundle = path;
  tests.device = json_bundle(path) + "\"device\": " + json_string(info.name);
  tests.messages = &opened->messages;
  tests.stops_at_fault = true;
  if (!tests.json) printf("%s: ", shown(name_of(path).c_str()).c_str());
  int code = run_tests(bundle, opened->device, tests, error);
  if (error->status == QNL_DEVICE_FAULT) print_failure(options, path, error_text(*error));
  return code == 0;
}

}  // namespace

std::string json_bundle(const std::string& path) {
  return "\"bundle\": " + json_string(name_of(path).c_str()) + ", ";
}

int run_bundles(BundlesOptions options) {
  OpenedDevice opened;
  qnl_error error = {};
  if (opened.open(options.device, Bundle(), "", nullptr, &error) != QNL_OK) {
    fprintf(stderr, "quernel-run: %s\n", shown(error_text(error).c_str()).c_str());
    return 2;
  }
  int code = 0;
  for (const std::string& path : options.bundles) {
    error = {};
    if (!run_bundle(options, path, &opened, &error)) code = 1;
    if (!opened.messages.empty()) {
      fprintf(stderr, "quernel-run: %s\n", shown(opened.messages.c_str()).c_str());
      opened.messages.clear();
      code = 1;
    }
    fflush(stdout);
    if (error.status == QNL_DEVICE_FAULT) return kDeviceLost;
  }
  return code;
}

}  // namespace quernel::run
