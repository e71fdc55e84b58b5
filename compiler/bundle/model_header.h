// The header of a program without a runtime: C99, usable from C++, requires only <stdint.h>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/static_program.h"

namespace quernel::bundle {

// Known facts about the code; the header omits them if there are none.
struct CodeFacts {
  uint64_t code_bytes = 0;      // of kernels, run functions and their tables
  uint64_t overhead_bytes = 0;  // the part that is neither a kernel nor a kernel's table
  uint64_t stack_bytes = 0;     // the maximum over calls of the header's functions
  // The program is C code: the facts are estimates from machine code for the same target. The stack is at
  // least that of the C arrays.
  bool estimated = false;
};

// Declares the memory struct, and per entry point the structs of inputs and outputs and the run function,
// with macros for sizes and shapes. `form`: names in a few words what defines the functions ("digits.a").
std::string model_header(const codegen::StaticProgram& program, const std::string& form,
                         const std::optional<CodeFacts>& facts);

}  // namespace quernel::bundle
