// A program without a runtime as C99: run functions, kernels, constants, and static memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/static_program.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

// Texts of C files; all but `memory` together are the program.
struct CProgram {
  std::string program;  // kernels and run functions
  std::string weights;  // constants, which `program` refers to; empty where there are none
  std::string memory;   // static memory, for who wants it
  // The most that arrays in functions of `program` take of the stack at once; a C compiler adds what it
  // saves.
  uint64_t array_bytes = 0;
};

// `kernels` are those of the program, in its order, and have been through loop/passes; their scratch is lent
// as the program says. `header`: the file that declares the program's functions, as bundle/model_header
// writes it. Unsupported: what print_kernels refuses.
Expected<CProgram> print_program(const StaticProgram& program, const std::vector<loop::Kernel>& kernels,
                                 const Target& target, const std::string& header);

}  // namespace quernel::codegen
