// LLVM IR as text for comparison: the functions of a module as they are emitted, without what depends on
// LLVM's version or the host.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

namespace quernel::codegen {

// Returns the definitions of all functions. Values without a name are named after the memory they come from,
// or after their instruction, and numbered per name: a new value changes few numbers. A comment replaces each
// instruction's metadata: its kinds and names. Renames values and removes metadata: `module` must not be used
// for anything else afterwards.
std::string emitted_text(llvm::Module& module);

}  // namespace quernel::codegen
