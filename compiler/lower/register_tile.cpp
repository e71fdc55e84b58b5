#include "lower/register_tile.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

Stmt RegisterTile::for_rows(const std::function<Stmt(Expr)>& body, AxisKind kind) const {
  if (rows_ == 1) return body(index(0));
  loop::Var m = index_var("m");
  return loop::for_loop(m, index(rows_), kind, body(loop::var_ref(m)));
}

Stmt RegisterTile::for_columns(const std::function<Stmt(Expr)>& body) const {
  return for_vectors([&](Expr v, Expr l) { return body(v ? v * index(plan_->lanes) + l : l); });
}

Stmt RegisterTile::for_vectors(const std::function<Stmt(Expr, Expr)>& body) const {
  auto for_lanes = [&](const Expr& v, int64_t lanes) {
    loop::Var l = index_var("l");
    return loop::for_loop(l, index(lanes), AxisKind::kVector, body(v, loop::var_ref(l)));
  };
  std::vector<Stmt> parts;
  if (vectors_.vectors == 1) parts.push_back(for_lanes(nullptr, plan_->lanes));
  if (vectors_.vectors > 1) {
    loop::Var v = index_var("v");
    parts.push_back(loop::for_loop(v, index(vectors_.vectors), AxisKind::kUnrolled,
                                   for_lanes(loop::var_ref(v), plan_->lanes)));
  }
  if (vectors_.short_lanes != 0) {
    Expr last = vectors_.vectors == 0 ? nullptr : index(vectors_.vectors);
    parts.push_back(for_lanes(last, vectors_.short_lanes));
  }
  return parts.size() == 1 ? parts[0] : loop::block(std::move(parts));
}

void set_rows(Context& context, const schedule::ContractionPlan& plan, std::vector<Expr>& positions,
              const Expr& row) {
  Expr rest = row;
  for (size_t i = plan.row_axes.size(); i-- > 0;) {
    int axis = plan.row_axes[i];
    if (i == 0) {
      positions[axis] = rest;
    } else {
      Expr extent = context.symbols(plan.axes[axis].extent);
      positions[axis] = loop::binary(BinaryOp::k_fmod, rest, extent);
      rest = loop::binary(BinaryOp::k_idiv, rest, extent);
    }
  }
}

}  // namespace quernel::lower
