// Tiles that are turned round in registers, and elementwise kernels whose result runs along another axis than
// an operand: both are walked contiguously by such tiles.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// A load that a dry run met: of a stored value, at an element offset over the axes.
struct Load {
  ValueId value = kNoValue;
  IndexExpr offset;
};

// What a kernel computes at one point: evaluates and stores through the evaluator, whose axes are set.
using EmitPoint = std::function<void(Evaluator&)>;

// Turns `rows`, a power of two of vectors of one length, round: as many vectors that hold, column after
// column, an element of each row. `body` gets what computes them.
std::vector<loop::Expr> turned_round(std::vector<loop::Stmt>& body, const std::vector<loop::Expr>& rows);

// The loops over `extents` in square tiles of `lanes`, or a half or a quarter of them where an axis is
// shorter, along `vector_axis`, along which all stores are contiguous, and an axis along which some of
// `loads` are: these are loaded in vectors along their own axis and transposed. Null where no load gains from
// it or the tiles do not fit.
loop::Stmt transposed_nest(Context& context, const Shape& extents, int vector_axis, int lanes,
                           const std::vector<Load>& loads, int64_t target_work, const EmitPoint& emit);

}  // namespace quernel::lower
