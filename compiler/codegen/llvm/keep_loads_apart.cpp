#include "codegen/llvm/keep_loads_apart.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace quernel::codegen {
namespace {

// Whether it is part of reading an element: an address, the load, a conversion of what is loaded.
bool only_reads(const llvm::Instruction& i) {
  return llvm::isa<llvm::PHINode, llvm::GetElementPtrInst, llvm::LoadInst, llvm::CastInst>(i);
}

void add_barrier(llvm::Instruction& before) {
  llvm::IRBuilder<> b(&before);
  b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(b.getVoidTy(), false), "", "~{memory}", true));
}

bool stores(const llvm::Loop& loop) {
  return std::any_of(loop.block_begin(), loop.block_end(), [](const llvm::BasicBlock* block) {
    return std::any_of(block->begin(), block->end(),
                       [](const llvm::Instruction& i) { return i.mayWriteToMemory(); });
  });
}

bool keep_apart(llvm::BasicBlock& block) {
  std::vector<llvm::Instruction*> loads;
  bool computes = false;
  for (llvm::Instruction& i : block) {
    if (llvm::isa<llvm::LoadInst>(i) && i.getType()->isIntegerTy(32) && std::exchange(computes, false))
      loads.push_back(&i);
    computes |= !only_reads(i);
  }
  for (llvm::Instruction* load : loads) add_barrier(*load);
  return !loads.empty();
}

}  // namespace

llvm::PreservedAnalyses KeepLoadsApartPass::run(llvm::Function& function,
                                                llvm::FunctionAnalysisManager& analyses) {
  llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  bool changed = false;
  for (llvm::Loop* loop : loops.getLoopsInPreorder())
    if (loop->isInnermost() && !stores(*loop))
      for (llvm::BasicBlock* block : loop->blocks()) changed |= keep_apart(*block);
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace quernel::codegen
