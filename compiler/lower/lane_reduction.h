// What reductions share: the operation with its identity, and its run along one axis in vectors.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

struct Reducer {
  BinaryOp op = BinaryOp::k_add;
  DType accumulator = DType::kF32;
  loop::Expr identity;
};
// Of a reduce node whose operand has this dtype.
Reducer reducer_of(const Node& node, DType dtype);

// Folds an axis of `extent` elements in vectors: several vectors of accumulators per step, then one at a
// time, then a tail; at the end all lanes are folded. `steps`: what the loops over vectors are.
class LaneReduction {
 public:
  LaneReduction(Context& context, const Reducer& reducer, const Dim& extent, int lanes,
                loop::AxisKind steps = loop::AxisKind::kReduction);
  // Allocates the accumulators and sets them to the identity.
  std::vector<loop::Stmt> begin();
  // Folds the whole axis in. `value_at(position, statements)` returns an element, of any dtype, and adds the
  // statements that compute it.
  loop::Stmt fold(
      const std::function<loop::Expr(loop::Expr position, std::vector<loop::Stmt>& statements)>& value_at);
  // All lanes folded, of the accumulator's dtype.
  loop::Expr result() const;

 private:
  loop::Stmt each_lane(int64_t vectors, const std::function<loop::Stmt(loop::Expr slot)>& body);

  Context& c_;
  Reducer reducer_;
  Dim extent_;
  int lanes_ = 1, wide_ = 1;
  loop::AxisKind steps_;
  loop::Buffer acc_;
};

}  // namespace quernel::lower
