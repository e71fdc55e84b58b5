// The C functions and macros that printed kernels and elementary functions
// (codegen/llvm/elementary_functions.h) call: bits of floats, roots, fused multiply-adds. They need no
// library.
#pragma once

#include <string>
#include <string_view>

namespace quernel::codegen {

// What the C compiler must be, checked when it compiles the file.
std::string_view c_requirements();
// Definitions of those that `text` calls, in an order that C takes.
std::string c_prelude_for(const std::string& text);

}  // namespace quernel::codegen
