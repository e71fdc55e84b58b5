// Tiles transposed in registers, for elementwise kernels whose result is contiguous along another axis than
// an operand. Both are then accessed contiguously.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// The computation of a kernel at one point: evaluates and stores through the evaluator, whose axes are set.
using EmitPoint = std::function<void(Evaluator&)>;

// Transposes `rows`, a power of two of vectors of equal length: returns as many vectors, which hold, column
// after column, an element of each row. Adds the statements to `body`.
std::vector<loop::Expr> turned_round(std::vector<loop::Stmt>& body, const std::vector<loop::Expr>& rows);

// Returns the loops of a plan with tiles. Its transposed loads are loaded in vectors along the tiles' axis
// and transposed; all stores are contiguous along the vector axis.
loop::Stmt transposed_nest(Context& context, const schedule::MapPlan& plan, int64_t target_work,
                           const EmitPoint& emit);

}  // namespace quernel::lower
