// LLVM functions and what they need as C99 or GLSL text: straight-line arithmetic on scalars, loops, tables of
// constants. It is meant for what KernelEmitter makes of single operations, not for whole kernels.
#pragma once

#include <llvm/ADT/APInt.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>

#include <string>

#include "codegen/text/language.h"
#include "support/expected.h"

namespace quernel::codegen {

// The name of a scalar type, or of a struct of them. Integers are unsigned; a bit is C's int and GLSL's bool,
// integers of 8 and 16 bits are GLSL's uint with zeros above.
std::string type_of(const llvm::Type& type, TextLanguage language);
std::string unsigned_number(const llvm::APInt& value, TextLanguage language);
// `name`: what the function is called; functions that it calls keep their own names after `prefix`.
Expected<std::string> print_function(const llvm::Function& function, const std::string& name,
                                     const std::string& prefix, TextLanguage language);
// The definition of a struct that functions return.
std::string print_struct(const llvm::Type& type, TextLanguage language);
// A table of constants.
Expected<std::string> print_table(const llvm::GlobalVariable& table, const std::string& prefix,
                                  TextLanguage language);
// The pass that diagnostics name.
const char* pass_of(TextLanguage language);

}  // namespace quernel::codegen
