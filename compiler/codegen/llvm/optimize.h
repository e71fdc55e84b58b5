// The optimisation pipeline of one module and its translation to machine code.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace quernel::codegen {

// What O3 does for code that loop IR has already unrolled and vectorised, less unrolling, vectorisers and the
// recognition of library idioms.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

// Masked accesses of one lane that is known become accesses of that element. LLVM 22.1 does so itself for x86
// when it selects instructions, but stores whole words where the lanes have been truncated to 8 or 16 bits.
void scalarize_single_lanes(llvm::Module& module);

// False if the target cannot emit this kind of file.
bool emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                       llvm::SmallVectorImpl<char>& out);

}  // namespace quernel::codegen
