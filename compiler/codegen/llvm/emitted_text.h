// LLVM IR as text to compare: the functions of a module as they are emitted, without what depends on LLVM's
// version or the host.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

namespace quernel::codegen {

// The definitions of all functions. Values without a name are named after the memory they come from, or
// their instruction, and numbered per name: a new value moves few numbers. A comment replaces each instruction's metadata:
// the kinds and the names in them. Renames values and removes metadata: `module` is for nothing else after.
std::string emitted_text(llvm::Module& module);

}  // namespace quernel::codegen
