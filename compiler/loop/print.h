// The text form of kernels; parse.h reads it back to the same kernel. Shared subexpressions are printed once
// per use. Therefore print only kernels with bounded sharing, such as those of lowering and the passes.
#pragma once

#include <string>

#include "loop/ir.h"

namespace quernel::loop {

std::string to_string(const Kernel& kernel);
// Symbols are printed as `$NAME` with the kernel's names, else as `$INDEX`.
std::string to_string(const Expr& e, const std::vector<std::string>& symbols = {});
std::string to_string(Type type);  // "f32", "f32x16"
std::string_view to_string(AxisKind axis);
std::string_view to_string(Access access);
std::string_view to_string(Scope scope);

}  // namespace quernel::loop
