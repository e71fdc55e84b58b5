// Prints a program without a runtime as C99: run functions, kernels, constants, and static memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/static_program.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

// Texts of C files. All except `memory` form the program.
struct CProgram {
  std::string program;  // kernels and run functions
  std::string weights;  // constants of `program`; empty if there are none
  std::string memory;   // static memory, for applications that use it
  // The most bytes of arrays in functions of `program` on the stack at once; a C compiler adds the registers
  // it saves.
  uint64_t array_bytes = 0;
};

// Requires the program's kernels in its order, after loop/passes; the program lends their scratch. `header`:
// the file that declares the program's functions, as bundle/model_header writes it. Unsupported: what
// print_kernels refuses.
Expected<CProgram> print_program(const StaticProgram& program, const std::vector<loop::Kernel>& kernels,
                                 const Target& target, const std::string& header);

}  // namespace quernel::codegen
