#include "lower/shared_rows.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

SharedRows::SharedRows(const schedule::ContractionPlan& plan, DType dtype)
    : by_rows_(schedule::shares_by_rows(plan)),
      lanes_(plan.lanes),
      steps_(plan.shared_steps),
      pitch_(schedule::shared_pitch(plan)),
      rows_of_vector_(lanes_ / steps_),
      vectors_((plan.tile_m + rows_of_vector_ - 1) / rows_of_vector_),
      offsets_(local_buffer("shared_offsets", DType::kI64, vectors_ * lanes_, loop::Scope::kRegister)),
      fetched_(local_buffer("fetched", dtype, vectors_ * lanes_, loop::Scope::kRegister)),
      even_(shared_block(dtype)),
      odd_(shared_block(dtype)) {}

loop::Buffer SharedRows::shared_block(DType dtype) const {
  const int64_t lines = by_rows_ ? vectors_ * rows_of_vector_ : steps_;
  return local_buffer("shared_rows", dtype, lines * pitch_, loop::Scope::kShared);
}

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
  return {loop::alloc(offsets_), loop::alloc(fetched_), loop::alloc(even_), loop::alloc(odd_), offsets};
}

Stmt SharedRows::fetch(const Expr& block, const ValueAt& value_at) const {
  return for_each([&](Expr n, Expr, Expr step) {
    return loop::store(fetched_, n, value_at(block, loop::load(offsets_, n), step));
  });
}

Stmt SharedRows::put(const Block& block) const {
  return for_each(
      [&](Expr n, Expr row, Expr step) { return block.store(row, step, loop::load(fetched_, n)); });
}

Stmt SharedRows::for_blocks(const Expr& count, const ValueAt& value_at, const Sum& sum) const {
  const Block even = block_of(even_), odd = block_of(odd_);
  int64_t known = -1;
  const bool fixed = loop::as_const_int(count, &known);
  std::vector<Stmt> all{fetch(index(0), value_at), put(even)};
  if (!fixed || known > 1) {
    loop::Var pair = index_var("pair");
    const Expr first = loop::var_ref(pair) * index(2), second = first + index(1), third = first + index(2);
    auto if_more = [&](const Stmt& next) {
      return loop::if_then(loop::binary(BinaryOp::k_lt, third, count), next);
    };
    Stmt both = loop::block({fetch(second, value_at), sum(even, first), put(odd),
                             if_more(fetch(third, value_at)), sum(odd, second), if_more(put(even))});
    all.push_back(
        loop::for_loop(pair, loop::binary(BinaryOp::k_idiv, count, index(2)), AxisKind::kSerial, both));
  }
  if (!fixed || known % 2 != 0) {
    Stmt last = sum(even, count - index(1));
    Expr is_odd = loop::binary(BinaryOp::k_eq, loop::binary(BinaryOp::k_fmod, count, index(2)), index(1));
    all.push_back(fixed ? last : loop::if_then(is_odd, last));
  }
  Stmt sums = loop::block(std::move(all));
  return fixed ? sums : loop::if_then(loop::binary(BinaryOp::k_lt, index(0), count), sums);
}

Expr SharedRows::Block::slot(const Expr& row, const Expr& step) const {
  return by_rows_ ? row * index(pitch_) + step : step * index(pitch_) + row;
}

Stmt SharedRows::Block::store(const Expr& row, const Expr& step, const Expr& value) const {
  return loop::store(elements_, slot(row, step), value);
}

Expr SharedRows::Block::element(const Expr& row, const Expr& step) const {
  return loop::load(elements_, slot(row, step));
}

}  // namespace quernel::lower
