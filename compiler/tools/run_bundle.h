// Runs a bundle once on given inputs: in this process, or by another quernel-run, such as one for another
// processor under an emulator.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tensor_file.h"

namespace quernel::tools {

struct RunRequest {
  std::string bundle;
  std::vector<tensor_file::HostTensor> inputs;  // each with the name of an input
  int threads = 1;
  // The command that starts quernel-run, words apart by spaces: "qemu-aarch64 ./quernel-run"; empty: in this
  // process.
  std::string runner;
  std::string scratch_dir;  // for the files of a runner
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
