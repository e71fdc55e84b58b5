// Tiles of a contraction by matrix units (loop/ir.h, kMultiplyMatrices).
#include "loop/rewrite.h"
#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

Stmt ContractLowering::reduce_matrices(const loop::Buffer& acc, const Expr& b_base) {
  const int64_t rows = plan_.tile_m, columns = plan_.tile_n();
  const loop::Buffer sums = local_buffer("sums", DType::kF32, rows * columns, loop::Scope::kMatrix);
  const Steps k = steps(plan_.panel_n());
  const auto& [last, extent] = k.loops.back();
  loop::Var block = index_var("block");
  const Expr first = loop::var_ref(block) * index(plan_.shared_steps);
  auto at_step = [&](const Expr& e, const Expr& step) {
    loop::Substitution substitution;
    substitution.replace(last, step);
    return substitution(e);
  };
  Stmt body = loop::block(
      {shared_->fetch([&](const Expr& offset, const Expr& step) {
         return loop::load(a_buffer_, offset + at_step(k.a, first + step));
       }),
       loop::multiply_matrices(sums, {rows,
                                      columns,
                                      plan_.shared_steps,
                                      shared_->matrix(),
                                      {b_buffer_, b_base + at_step(k.b, first), plan_.panel_n(), 1}})});
  body = loop::for_loop(block, at(floordiv(extent, plan_.shared_steps)), AxisKind::kSerial, body);
  for (size_t i = k.loops.size() - 1; i-- > 0;)
    body = loop::for_loop(k.loops[i].first, at(k.loops[i].second), AxisKind::kSerial, body);
  return loop::block({loop::alloc(sums), body,
                      loop::store_matrix(sums, {rows, columns, 0, {acc, index(0), columns, 1}, {}})});
}

}  // namespace quernel::lower
