// Prints LLVM functions and what they need as C99 or GLSL text: straight-line arithmetic on scalars, loops,
// tables of constants. Meant for KernelEmitter's code of single operations, not for whole kernels.
#pragma once

#include <llvm/ADT/APInt.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>

#include <string>

#include "codegen/text/language.h"
#include "support/expected.h"

namespace quernel::codegen {

// Returns the name of a scalar type, or of a struct of scalars. Integers are unsigned. A bit is C's int and
// GLSL's bool; 8-bit and 16-bit integers are GLSL's uint with zeros above.
std::string type_of(const llvm::Type& type, TextLanguage language);
std::string unsigned_number(const llvm::APInt& value, TextLanguage language);
// `name`: the function's name in the text. Functions that it calls keep their names, after `prefix`.
Expected<std::string> print_function(const llvm::Function& function, const std::string& name,
                                     const std::string& prefix, TextLanguage language);
// Returns the definition of a struct that functions return.
std::string print_struct(const llvm::Type& type, TextLanguage language);
// Returns a table of constants.
Expected<std::string> print_table(const llvm::GlobalVariable& table, const std::string& prefix,
                                  TextLanguage language);
// Returns the pass named in diagnostics.
const char* pass_of(TextLanguage language);

}  // namespace quernel::codegen
