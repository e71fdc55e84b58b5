// A loop pass for processors with few registers.
#pragma once

#include <llvm/IR/PassManager.h>

namespace quernel::codegen {

// Keeps each load of a 32-bit word in an innermost loop that stores nothing behind what is computed from the words
// before it, by a barrier for the compiler that is no instruction. Instruction selection would gather the loads of
// neighbouring words, which then wait in registers and displace accumulators. Words between whose loads nothing is
// computed stay neighbours. For targets that multiply words: others take them apart first, and keep their order.
// Requires that no scheduler orders the code again (InstructionOrder::kAsInIr).
class KeepLoadsApartPass : public llvm::PassInfoMixin<KeepLoadsApartPass> {
 public:
  static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace quernel::codegen
