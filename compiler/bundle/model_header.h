// The header of a program without a runtime: C99, usable from C++, needs <stdint.h> and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/static_program.h"

namespace quernel::bundle {

// What is known of the code; left out of the header where nothing is.
struct CodeFacts {
  uint64_t code_bytes = 0;      // of kernels, run functions and their tables
  uint64_t overhead_bytes = 0;  // of these, what is neither a kernel nor a kernel's table
  uint64_t stack_bytes = 0;     // the most that a call of a function of the header takes
  // The code is C: these are of machine code for the same target, and the stack no less than the C's arrays.
  bool estimated = false;
};

// Declares the memory struct, and per entry point the structs of inputs and outputs and the run function, all
// with macros for sizes and shapes. `form` says in a few words what defines the functions ("digits.a").
std::string model_header(const codegen::StaticProgram& program, const std::string& form,
                         const std::optional<CodeFacts>& facts);

}  // namespace quernel::bundle
