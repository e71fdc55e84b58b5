// quernel devices: what this machine has to run bundles on, as the runtime describes it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "command.h"
#include "description.h"
#include "print.h"
#include "quernel/runtime.hpp"

namespace quernel::tools {
namespace {

// The CPU, and each Vulkan device that can be opened; stderr says which cannot.
Expected<std::vector<std::string>> descriptions(qnl_text_form form) {
  std::vector<std::string> all;
  qnl_error error = {};
  Device cpu;
  if (cpu.open_cpu(1, &error) != QNL_OK) return invalid_input(error.text);
  all.push_back(describe(cpu.get(), form));
#ifdef QUERNEL_WITH_VULKAN
  uint32_t count = 0;
  if (qnl_vulkan_list(nullptr, 0, &count, &error) != QNL_OK) return all;  // no loader library or driver
  std::vector<qnl_vulkan_device_info> list(count);
  if (qnl_vulkan_list(list.data(), count, &count, &error) != QNL_OK) return all;
  for (uint32_t i = 0; i < count && i < list.size(); ++i) {
    std::string number = std::to_string(i);
    qnl_vulkan_options options = {};
    options.device = number.c_str();
    Device device;
    if (device.open_vulkan(&options, &error) == QNL_OK)
      all.push_back(describe(device.get(), form));
    else
      print_note("quernel devices: Vulkan device {} '{}' is left out: {}\n", i, list[i].name, error.text);
  }
#endif
  return all;
}

int run(bool json) {
  Expected<std::vector<std::string>> all = descriptions(json ? QNL_JSON : QNL_TEXT);
  if (!all) return fail(all.errors());
  for (size_t i = 0; i < all->size(); ++i)
    fmt::print("{}{}", json ? (i == 0 ? "[" : ",\n ") : (i == 0 ? "" : "\n"), (*all)[i]);
  if (json) print("]\n");
  return kOk;
}

}  // namespace

Action define_devices(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print a JSON array instead of text");
  return [json] { return run(*json); };
}

}  // namespace quernel::tools
