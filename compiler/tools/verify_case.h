// One case of `quernel verify`: a model with its data sets is compiled, run and compared. Runs in a process
// of its own, since compiler, kernels and runtime are all under test.
#pragma once

#include <optional>
#include <string>

#include "compile_flags.h"
#include "device_runner.h"
#include "open_device.h"

namespace quernel::tools {

enum class Verdict : char { kPass = 'P', kFail = 'F', kUnsupported = 'U' };

struct CaseResult {
  Verdict verdict = Verdict::kFail;
  std::string reason;    // one line; of a pass, how many data sets
  bool differs = false;  // failed because of an output's values
};

struct CaseOptions {
  CompileOptions compile;
  run::DeviceChoice device;
  DeviceRunner* runner = nullptr;  // null: bundles run in this process
  std::string folder;              // of the device, private to the case
  std::string scratch_dir;         // private to the case; bundles are written there
  double timeout_seconds = 0;      // of a run on the device
  // With CompileOptions::precision: the share of an output's largest element that it may be off by.
  std::optional<double> precision_limit;
};

CaseResult verify_case(const std::string& dir, const CaseOptions& options);

}  // namespace quernel::tools
