// Runs a bundle once on given inputs: in this process, or by a quernel-run on a device.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "device_runner.h"
#include "open_device.h"
#include "tensor_file.h"

namespace quernel::tools {

struct RunRequest {
  std::string bundle;
  std::vector<tensor_file::HostTensor> inputs;  // each with the name of an input
  run::DeviceChoice device;
  DeviceRunner* runner = nullptr;  // null: in this process
  std::string folder;              // of the device, for the files of this run
  std::string scratch_dir;         // of this machine, for the same
  double timeout_seconds = 0;      // of a runner
  // Inputs of runs before, on the same session or with the states that each left.
  std::vector<std::vector<tensor_file::HostTensor>> earlier;
};

struct RunFailure {
  bool unsupported = false;  // a custom op is missing
  std::string reason;        // one line
};

// The outputs by the names of the bundle's signature, in its order, or why there are none.
std::variant<std::vector<tensor_file::HostTensor>, RunFailure> run_bundle(const RunRequest& request);

struct BundleInput {
  std::string name;
  qnl_dtype dtype = QNL_F32;
};
// In order; none where the bundle cannot be read, which running it tells.
std::vector<BundleInput> inputs_of(const std::string& bundle);

}  // namespace quernel::tools
