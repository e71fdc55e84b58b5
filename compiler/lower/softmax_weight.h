// Weights of a softmax that is computed as its scores come.
#pragma once

#include "loop/ir.h"

namespace quernel::lower {

// Returns e^x, the weight of a score that is -x below the highest one, whose weight is 1. Weights below the smallest normal
// number become 0: all of them together are less than 2^-100 of the sum, and products with them take a hundred times as
// long on processors that leave such numbers to microcode (a prompt's attention on Emerald Rapids: 280 us, else 100).
// Requires x of f32 or f64. NaN stays NaN.
inline loop::Expr softmax_weight(const loop::Expr& x) {
  constexpr double kLeastOfF32 = -87.33654, kLeastOfF64 = -708.39641;
  const DType dtype = x->type.dtype;
  const loop::Expr least =
      loop::const_float(dtype, dtype == DType::kF64 ? kLeastOfF64 : kLeastOfF32, x->type.lanes);
  return loop::select(loop::binary(BinaryOp::k_lt, x, least), loop::const_float(dtype, 0, x->type.lanes),
                      loop::unary(UnaryOp::k_exp, x));
}

}  // namespace quernel::lower
