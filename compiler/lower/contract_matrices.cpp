// Tiles of a contraction by matrix units (loop/ir.h, kMultiplyMatrices).
#include "loop/rewrite.h"
#include "lower/contract_lowering.h"
#include "schedule/storage.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

namespace {

// Whether the binding begins at a multiple of 16 bytes: the caller's memory need not.
bool is_aligned(const Context& context, const loop::BufferNode& buffer) {
  constexpr int64_t kAlignment = 16;
  const schedule::Binding& binding = context.item.bindings[static_cast<size_t>(buffer.binding)];
  const int root = schedule::root_buffer(context.schedule, binding.buffer);
  const schedule::Buffer& memory = context.schedule.buffers[static_cast<size_t>(root)];
  return memory.kind == schedule::BufferKind::kWorkspace && memory.slot < 0 &&
         floormod(binding.offset, kAlignment) == Dim(0);
}

}  // namespace

bool ContractLowering::loads_matrices_in_place() const {
  constexpr int64_t kMostElements = int64_t{64} << 20;  // 128 MiB, which one binding has in one window
  constexpr int64_t kAligned = 8;                       // elements of 16 bytes
  auto aligned = [](const Dim& d) { return floormod(d, kAligned) == Dim(0); };
  const schedule::ContractionPlan::Axis& last = plan_.axes[plan_.reduction_axes.back()];
  bool result = is_aligned(c_, *a_buffer_) && a_buffer_->size <= kMostElements &&
                plan_.row_axes.size() == 1 && last.a == Dim(1) && aligned(plan_.a_offset) &&
                floormod(rows_, plan_.tile_m) == Dim(0);
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
  loop::Var block = index_var("block");
  const Expr first = loop::var_ref(block) * index(plan_.shared_steps);
  auto at_step = [&](const Expr& e, const Expr& step) {
    loop::Substitution substitution;
    substitution.replace(last, step);
    return substitution(e);
  };
  std::vector<Stmt> steps_of_block;
  loop::MatrixPlace a;
  if (first_row) {
    a = {a_buffer_, first_row + at_step(k.a, first), plan_.axes[plan_.row_axes[0]].a.value(), 1};
  } else {
    a = shared_->matrix();
    steps_of_block.push_back(shared_->fetch([&](const Expr& offset, const Expr& step) {
      return loop::load(a_buffer_, offset + at_step(k.a, first + step));
    }));
  }
  steps_of_block.push_back(
      loop::multiply_matrices(sums, {rows,
                                     columns,
                                     plan_.shared_steps,
                                     std::move(a),
                                     {b_buffer_, b_base + at_step(k.b, first), plan_.panel_n(), 1}}));
  Stmt body = loop::for_loop(block, at(floordiv(extent, plan_.shared_steps)), AxisKind::kSerial,
                             loop::block(std::move(steps_of_block)));
  for (size_t i = k.loops.size() - 1; i-- > 0;)
    body = loop::for_loop(k.loops[i].first, at(k.loops[i].second), AxisKind::kSerial, body);
  return loop::block({loop::alloc(sums), body,
                      loop::store_matrix(sums, {rows, columns, 0, {acc, index(0), columns, 1}, {}})});
}

}  // namespace quernel::lower
