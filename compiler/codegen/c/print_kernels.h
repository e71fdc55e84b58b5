// Prints loop-IR kernels as C99: the same schedule and the same operations, in the same order, as machine
// code.
#pragma once

#include <string>
#include <vector>

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

// The definition of a kernel's function.
struct CFunction {
  std::string name, linkage;  // "digits_kernel_0", "static "
  // By binding: in no call does the buffer overlap another one of which either is written. Such pointers are
  // `restrict`. Empty: none is known not to.
  std::vector<bool> without_overlap;
};

struct CKernel {
  std::string text;            // the function's definition
  uint64_t scratch_bytes = 0;  // not 0: the function has a last parameter, `unsigned char* scratch`
  uint64_t array_bytes = 0;    // the most bytes of arrays on the stack at once
};

struct CKernels {
  // The functions that kernels call; needs <stdint.h>.
  std::string prelude;
  std::vector<CKernel> kernels;
};

// Prints the functions `LINKAGE void NAME(bindings…, symbols…)`, one per kernel, each of which runs the whole
// grid. Requires kernels after loop/passes. Unsupported: what check_kernel refuses.
Expected<CKernels> print_kernels(const std::vector<loop::Kernel>& kernels, const Target& target,
                                 const std::vector<CFunction>& functions);

}  // namespace quernel::codegen
