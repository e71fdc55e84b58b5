// Local folds of the expression builders. Each looks at one node and its operands, in constant time, and
// returns nothing if it has no better form. Rewrites of whole expressions belong to the simplify pass.
#pragma once

#include "loop/ir.h"

namespace quernel::loop {

// Requires operands of equal types. Before -> after, on integers: x+0 -> x, x*1 -> x, x*0 -> 0, (x+3)+4 ->
// x+7, (x*4)*2 -> x*8, x-3 -> x+-3, x<x -> false; on ramps: ramp(b,s)+broadcast(x) -> ramp(b+x,s),
// ramp(b,s)*c -> ramp(b*c,s*c).
Expr fold_binary(BinaryOp op, const Expr& a, const Expr& b);
Expr fold_unary(UnaryOp op, const Expr& x);

// Returns the scalar that every lane of `e` holds, if the form of `e` shows it: scalars themselves,
// broadcasts, splat constants.
Expr uniform_value(const Expr& e);
// Returns whether both are the same node, variable, symbol or constant; looks no deeper.
bool same_leaf(const Expr& a, const Expr& b);
// Returns whether `e` is a bool constant (splat included) of this value.
bool is_const_bool(const Expr& e, bool value);

}  // namespace quernel::loop
