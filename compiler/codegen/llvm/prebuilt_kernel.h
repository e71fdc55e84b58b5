// Kernels that somebody else has compiled: object files that are linked into an image beside the generated
// ones.
#pragma once

#include <string>
#include <vector>

#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct PrebuiltKernel {
  std::string name;    // of the kernel, in the bundle
  std::string symbol;  // a qnl_kernel_fn in the object
  std::string path;    // of the object, for diagnostics
  std::string object;  // a relocatable ELF file
};

// Invalid input where an object is not one for the target, lacks its function, needs something outside of it,
// keeps state, or has a global name that another object has.
Status check_prebuilt_kernels(const std::vector<PrebuiltKernel>& kernels, const Target& target);

}  // namespace quernel::codegen
