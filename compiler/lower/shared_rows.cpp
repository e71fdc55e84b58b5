#include "lower/shared_rows.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

SharedRows::SharedRows(const schedule::ContractionPlan& plan, DType dtype)
    : lanes_(plan.lanes),
      steps_(plan.shared_steps),
      pitch_(schedule::shared_pitch(plan)),
      rows_of_vector_(lanes_ / steps_),
      vectors_((plan.tile_m + rows_of_vector_ - 1) / rows_of_vector_),
      offsets_(local_buffer("shared_offsets", DType::kI64, vectors_ * lanes_, loop::Scope::kRegister)),
      elements_(local_buffer("shared_rows", dtype, steps_ * pitch_, loop::Scope::kShared)) {}

Stmt SharedRows::for_each(const std::function<Stmt(Expr, Expr, Expr)>& body) const {
  loop::Var i = index_var("i"), l = index_var("l");
  Expr vector = loop::var_ref(i), lane = loop::var_ref(l), steps = index(steps_);
  Expr row = vector * index(rows_of_vector_) + loop::binary(BinaryOp::k_idiv, lane, steps);
  Expr step = loop::binary(BinaryOp::k_fmod, lane, steps);
  Stmt lanes =
      loop::for_loop(l, index(lanes_), AxisKind::kVector, body(vector * index(lanes_) + lane, row, step));
  return loop::for_loop(i, index(vectors_), AxisKind::kUnrolled, lanes);
}

std::vector<Stmt> SharedRows::begin(const std::function<Expr(Expr)>& offset_of) const {
  Stmt offsets = for_each([&](Expr n, Expr row, Expr) { return loop::store(offsets_, n, offset_of(row)); });
  return {loop::alloc(offsets_), loop::alloc(elements_), offsets};
}

Stmt SharedRows::fetch(const std::function<Expr(Expr, Expr)>& value_at) const {
  return for_each([&](Expr n, Expr row, Expr step) {
    return loop::store(elements_, step * index(pitch_) + row, value_at(loop::load(offsets_, n), step));
  });
}

Expr SharedRows::element(const Expr& row, const Expr& step) const {
  return loop::load(elements_, step * index(pitch_) + row);
}

}  // namespace quernel::lower
