// Shared parts of reductions: the operation with its identity, and the reduction of one axis in vectors.
#pragma once

#include "lower/block_sums.h"

namespace quernel::lower {

struct Reducer {
  BinaryOp op = BinaryOp::k_add;
  DType accumulator = DType::kF32;
  loop::Expr identity;
  bool of_bits = false;  // elements are f32, whose bits accumulate as i32
  // Returns an element as it accumulates, and what has accumulated as an element.
  loop::Expr in_accumulator(loop::Expr element) const;
  loop::Expr in_elements(loop::Expr accumulated) const;
};
// Returns the reducer of a reduce node whose operand has this dtype.
Reducer reducer_of(const Node& node, DType dtype);

// Returns the same for a reduction in vectors. The largest of magnitudes is that of their bits: integers compare as floats that
// are not negative do, NaN above all, and take one instruction where a maximum that keeps NaN takes several.
Reducer vector_reducer_of(const Graph& graph, const Node& node, const Target& target);

// Reduces an axis of `extent` elements in vectors: several vectors of accumulators per step, then one vector
// at a time, then a tail. At the end all lanes are reduced to one. `steps`: the axis kind of the loops over
// vectors. `times`: how often the axis is reduced, at most. Long sums are added in blocks.
class LaneReduction {
 public:
  LaneReduction(Context& context, const Reducer& reducer, const Dim& extent, int lanes,
                loop::AxisKind steps = loop::AxisKind::kReduction, Dim times = 1);
  // Allocates the accumulators and sets them to the identity.
  std::vector<loop::Stmt> begin();
  // Reduces the whole axis, inside the loops over other axes from `loops()`, outermost first.
  // `value_at(position, statements)` returns an element, of any dtype, and adds the statements that compute
  // it.
  using ValueAt = std::function<loop::Expr(loop::Expr position, std::vector<loop::Stmt>& statements)>;
  loop::Stmt fold(const std::function<std::vector<TermLoop>()>& loops, const ValueAt& value_at);
  // Returns all lanes reduced to one value, in the accumulator's dtype, or f32 where bits accumulate.
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
  int64_t chain_ = 0;  // the most terms per accumulator in one reduction of the axis
  bool in_blocks_ = false;
  loop::Buffer acc_;
};

// Returns the vector whose lane i has the lanes of vectors[i], reduced by `op`. Requires as many vectors as lanes, a power of
// two. `body` gets what has to come before it.
loop::Expr fold_lanes(std::vector<loop::Stmt>& body, BinaryOp op, std::vector<loop::Expr> vectors);

}  // namespace quernel::lower
