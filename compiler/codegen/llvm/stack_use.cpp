#include "codegen/llvm/stack_use.h"

#include <llvm/IR/Instructions.h>

#include <algorithm>

namespace quernel::codegen {
namespace {

// The most that anything in a frame of the function is aligned to. Vectors are spilled whole.
uint64_t frame_alignment(const llvm::Function& function, uint64_t vector_bytes) {
  uint64_t most = 1;
  for (const llvm::BasicBlock& block : function)
    for (const llvm::Instruction& instruction : block) {
      if (auto* alloca = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
        most = std::max(most, alloca->getAlign().value());
      bool vectors = instruction.getType()->isVectorTy();
      for (const llvm::Value* operand : instruction.operands()) vectors |= operand->getType()->isVectorTy();
      if (vectors) most = std::max(most, vector_bytes);
    }
  return most;
}

}  // namespace

// The stack pointer is rounded down, on x86 behind the registers that are saved, and there the frame's size
// up once more.
void StackUse::read(llvm::Module& module) {
  llvm::MaybeAlign natural = module.getDataLayout().getStackAlignment();
  uint64_t stack_alignment = natural ? natural->value() : 1;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    Function& entry = functions_[function.getName().str()];
    uint64_t alignment = frame_alignment(function, static_cast<uint64_t>(target_.vector_bytes));
    if (alignment > stack_alignment)
      entry.gap = target_.arch == QNL_ARCH_X86_64 ? 2 * alignment : alignment;
    else
      function.addFnAttr("no-realign-stack");
    for (const llvm::BasicBlock& block : function)
      for (const llvm::Instruction& instruction : block)
        if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
          if (const llvm::Function* callee = call->getCalledFunction(); callee && !callee->isDeclaration())
            entry.callees.push_back(callee->getName().str());
  }
}

void StackUse::note_frame(const llvm::DiagnosticInfoStackSize& frame) {
  functions_[frame.getFunction().getName().str()].frame = frame.getStackSize();
}

uint64_t StackUse::bound(const std::string& name) const {
  auto found = functions_.find(name);
  if (found == functions_.end()) return 0;
  uint64_t deepest = 0;
  for (const std::string& callee : found->second.callees) deepest = std::max(deepest, bound(callee));
  // Others keep the return address in a register, and save it in their frame.
  uint64_t return_address = target_.arch == QNL_ARCH_X86_64 ? 8 : 0;
  return found->second.frame + found->second.gap + return_address + deepest;
}

}  // namespace quernel::codegen
