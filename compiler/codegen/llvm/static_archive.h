// A program without a runtime as a static library for a linker: kernels, run functions, constants, and static
// memory in a separate member.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/static_program.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct StaticArchive {
  std::string bytes;                 // an ar archive; equal input gives equal bytes
  uint64_t kernel_bytes = 0;         // code and tables of kernels
  uint64_t overhead_bytes = 0;       // other code and tables
  uint64_t stack_bytes = 0;          // the maximum over run functions, kernels included
  std::vector<std::string> helpers;  // arithmetic functions of the compiler's library that the code calls
};

// Requires objects that define the symbols of program.kernels. Unsupported: code that needs external symbols
// other than the platform ABI's arithmetic helpers; constants beyond 1 GiB.
Expected<StaticArchive> static_archive(const StaticProgram& program, const std::vector<std::string>& kernels,
                                       const Target& target, bool optimize);

}  // namespace quernel::codegen
