// The header of a program without a runtime: C99, usable from C++, needs <stdint.h> and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/static_program.h"

namespace quernel::bundle {

// What only generated machine code tells; left out of the header where it is not known.
struct CodeFacts {
  uint64_t code_bytes = 0;      // of kernels, run functions and their tables
  uint64_t overhead_bytes = 0;  // of these, what is neither a kernel nor a kernel's table
  uint64_t stack_bytes = 0;     // the most that a call of a function of the header takes
};

// Declares the memory struct, and per entry point the structs of inputs and outputs and the run function, all
// with macros for sizes and shapes. `form` says in a few words what defines the functions ("digits.a").
std::string model_header(const codegen::StaticProgram& program, const std::string& form,
                         const std::optional<CodeFacts>& facts);

}  // namespace quernel::bundle
