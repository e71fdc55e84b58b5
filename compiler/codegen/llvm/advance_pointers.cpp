#include "codegen/llvm/advance_pointers.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace quernel::codegen {
namespace {

using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

// A pointer that a loop advances.
struct Pointer {
  const SCEV* first;     // its value in the loop's first step
  llvm::PHINode* phi;    // its value in a step
  Value* next;           // its value after the step
  int64_t step;          // bytes
  const SCEV* bytes;     // that all steps of the loop advance it by
  bool goes_on = false;  // the outer loop's next step begins where this one ends
};

// A load whose address is linear in the loop's steps.
struct Load {
  llvm::LoadInst* load;
  const SCEV* first;  // its address in the loop's first step
  int64_t step;       // bytes
  int64_t offset;     // from the first load that shares its pointer
};
using Sharing = std::vector<Load>;  // one pointer

// The loads of the lowest and of the highest address.
std::pair<const Load&, const Load&> ends_of(const Sharing& loads) {
  auto [lowest, highest] = std::minmax_element(
      loads.begin(), loads.end(), [](const Load& a, const Load& b) { return a.offset < b.offset; });
  return {*lowest, *highest};
}

class LoopNest {
 public:
  LoopNest(llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution, llvm::DominatorTree& dominators,
           int64_t reach, size_t fewest_loads)
      : loops_(loops),
        evolution_(evolution),
        dominators_(dominators),
        expander_(evolution, "pointer"),
        reach_(reach),
        fewest_loads_(fewest_loads) {}

  bool run() {
    for (Loop* loop : loops_) finish(*loop, visit(*loop));
    return changed_;
  }

 private:
  // Returns the pointers that the loop advances.
  std::vector<Pointer> visit(Loop& loop) {
    std::vector<std::pair<Loop*, std::vector<Pointer>>> inner;
    for (Loop* child : loop) inner.emplace_back(child, visit(*child));
    std::vector<Pointer> pointers;
    const bool is_sum = sums(loop);
    for (auto& [child, of_child] : inner) {
      for (Pointer& p : of_child)
        if (std::optional<Pointer> taken = is_sum ? take_over(loop, *child, p) : std::nullopt)
          pointers.push_back(*taken);
      if (is_sum)
        end_by_pointer(*child, of_child);
      else
        finish(*child, of_child);
    }
    if (is_sum)
      for (const Sharing& loads : loads_by_pointer(loop))
        if (loads.size() >= fewest_loads_) pointers.push_back(advance(loop, loads));
    changed_ |= !pointers.empty();
    return pointers;
  }

  void finish(Loop& sum, const std::vector<Pointer>& pointers) {
    read_on(sum, pointers);
    end_by_pointer(sum, pointers);
  }

  // Lets loads behind the sum go on from where one of its pointers ends, within its reach: what follows an operand in
  // memory needs no address of its own.
  void read_on(Loop& sum, const std::vector<Pointer>& pointers) {
    llvm::BasicBlock* exit = sum.getExitBlock();
    if (pointers.empty() || !exit) return;
    for (llvm::BasicBlock& block : *exit->getParent()) {
      if (loops_.getLoopFor(&block) != sum.getParentLoop() || !dominators_.dominates(exit, &block)) continue;
      for (llvm::Instruction& i : block) {
        auto* load = llvm::dyn_cast<llvm::LoadInst>(&i);
        if (!load || !evolution_.isSCEVable(load->getPointerOperandType())) continue;
        const SCEV* address = evolution_.getSCEV(load->getPointerOperand());
        for (const Pointer& p : pointers) {
          const SCEV* from_first = evolution_.getMinusSCEV(address, p.first);
          if (llvm::isa<llvm::SCEVCouldNotCompute>(from_first)) continue;
          auto* apart = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(from_first, p.bytes));
          if (!apart) continue;
          const int64_t offset = apart->getAPInt().getSExtValue();
          if (offset < 0 || offset > reach_) continue;
          llvm::IRBuilder<> b(load);
          load->setOperand(load->getPointerOperandIndex(),
                           b.CreatePtrAdd(p.next, b.getInt32(static_cast<uint32_t>(offset))));
          break;
        }
      }
    }
  }

  // Whether it is a loop as loop IR makes it, with a number of steps that is known in front of it, that stores nothing. What it
  // prefetches has addresses of its own.
  bool sums(const Loop& loop) const {
    if (!loop.isLoopSimplifyForm() || loop.getExitingBlock() != loop.getLoopLatch() ||
        evolution_.getSmallConstantTripCount(&loop) == 1 ||
        !evolution_.hasLoopInvariantBackedgeTakenCount(&loop) ||
        !expander_.isSafeToExpandAt(evolution_.getBackedgeTakenCount(&loop),
                                    loop.getLoopPreheader()->getTerminator()))
      return false;
    return std::none_of(loop.block_begin(), loop.block_end(), [](const llvm::BasicBlock* block) {
      return std::any_of(block->begin(), block->end(), [](const llvm::Instruction& i) {
        auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
        return i.mayWriteToMemory() &&
               !(intrinsic && intrinsic->getIntrinsicID() == llvm::Intrinsic::prefetch);
      });
    });
  }

  // The bytes from one step of the loop to the next, and the address in the first one; nullopt where it is not linear.
  std::optional<int64_t> step_of(const SCEV* address, const Loop& loop, const SCEV*& first) const {
    auto* line = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
    if (!line || line->getLoop() != &loop || !line->isAffine()) return std::nullopt;
    auto* step = llvm::dyn_cast<llvm::SCEVConstant>(line->getStepRecurrence(evolution_));
    first = line->getStart();
    if (!step || !expander_.isSafeToExpandAt(first, loop.getLoopPreheader()->getTerminator()))
      return std::nullopt;
    return step->getAPInt().getSExtValue();
  }

  // The loads of the loop itself, not of inner loops.
  std::vector<Sharing> loads_by_pointer(const Loop& loop) const {
    std::vector<Sharing> result;
    for (llvm::BasicBlock* block : loop.blocks()) {
      if (loops_.getLoopFor(block) != &loop) continue;
      for (llvm::Instruction& i : *block) {
        auto* load = llvm::dyn_cast<llvm::LoadInst>(&i);
        const SCEV* first = nullptr;
        std::optional<int64_t> step =
            load ? step_of(evolution_.getSCEV(load->getPointerOperand()), loop, first) : std::nullopt;
        if (step) join(result, {load, first, *step, 0});
      }
    }
    return result;
  }

  void join(std::vector<Sharing>& pointers, const Load& load) const {
    for (Sharing& loads : pointers) {
      if (loads[0].step != load.step) continue;
      auto* apart = llvm::dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(load.first, loads[0].first));
      if (!apart) continue;
      const int64_t offset = apart->getAPInt().getSExtValue();
      auto [lowest, highest] = ends_of(loads);
      if (std::max(highest.offset, offset) - std::min(lowest.offset, offset) > reach_) continue;
      loads.push_back({load.load, load.first, load.step, offset});
      return;
    }
    pointers.push_back({load});
  }

  Pointer advance(Loop& loop, const Sharing& loads) {
    const Load& lowest = ends_of(loads).first;
    const int64_t before = bytes_before(loads, lowest.offset);
    llvm::Type* offset_type = evolution_.getEffectiveSCEVType(lowest.first->getType());
    Pointer p =
        pointer(loop, evolution_.getAddExpr(lowest.first, evolution_.getConstant(offset_type, -before, true)),
                lowest.step);
    p.next = advanced(p.phi, p.step, loop);
    p.phi->addIncoming(p.next, loop.getLoopLatch());
    for (const Load& l : loads) {
      llvm::IRBuilder<> b(l.load);
      const int64_t offset = l.offset - lowest.offset + before;
      l.load->setOperand(l.load->getPointerOperandIndex(),
                         b.CreatePtrAdd(p.phi, b.getInt32(static_cast<uint32_t>(offset))));
    }
    return p;
  }

  // How far in front of the lowest address the pointer is. No load may be where the pointer will be next: LLVM
  // would make it one instruction with the advance (pre-indexed), and a copy of the pointer for the other loads.
  static int64_t bytes_before(const Sharing& loads, int64_t lowest) {
    for (int64_t before = 0;; before += 4)
      if (std::none_of(loads.begin(), loads.end(),
                       [&](const Load& l) { return l.offset - lowest + before == l.step; }))
        return before;
  }

  // Returns `pointer` plus `bytes`, computed at the end of the loop's step. Strength reduction does not see
  // through it.
  Value* advanced(Value* pointer, int64_t bytes, const Loop& loop) const {
    llvm::IRBuilder<> b(loop.getLoopLatch()->getTerminator());
    llvm::Type* type = evolution_.getEffectiveSCEVType(pointer->getType());
    Value* next = b.CreatePtrAdd(pointer, llvm::ConstantInt::getSigned(type, bytes));
    auto* same = llvm::FunctionType::get(next->getType(), {next->getType()}, false);
    llvm::CallInst* hidden = b.CreateCall(llvm::InlineAsm::get(same, "", "=r,0", false), {next});
    hidden->setDoesNotAccessMemory();
    return hidden;
  }

  // A pointer without its value after the step.
  Pointer pointer(Loop& loop, const SCEV* first, int64_t step) {
    llvm::Instruction* before = loop.getLoopPreheader()->getTerminator();
    llvm::Type* type = llvm::PointerType::get(before->getContext(), 0);
    Value* start = expander_.expandCodeFor(first, type, before->getIterator());
    llvm::IRBuilder<> b(loop.getHeader(), loop.getHeader()->begin());
    llvm::PHINode* phi = b.CreatePHI(type, 2, "pointer");
    phi->addIncoming(start, loop.getLoopPreheader());
    return {first, phi, nullptr, step, bytes_of_steps(loop, step)};
  }

  // The bytes that all steps of the loop advance a pointer by.
  const SCEV* bytes_of_steps(const Loop& loop, int64_t step) {
    llvm::Type* type =
        evolution_.getEffectiveSCEVType(llvm::PointerType::get(loop.getHeader()->getContext(), 0));
    const SCEV* others = evolution_.getTruncateOrZeroExtend(evolution_.getBackedgeTakenCount(&loop), type);
    const SCEV* count = evolution_.getAddExpr(others, evolution_.getOne(type));
    return evolution_.getMulExpr(count, evolution_.getConstant(type, static_cast<uint64_t>(step), true));
  }

  // Returns `pointer` plus `bytes`, which are computed in front of `place`.
  Value* plus(Value* pointer, const SCEV* bytes, llvm::Instruction* place) {
    llvm::IRBuilder<> b(place);
    return b.CreatePtrAdd(pointer, expander_.expandCodeFor(bytes, bytes->getType(), place->getIterator()));
  }

  // Lets `p` go on in the next step of `loop` from where `child` has left it.
  std::optional<Pointer> take_over(Loop& loop, Loop& child, Pointer& p) {
    const SCEV* first = nullptr;
    std::optional<int64_t> step = step_of(p.first, loop, first);
    llvm::BasicBlock* latch = loop.getLoopLatch();
    if (!step || child.getExitBlock() == nullptr || !dominators_.dominates(child.getLoopLatch(), latch))
      return std::nullopt;
    auto* inner_bytes = llvm::dyn_cast<llvm::SCEVConstant>(p.bytes);
    if (!inner_bytes) return std::nullopt;
    Pointer outer = pointer(loop, first, *step);
    const int64_t bytes = inner_bytes->getAPInt().getSExtValue();
    p.goes_on = *step == bytes;
    outer.next = advanced(p.next, *step - bytes, loop);
    outer.phi->addIncoming(outer.next, latch);
    p.phi->setIncomingValueForBlock(child.getLoopPreheader(), outer.phi);
    return outer;
  }

  // Compares a pointer and not the counter, which then needs no register. One that goes on has its last value
  // in a register or on the stack anyway.
  void end_by_pointer(Loop& loop, const std::vector<Pointer>& pointers) {
    if (pointers.empty() || fewest_loads_ > 1) return;
    auto found = std::find_if(pointers.begin(), pointers.end(), [](const Pointer& p) { return p.goes_on; });
    const Pointer& p = found == pointers.end() ? pointers[0] : *found;
    auto* branch = llvm::cast<llvm::BranchInst>(loop.getLoopLatch()->getTerminator());
    llvm::BasicBlock* preheader = loop.getLoopPreheader();
    Value* end = plus(p.phi->getIncomingValueForBlock(preheader), p.bytes, preheader->getTerminator());
    llvm::IRBuilder<> b(branch);
    bool stays = branch->getSuccessor(0) == loop.getHeader();
    branch->setCondition(stays ? b.CreateICmpNE(p.next, end) : b.CreateICmpEQ(p.next, end));
  }

  llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  llvm::DominatorTree& dominators_;
  llvm::SCEVExpander expander_;
  int64_t reach_;
  size_t fewest_loads_;
  bool changed_ = false;
};

// Says of the sums that LLVM has made bitwise or that they are sums: scalar evolution takes no other one for an address.
void mark_sums(llvm::Function& function) {
  const llvm::SimplifyQuery query(function.getParent()->getDataLayout());
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& i : block)
      if (auto* either = llvm::dyn_cast<llvm::PossiblyDisjointInst>(&i))
        if (llvm::haveNoCommonBitsSet(either->getOperand(0), either->getOperand(1), query))
          either->setIsDisjoint(true);
}

}  // namespace

llvm::PreservedAnalyses AdvancePointersPass::run(llvm::Function& function,
                                                 llvm::FunctionAnalysisManager& analyses) {
  mark_sums(function);
  LoopNest nest(analyses.getResult<llvm::LoopAnalysis>(function),
                analyses.getResult<llvm::ScalarEvolutionAnalysis>(function),
                analyses.getResult<llvm::DominatorTreeAnalysis>(function), reach_, fewest_loads_);
  return nest.run() ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace quernel::codegen
