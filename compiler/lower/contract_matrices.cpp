// Tiles of a contraction by matrix units (loop/ir.h, kMultiplyMatrices).
#include "loop/rewrite.h"
#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

bool ContractLowering::loads_matrices_in_place() const {
  constexpr int64_t kMostElements = int64_t{64} << 20;  // 128 MiB, which one binding has in one window
  constexpr int64_t kAligned = 8;                       // elements of 16 bytes
  auto aligned = [](const Dim& d) { return floormod(d, kAligned) == Dim(0); };
  const schedule::ContractionPlan::Axis& last = plan_.axes[plan_.reduction_axes.back()];
  bool result = a_buffer_->aligned && a_buffer_->size <= kMostElements && plan_.row_axes.size() == 1 &&
                last.a == Dim(1) && aligned(plan_.a_offset) && floormod(rows_, plan_.tile_m) == Dim(0);
  for (size_t i = 0; i < plan_.axes.size(); ++i)
    result &= static_cast<int>(i) == plan_.reduction_axes.back() || aligned(plan_.axes[i].a);
  return result && plan_.axes[plan_.row_axes[0]].a.is_const() &&
         plan_.axes[plan_.row_axes[0]].a.value() >= plan_.shared_steps;
}

Stmt ContractLowering::reduce_matrices(const loop::Buffer& acc, const Expr& b_base, const Expr& first_row) {
  const int64_t rows = plan_.tile_m, columns = plan_.tile_n();
  const loop::Buffer sums = local_buffer("sums", DType::kF32, rows * columns, loop::Scope::kMatrix);
  const Steps k = steps(plan_.panel_n());
  const auto& [last, extent] = k.loops.back();
  auto at_step = [&, last = last](const Expr& e, const Expr& step) {
    loop::Substitution substitution;
    substitution.replace(last, step);
    return substitution(e);
  };
  auto first = [&](const Expr& block) { return block * index(plan_.shared_steps); };
  auto multiply = [&](const loop::MatrixPlace& a, const Expr& block) {
    const loop::MatrixPlace b{b_buffer_, b_base + at_step(k.b, first(block)), plan_.panel_n(), 1};
    return loop::multiply_matrices(sums, {rows, columns, plan_.shared_steps, a, b});
  };
  const Expr count = at(floordiv(extent, plan_.shared_steps));
  Stmt body;
  if (first_row) {
    loop::Var block = index_var("block");
    const Expr number = loop::var_ref(block);
    const int64_t stride = plan_.axes[plan_.row_axes[0]].a.value();
    body = loop::for_loop(block, count, AxisKind::kSerial,
                          multiply({a_buffer_, first_row + at_step(k.a, first(number)), stride, 1}, number));
  } else {
    body = shared_->for_blocks(
        count,
        [&](const Expr& block, const Expr& offset, const Expr& step) {
          return loop::load(a_buffer_, offset + at_step(k.a, first(block) + step));
        },
        [&](const SharedRows::Block& fetched, const Expr& block) {
          return multiply(fetched.matrix(), block);
        });
  }
  for (size_t i = k.loops.size() - 1; i-- > 0;)
    body = loop::for_loop(k.loops[i].first, at(k.loops[i].second), AxisKind::kSerial, body);
  return loop::block({loop::alloc(sums), body,
                      loop::store_matrix(sums, {rows, columns, 0, {acc, index(0), columns, 1}, {}})});
}

}  // namespace quernel::lower
