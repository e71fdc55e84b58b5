// quernel-run BUNDLE… --test: runs the test vectors of several bundles on one device, which is opened once.
#pragma once

#include <string>
#include <vector>

#include "open_device.h"
#include "run_tests.h"

namespace quernel::run {

struct BundlesOptions {
  std::vector<std::string> bundles;
  DeviceChoice device;  // not auto, which chooses for one bundle
  bool verify_weights = false;
  TestOptions tests;  // bundle, device, messages and stops_at_fault are set for each bundle
};

constexpr int kDeviceLost = 3;

// Prints what run_tests prints of each bundle in turn; with JSON an object on a line of its own, which begins with the
// bundle's name, or says why the bundle could not run: {"bundle": "a.qnl", "error": "…"}. A line is complete before the
// next bundle is opened, so that the lines of a process that dies say how far it came. Returns the exit status: 0 if
// all pass, 1 if one fails, kDeviceLost if later bundles have not run because the device was lost.
int run_bundles(BundlesOptions options);

// Returns the first member of such an object, "bundle": "a.qnl", with the comma after it.
std::string json_bundle(const std::string& path);

}  // namespace quernel::run
