// Optimises one module and translates it to machine code.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/llvm/instruction_set.h"

namespace quernel::codegen {

// Runs O3 for code that loop IR has already unrolled and vectorised: without unrolling, vectorisers and the
// recognition of library idioms.
void optimize(llvm::Module& module, llvm::TargetMachine& machine, const InstructionSet& isa);

// Turns masked accesses of a single known lane into accesses of that element. LLVM 22.1 does so for x86
// during instruction selection, but it stores whole words if the lanes were truncated to 8 or 16 bits.
void scalarize_single_lanes(llvm::Module& module);

// The order of instructions: as LLVM's scheduler has it before it allocates registers, or as in LLVM IR.
enum class InstructionOrder { kScheduled, kAsInIr };

// Returns false if the target cannot emit this kind of file.
bool emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                       InstructionOrder order, llvm::SmallVectorImpl<char>& out);

}  // namespace quernel::codegen
