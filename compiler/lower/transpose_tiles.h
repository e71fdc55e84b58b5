// Tiles transposed in registers, for elementwise kernels whose result is contiguous along another axis than
// an operand. Both are then accessed contiguously.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// A load found by a dry run: of a stored value, at an element offset over the axes.
struct Load {
  ValueId value = kNoValue;
  IndexExpr offset;
};

// The computation of a kernel at one point: evaluates and stores through the evaluator, whose axes are set.
using EmitPoint = std::function<void(Evaluator&)>;

// Transposes `rows`, a power of two of vectors of equal length: returns as many vectors, which hold, column
// after column, an element of each row. Adds the statements to `body`.
std::vector<loop::Expr> turned_round(std::vector<loop::Stmt>& body, const std::vector<loop::Expr>& rows);

// Returns the loops over `extents` in the largest square tiles that fit: of `lanes`, or of its halves down to
// 4. All stores are contiguous along `vector_axis`. Some of `loads` are contiguous along another axis: they
// are loaded in vectors along that axis and transposed. Returns null if no load gains or no tile fits.
loop::Stmt transposed_nest(Context& context, const Shape& extents, int vector_axis, int lanes,
                           const std::vector<Load>& loads, int64_t target_work, const EmitPoint& emit);

}  // namespace quernel::lower
