// A loop pass for processors with few registers.
#pragma once

#include <llvm/IR/PassManager.h>

namespace quernel::codegen {

// Lets the loads of a sum read from few pointers that advance from step to step, and ends the loop by comparing
// one of them with its last value. Loads whose addresses differ by a constant share a pointer, as far as the
// offset fits the instruction. In an outer loop a pointer goes on from where the inner loop has left it, and so
// do loads behind the loop of what follows in memory. LLVM's strength reduction computes addresses from counters
// instead, which needs more registers than are left next to the accumulators. Leaves alone: loops that store, and
// addresses that are not linear in the counter.
class AdvancePointersPass : public llvm::PassInfoMixin<AdvancePointersPass> {
 public:
  // `reach`: the largest offset of a load.
  explicit AdvancePointersPass(int64_t reach) : reach_(reach) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  int64_t reach_;
};

}  // namespace quernel::codegen
