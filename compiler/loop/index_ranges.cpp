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
  const bool by_positive = a.lo >= 0 && b.lo > 0;
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
      if (!by_constant && by_positive) return {0, a.hi};
      return by_constant ? truncate_divide(a, c) : Interval{};
    case BinaryOp::k_fdiv:
      if (!by_constant && by_positive) return {0, a.hi};
      return by_constant ? floor_divide(a, c) : Interval{};
    case BinaryOp::k_mod:
      if (!by_constant && by_positive) return {0, std::min(a.hi, b.hi)};
      return by_constant ? floor_remainder(a, c) : Interval{};
    case BinaryOp::k_fmod:
      if (!by_constant && by_positive) return {0, std::min(a.hi, b.hi)};
      return by_constant ? truncate_remainder(a, c) : Interval{};
    case BinaryOp::k_and:
      return by_constant ? Interval{0, c} : Interval{};
    default:
      return {};
  }
}

void IndexRanges::bound_loop(const Var& var, const Expr& extent) {
  int64_t most = (*this)(extent).hi;
  bound(var, {0, most < Interval::kUnknown ? std::max<int64_t>(most - 1, 0) : most});
}

// What a buffer gets from itself, the index of the largest element so far for example, is no new value;
// nothing where all of `e` is such.
std::optional<Interval> IndexRanges::stored_range(const Expr& e, const BufferNode& b) {
  if (e->kind == ExprKind::kBroadcast) return stored_range(e->args[0], b);
  if (e->kind == ExprKind::kLoad && e->buffer.get() == &b && e->args.size() == 1) return std::nullopt;
  if (e->kind != ExprKind::kSelect) return (*this)(e);
  std::optional<Interval> x = stored_range(e->args[1], b), y = stored_range(e->args[2], b);
  return x && y ? hull(*x, *y) : x ? x : y;
}

void IndexRanges::read_stores(const StmtNode& s, Stored& stored) {
  if (s.kind == StmtKind::kFor) bound_loop(s.var, s.extent);
  if (s.kind == StmtKind::kLet) bound(s.var, (*this)(s.value));
  if (s.kind == StmtKind::kStore && s.buffer->scope != Scope::kGlobal && s.buffer->dtype == DType::kI64)
    if (std::optional<Interval> range = stored_range(s.value, *s.buffer)) {
      auto [known, is_new] = stored.try_emplace(s.buffer.get(), *range);
      if (!is_new) known->second = hull(known->second, *range);
    }
  for (const Stmt& child : s.body)
    if (child) read_stores(*child, stored);
}

// The first reading takes elements of every buffer for unknown, the second has what the first one found.
void IndexRanges::bound_elements(const StmtNode& body) {
  for (int reading = 0; reading < 2; ++reading) {
    Stored stored;
    read_stores(body, stored);
    memo_.clear();
    elements_ = std::move(stored);
    if (elements_.empty()) return;
  }
}

Interval IndexRanges::element(const BufferNode& b) const {
  auto found = elements_.find(&b);
  return found == elements_.end() ? Interval{} : found->second;
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
    case ExprKind::kLoad:
      return e.args.size() == 1 ? element(*e.buffer) : hull(element(*e.buffer), (*this)(e.args[2]));
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
