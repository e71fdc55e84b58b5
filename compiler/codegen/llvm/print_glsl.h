// LLVM functions as GLSL text, as print_c.h makes C of them.
#pragma once

#include <llvm/IR/Function.h>

#include <string>

#include "support/expected.h"

namespace quernel::codegen {

// GLSL's name of a scalar type: a bit is a bool, integers are unsigned, those of 8 and 16 bits a uint with
// zeros above.
std::string glsl_type_of(const llvm::Type& type);
// `name`: what the function is called; functions that it calls keep their own names after `prefix`.
Expected<std::string> print_glsl(const llvm::Function& function, const std::string& name,
                                 const std::string& prefix);
// A table of constants.
Expected<std::string> print_glsl(const llvm::GlobalVariable& table, const std::string& prefix);

}  // namespace quernel::codegen
