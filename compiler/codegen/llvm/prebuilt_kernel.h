// Kernels compiled elsewhere: object files that are linked into an image next to the generated kernels.
#pragma once

#include <string>
#include <vector>

#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct PrebuiltKernel {
  std::string name;    // of the kernel in the bundle
  std::string symbol;  // a qnl_kernel_fn in the object
  std::string path;    // of the object, for diagnostics
  std::string object;  // a relocatable ELF file
};

// Invalid input: an object that is not for the target, lacks its function, needs an external symbol, keeps
// state, or has a global name of another object.
Status check_prebuilt_kernels(const std::vector<PrebuiltKernel>& kernels, const Target& target);

}  // namespace quernel::codegen
