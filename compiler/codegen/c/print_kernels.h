// Loop IR kernels as C99: the same schedule and the same operations, in the same order, as machine code has.
#pragma once

#include <string>
#include <vector>

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct CKernel {
  std::string text;            // the function's definition
  uint64_t scratch_bytes = 0;  // not 0: the function has a last parameter, `unsigned char* scratch`
};

struct CKernels {
  // What kernels call; needs <stdint.h>.
  std::string prelude;
  std::vector<CKernel> kernels;
};

// The functions are `LINKAGE void NAME(bindings…, symbols…)` and run the whole grid; there is a name for
// every kernel. The kernels must have been through loop/passes. Unsupported: what check_kernel refuses.
Expected<CKernels> print_kernels(const std::vector<loop::Kernel>& kernels, const Target& target,
                                 const std::vector<std::string>& names, const std::string& linkage);

}  // namespace quernel::codegen
