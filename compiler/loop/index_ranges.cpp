#include "loop/index_ranges.h"

#include <algorithm>

namespace quernel::loop {

Interval dtype_range(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  int width = bit_width(dtype);
  if (!is_integer(dtype) || width > 32) return {};
  if (is_unsigned_integer(dtype)) return {0, (int64_t{1} << width) - 1};
  return {-(int64_t{1} << (width - 1)), (int64_t{1} << (width - 1)) - 1};
}

Interval binary_range(const ExprNode& e, Interval a, Interval b) {
  int64_t c = 0;
  bool by_constant = as_const_int(e.args[1], &c) && c > 0;
  switch (e.binary) {
    case BinaryOp::k_add:
      return a + b;
    case BinaryOp::k_sub:
      return a + b * -1;
    case BinaryOp::k_mul:
      return a.finite() && b.finite() ? a * b : Interval{};
    case BinaryOp::k_max:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case BinaryOp::k_min:
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case BinaryOp::k_div:
    case BinaryOp::k_idiv:
      return by_constant ? truncate_divide(a, c) : Interval{};
    case BinaryOp::k_fdiv:
      return by_constant ? floor_divide(a, c) : Interval{};
    case BinaryOp::k_mod:
      return by_constant ? floor_remainder(a, c) : Interval{};
    case BinaryOp::k_fmod:
      return by_constant ? truncate_remainder(a, c) : Interval{};
    case BinaryOp::k_and:
      return by_constant ? Interval{0, c} : Interval{};
    default:
      return {};
  }
}

void IndexRanges::bound_loop(const Var& var, const Expr& extent) {
  int64_t count = 0;
  if (as_const_int(extent, &count) && count > 0) bound(var, {0, count - 1});
}

Interval IndexRanges::of(const ExprNode& e) {
  if (e.type.dtype != DType::kI64) return {};
  auto [slot, is_new] = memo_.try_emplace(&e);
  if (!is_new) return slot->second;
  Interval range = compute(e);
  return memo_[&e] = range;  // the recursion may have rehashed the map
}

Interval IndexRanges::compute(const ExprNode& e) {
  switch (e.kind) {
    case ExprKind::kConst:
      return Interval::of(static_cast<int64_t>(e.bits));
    case ExprKind::kVar: {
      auto found = bounds_.find(e.var.get());
      return found == bounds_.end() ? Interval{} : found->second;
    }
    case ExprKind::kCast:
      return dtype_range(e.args[0]->type.dtype);
    case ExprKind::kSelect:
      return hull((*this)(e.args[1]), (*this)(e.args[2]));
    case ExprKind::kBroadcast:
      return (*this)(e.args[0]);
    case ExprKind::kRamp:
      return (*this)(e.args[0]) + hull({0, 0}, Interval::of(e.type.lanes - 1) * e.stride);
    case ExprKind::kBinary:
      return binary_range(e, (*this)(e.args[0]), (*this)(e.args[1]));
    default:
      return {};
  }
}

}  // namespace quernel::loop
