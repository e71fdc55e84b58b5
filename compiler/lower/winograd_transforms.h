// The transforms of Winograd's algorithm as straight-line code; support/winograd_matrices.h has the matrices.
#pragma once

#include "lower/evaluate.h"

namespace quernel::lower {

// Expressions in which every intermediate value has a name, so that it is computed once.
class Straight {
 public:
  std::vector<loop::Stmt> statements;
  loop::Expr name(const char* base, loop::Expr value) {
    if (value->kind == loop::ExprKind::kConst || value->kind == loop::ExprKind::kVar) return value;
    loop::Var var = fresh_var(base, value->type);
    statements.push_back(loop::let(var, value));
    return loop::var_ref(var);
  }
  loop::Expr add(loop::Expr a, loop::Expr b) { return name("t", a + b); }
  loop::Expr subtract(loop::Expr a, loop::Expr b) { return name("t", a - b); }
  // a * k + b
  loop::Expr scaled(loop::Expr a, double k, loop::Expr b) {
    return name("t", loop::mul_acc(a, loop::const_float(DType::kF32, k), b));
  }
  loop::Expr times(loop::Expr a, double k) { return name("t", a * loop::const_float(DType::kF32, k)); }
};

using Square = std::vector<std::vector<loop::Expr>>;
// Return B^T d B for a square of tile + 2 values, and A^T m A for a square of tile + 2 accumulators, which
// gives tile by tile results.
Square transform_input(Straight& s, const Square& d);
Square transform_output(Straight& s, const Square& m);

}  // namespace quernel::lower
