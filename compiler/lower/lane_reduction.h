// What reductions share: the operation with its identity, and its run along one axis in vectors.
#pragma once

#include "lower/block_sums.h"

namespace quernel::lower {

struct Reducer {
  BinaryOp op = BinaryOp::k_add;
  DType accumulator = DType::kF32;
  loop::Expr identity;
};
// Of a reduce node whose operand has this dtype.
Reducer reducer_of(const Node& node, DType dtype);

// Folds an axis of `extent` elements in vectors: several vectors of accumulators per step, then one at a
// time, then a tail; at the end all lanes are folded. `steps`: what the loops over vectors are. `times`: how
// often the axis is folded, at most; long sums are added up in blocks.
class LaneReduction {
 public:
  LaneReduction(Context& context, const Reducer& reducer, const Dim& extent, int lanes,
                loop::AxisKind steps = loop::AxisKind::kReduction, Dim times = 1);
  // Allocates the accumulators and sets them to the identity.
  std::vector<loop::Stmt> begin();
  // Folds the whole axis in, within the loops over other axes that `loops()` makes, the outermost first.
  // `value_at(position, statements)` returns an element, of any dtype, and adds the statements that compute
  // it.
  using ValueAt = std::function<loop::Expr(loop::Expr position, std::vector<loop::Stmt>& statements)>;
  loop::Stmt fold(const std::function<std::vector<TermLoop>()>& loops, const ValueAt& value_at);
  // All lanes folded, of the accumulator's dtype.
  loop::Expr result() const;

 private:
  loop::Stmt each_lane(int64_t vectors, const std::function<loop::Stmt(loop::Expr slot)>& body) const;
  loop::Stmt fold_axis(const loop::Buffer& acc, const ValueAt& value_at, bool in_blocks);
  BlockSums blocks() const;

  Context& c_;
  Reducer reducer_;
  Dim extent_, times_;
  int lanes_ = 1, wide_ = 1;
  loop::AxisKind steps_;
  int64_t chain_ = 0;  // terms of an accumulator from one fold of the axis, at most
  bool in_blocks_ = false;
  loop::Buffer acc_;
};

}  // namespace quernel::lower
