// The C functions and macros called by printed kernels and elementary functions
// (codegen/llvm/elementary_functions.h): bits of floats, roots, fused multiply-adds. They need no library.
#pragma once

#include <string>
#include <string_view>

namespace quernel::codegen {

// Returns the requirements on the C compiler, which are checked when it compiles the file.
std::string_view c_requirements();
// Returns the definitions of the functions that `text` calls, in an order valid in C.
std::string c_prelude_for(const std::string& text);

}  // namespace quernel::codegen
