// A loop pass for processors with few registers, or whose instructions take longer with two registers in an address.
#pragma once

#include <llvm/IR/PassManager.h>

namespace quernel::codegen {

// Lets the loads of a sum read from few pointers that advance from step to step, and ends the loop by comparing
// one of them with its last value. Loads whose addresses differ by a constant share a pointer, as far as the
// offset fits the instruction. In an outer loop a pointer goes on from where the inner loop has left it, and so
// do loads behind the loop of what follows in memory. LLVM's strength reduction computes addresses from counters
// instead, which needs more registers than are left next to the accumulators, or has two in an address: Intel's cores split
// a multiply-add with such an operand in two, and the front end, which two threads of a core share, then limits it. A product
// of 64 rows with 4-bit weights took 1.07 to 0.78 ms on an Emerald Rapids core with a busy sibling, 0.68 to 0.59 beside a quieter one.
// Leaves alone: loops that store, and addresses that are not linear in the counter.
class AdvancePointersPass : public llvm::PassInfoMixin<AdvancePointersPass> {
 public:
  // `reach`: the largest offset of a load. `fewest_loads`: that a pointer is worth; the loop then keeps its counter.
  AdvancePointersPass(int64_t reach, size_t fewest_loads) : reach_(reach), fewest_loads_(fewest_loads) {}
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

 private:
  int64_t reach_;
  size_t fewest_loads_;
};

}  // namespace quernel::codegen
