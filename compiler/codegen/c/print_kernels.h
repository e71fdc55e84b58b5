// Loop IR kernels as C99: the same schedule and the same operations, in the same order, as machine code has.
#pragma once

#include <string>
#include <vector>

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

// How a kernel is to be defined.
struct CFunction {
  std::string name, linkage;  // "digits_kernel_0", "static "
  // What is written overlaps no other buffer in any call: pointers are `restrict`.
  bool without_overlap = false;
};

struct CKernel {
  std::string text;            // the function's definition
  uint64_t scratch_bytes = 0;  // not 0: the function has a last parameter, `unsigned char* scratch`
  uint64_t array_bytes = 0;    // of the arrays that the function has on the stack at once
};

struct CKernels {
  // What kernels call; needs <stdint.h>.
  std::string prelude;
  std::vector<CKernel> kernels;
};

// The functions are `LINKAGE void NAME(bindings…, symbols…)` and run the whole grid; there is one for every
// kernel. The kernels must have been through loop/passes. Unsupported: what check_kernel refuses.
Expected<CKernels> print_kernels(const std::vector<loop::Kernel>& kernels, const Target& target,
                                 const std::vector<CFunction>& functions);

}  // namespace quernel::codegen
