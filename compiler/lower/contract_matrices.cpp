// Tiles of a contraction by matrix units (loop/ir.h, kMultiplyMatrices).
#include "loop/rewrite.h"
#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

namespace {
constexpr int64_t kAlignment = 16;  // bytes, of matrices and their rows
}  // namespace

bool ContractLowering::loads_matrices_in_place() const {
  constexpr int64_t kMostBytes = int64_t{128} << 20;  // which one binding has in one window
  const int64_t size = element_size(a_buffer_->dtype);
  auto aligned = [&](const Dim& d) { return floormod(d, kAlignment / size) == Dim(0); };
  const schedule::ContractionPlan::Axis& last = plan_.axes[plan_.reduction_axes.back()];
  bool result = a_buffer_->dtype == b_buffer_->dtype && a_buffer_->aligned &&
                a_buffer_->size <= kMostBytes / size && plan_.row_axes.size() == 1 && last.a == Dim(1) &&
                floormod(last.extent, plan_.shared_steps) == Dim(0) && aligned(plan_.a_offset) &&
                floormod(rows_, plan_.tile_m) == Dim(0);
  for (size_t i = 0; i < plan_.axes.size(); ++i)
    result &= static_cast<int>(i) == plan_.reduction_axes.back() || aligned(plan_.axes[i].a);
  return result && plan_.axes[plan_.row_axes[0]].a.is_const() &&
         plan_.axes[plan_.row_axes[0]].a.value() >= plan_.shared_steps;
}

Stmt ContractLowering::reduce_matrices(const loop::Buffer& acc, const Expr& b_base, const Expr& first_row) {
  const int64_t rows = plan_.tile_m, columns = plan_.tile_n(), steps_at_once = plan_.shared_steps;
  const loop::Buffer sums = local_buffer("sums", accumulator_dtype_, rows * columns, loop::Scope::kMatrix);
  const Steps k = steps(plan_.panel_n());
  const auto& [last, extent] = k.loops.back();
  const bool whole = floormod(extent, steps_at_once) == Dim(0);
  auto at_step = [&, last = last](const Expr& e, const Expr& step) {
    loop::Substitution substitution;
    substitution.replace(last, step);
    return substitution(e);
  };
  auto first = [&](const Expr& block) { return block * index(steps_at_once); };
  auto place_of_b = [&](const Expr& block) -> loop::MatrixPlace {
    if (plan_.dot == 1) return {b_buffer_, b_base + at_step(k.b, first(block)), plan_.panel_n(), 1};
    Expr row = index(0);  // of words of `dot` steps
    for (size_t i = 0; i + 1 < k.loops.size(); ++i)
      row = row * at(k.loops[i].second) + loop::var_ref(k.loops[i].first);
    row = row * at(ceildiv(extent, plan_.dot)) + block + index(plan_.dot_shift != 0 ? 1 : 0);
    return {b_buffer_, (b_base + row * index(plan_.panel_n())) * index(plan_.dot), 1, plan_.dot};
  };
  auto multiply = [&](const loop::MatrixPlace& a, const Expr& block) {
    return loop::multiply_matrices(sums, {rows, columns, steps_at_once, a, place_of_b(block)});
  };
  const Expr count = at(ceildiv(extent, steps_at_once));
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
          // Past the last step are zeros of b: what a has there counts for nothing.
          Expr place = first(block) + step;
          if (!whole) place = loop::binary(BinaryOp::k_min, place, at(extent) - index(1));
          return element_of_matrix(loop::load(a_buffer_, offset + at_step(k.a, place)));
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

Expr ContractLowering::element_of_matrix(const Expr& a) const {
  constexpr uint64_t kTopBit = 128;
  if (plan_.dot_shift == 0) return a;
  const Expr flipped =
      loop::binary(BinaryOp::k_xor, loop::bitcast({DType::kU8, 1}, a), loop::const_int(DType::kU8, kTopBit));
  return loop::bitcast({b_buffer_->dtype, 1}, flipped);
}

loop::Buffer ContractLowering::cancel_shift(const Expr& b_base, std::vector<Stmt>& body) const {
  constexpr int64_t kBytes = 4, kBitsOfByte = 8;
  const loop::Buffer added =
      local_buffer("added", accumulator_dtype_, plan_.tile_n(), loop::Scope::kRegister);
  body.push_back(loop::alloc(added));
  body.push_back(for_columns([&](const Expr& n) {
    Expr word = loop::const_int(DType::kU32, 0);
    for (int64_t i = 0; i < kBytes; ++i) {
      const Expr byte = loop::load(b_buffer_, b_base * index(plan_.dot) + (index(i * plan_.panel_n()) + n));
      word = loop::binary(
          BinaryOp::k_or, word,
          loop::binary(BinaryOp::k_shl, loop::cast(DType::kU32, loop::bitcast({DType::kU8, 1}, byte)),
                       loop::const_int(DType::kU32, kBitsOfByte * i)));
    }
    return loop::store(added, n, loop::bitcast({DType::kI32, 1}, word));
  }));
  return added;
}

}  // namespace quernel::lower
