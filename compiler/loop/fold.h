// Local folds that the expression builders apply: each looks at one node and its operands, in constant time,
// and returns nothing when it has no better form. Whole-expression rewrites belong to the simplify pass.
#pragma once

#include "loop/ir.h"

namespace quernel::loop {

// Operands have equal types. Before -> after, on integers: x+0 -> x, x*1 -> x, x*0 -> 0, (x+3)+4 -> x+7,
// (x*4)*2 -> x*8, x-3 -> x+-3, x<x -> false; on ramps: ramp(b,s)+broadcast(x) -> ramp(b+x,s), ramp(b,s)*c ->
// ramp(b*c,s*c).
Expr fold_binary(BinaryOp op, const Expr& a, const Expr& b);
Expr fold_unary(UnaryOp op, const Expr& x);

// The scalar that every lane of `e` holds, if `e` says so by its form: scalars themselves, broadcasts, splat
// constants.
Expr uniform_value(const Expr& e);
// Structurally equal at a glance: the same node, variable, symbol or constant.
bool same_leaf(const Expr& a, const Expr& b);
// `e` is a bool constant (splat included) of this value.
bool is_const_bool(const Expr& e, bool value);

}  // namespace quernel::loop
