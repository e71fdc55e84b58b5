// LLVM functions as C99 text: straight-line arithmetic on scalars, loops, tables of constants. It is meant
// for what KernelEmitter makes of single operations, not for whole kernels.
#pragma once

#include <llvm/IR/Function.h>

#include <string>

#include "support/expected.h"

namespace quernel::codegen {

// C's name of a scalar type: integers are unsigned, a bit is an int.
std::string c_type_of(const llvm::Type& type);
// `name`: what the function is called in C; functions that it calls keep their own names after `prefix`.
Expected<std::string> print_c(const llvm::Function& function, const std::string& name,
                              const std::string& prefix);
// A table of constants.
Expected<std::string> print_c(const llvm::GlobalVariable& table, const std::string& prefix);

}  // namespace quernel::codegen
