// The optimisation pipeline of one module and its translation to machine code.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace quernel::codegen {

// What O3 does for code that loop IR has already unrolled and vectorised, less unrolling, vectorisers and the
// recognition of library idioms.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

// False if the target cannot emit this kind of file.
bool emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                       llvm::SmallVectorImpl<char>& out);

}  // namespace quernel::codegen
