// Reductions, arg-reductions and scans.
#include <algorithm>
#include <numeric>

#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

struct Reduction {
  std::vector<int64_t> axes;
  bool keepdims = true;
  bool none = false;  // noop_with_empty_axes: nothing is reduced
};

// Axes are an operand from `since` on. Absent or empty axes mean all, unless noop_with_empty_axes says none.
Expected<Reduction> read_reduction(NodeImport& n, int64_t since) {
  Reduction r;
  r.keepdims = n.attr_int("keepdims", 1) != 0;
  bool noop = n.opset >= since && n.attr_int("noop_with_empty_axes", 0) != 0;
  if (n.opset < since && n.has(1))
    return n.invalid("axes are an attribute before opset " + std::to_string(since) + ", found an input");
  int rank = n.rank(n.in(0));
  std::optional<std::vector<int64_t>> axes;
  // As many axes as there are dims are all of them, whichever comes first.
  bool all =
      n.opset >= since && n.has(1) && rank > 0 && n.shape(n.in(1)) == Shape{rank} && !n.constant(n.in(1));
  if (!all) {
    QUERNEL_TRY(axes, n.axes(1, since));
  }
  if (axes && !axes->empty()) {
    QUERNEL_TRY(r.axes, n.axes_in_range(*axes, rank));
    std::sort(r.axes.begin(), r.axes.end());
  } else if (noop && !all) {
    r.none = true;
  } else {
    r.axes.resize(static_cast<size_t>(rank));
    std::iota(r.axes.begin(), r.axes.end(), 0);
  }
  return r;
}

ValueId reduce(NodeImport& n, OpKind op, ValueId x, const Reduction& r) {
  return r.none ? x : n.build.reduce(op, x, r.axes, r.keepdims);
}

constexpr int64_t kSumAxesInput = 13;   // ReduceSum took axes as an operand first
constexpr int64_t kRestAxesInput = 18;  // the others followed

Status reduce_plain(NodeImport& n, OpKind op, int64_t since = kRestAxesInput) {
  QUERNEL_TRY(Reduction r, read_reduction(n, since));
  return n.output(reduce(n, op, n.in(0), r));
}

// Of integers there is no largest or smallest element of nothing: what is found must not be beyond the first
// element.
Status reduce_to_extreme(NodeImport& n, OpKind op, BinaryOp choose) {
  QUERNEL_TRY(Reduction r, read_reduction(n, kRestAxesInput));
  ValueId x = n.in(0);
  Dim count = 1;
  for (int64_t axis : r.axes) count *= n.shape(x)[static_cast<size_t>(axis)];
  if (r.none || is_float(n.dtype(x)) || n.dtype(x) == DType::kBool || (count.is_const() && count.value() > 0))
    return n.output(reduce(n, op, x, r));
  ValueId y = reduce(n, op, x, r), first = x, zero = n.full(DType::kI64, {1}, 0);
  if (count == Dim(0) && always_le(1, element_count(n.shape(y))))
    return n.invalid("expected elements to choose from, found " + to_string(n.shape(x)));
  for (int64_t axis : r.axes) first = n.build.take(first, zero, axis);
  return n.output(n.binary(choose, y, n.build.reshape(first, n.shape(y))));
}

Status import_arg(NodeImport& n, OpKind op) {
  ValueId x = n.in(0);
  int64_t axis = n.attr_int("axis", 0);
  QUERNEL_TRY(axis, n.axis(axis, n.rank(x)));
  Attributes attributes;
  attributes.ints = {axis};
  attributes.dtype = DType::kI64;
  attributes.keepdims = n.attr_int("keepdims", 1) != 0;
  attributes.select_last = n.attr_int("select_last_index", 0) != 0;
  return n.output(n.build.add(op, {x}, std::move(attributes)));
}

}  // namespace

Status import_reduce_sum(NodeImport& n) { return reduce_plain(n, OpKind::k_reduce_sum, kSumAxesInput); }
Status import_reduce_prod(NodeImport& n) { return reduce_plain(n, OpKind::k_reduce_prod); }
Status import_reduce_max(NodeImport& n) {
  return reduce_to_extreme(n, OpKind::k_reduce_max, BinaryOp::k_max);
}
Status import_reduce_min(NodeImport& n) {
  return reduce_to_extreme(n, OpKind::k_reduce_min, BinaryOp::k_min);
}

Status import_reduce_mean(NodeImport& n) {
  QUERNEL_TRY(Reduction r, read_reduction(n, kRestAxesInput));
  return n.output(r.none ? n.in(0) : n.mean(n.in(0), r.axes, r.keepdims));
}

Status import_reduce_l1(NodeImport& n) {
  n.compute_wide();
  QUERNEL_TRY(Reduction r, read_reduction(n, kRestAxesInput));
  return n.output(reduce(n, OpKind::k_reduce_sum, n.unary(UnaryOp::k_abs, n.in(0)), r));
}

Status import_reduce_sum_square(NodeImport& n) {
  n.compute_wide();
  QUERNEL_TRY(Reduction r, read_reduction(n, kRestAxesInput));
  return n.output(reduce(n, OpKind::k_reduce_sum, n.binary(BinaryOp::k_mul, n.in(0), n.in(0)), r));
}

namespace {
// What roots and logarithms are taken of: integers as f64.
ValueId wide_float(NodeImport& n, ValueId x) {
  return is_float(n.dtype(x)) ? n.widen(x) : n.build.cast(x, DType::kF64);
}
}  // namespace

Status import_reduce_l2(NodeImport& n) {
  QUERNEL_TRY(Reduction r, read_reduction(n, kRestAxesInput));
  DType dtype = n.dtype(n.in(0));
  ValueId x = wide_float(n, n.in(0));
  ValueId sum = reduce(n, OpKind::k_reduce_sum, n.binary(BinaryOp::k_mul, x, x), r);
  return n.output(n.build.cast(n.unary(UnaryOp::k_sqrt, sum), dtype));
}

Status import_reduce_log_sum(NodeImport& n) {
  QUERNEL_TRY(Reduction r, read_reduction(n, kRestAxesInput));
  ValueId sum = reduce(n, OpKind::k_reduce_sum, wide_float(n, n.in(0)), r);
  return n.output(n.build.cast(n.unary(UnaryOp::k_log, sum), n.dtype(n.in(0))));
}

// m + log(sum(exp(x - m))) with m the largest element, or 0 where that is infinite.
Status import_reduce_log_sum_exp(NodeImport& n) {
  QUERNEL_TRY(Reduction r, read_reduction(n, kRestAxesInput));
  ValueId x = wide_float(n, n.in(0));
  DType dtype = n.dtype(n.in(0));
  if (r.none) return n.output(n.build.cast(n.unary(UnaryOp::k_log, n.unary(UnaryOp::k_exp, x)), dtype));
  ValueId largest = n.build.reduce(OpKind::k_reduce_max, x, r.axes, true);
  ValueId m = n.build.where(n.unary(UnaryOp::k_is_inf, largest), n.scalar(n.dtype(x), 0), largest);
  ValueId e = n.unary(UnaryOp::k_exp, n.binary(BinaryOp::k_sub, x, m));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, e, r.axes, r.keepdims);
  ValueId y = n.unary(UnaryOp::k_log, sum);
  return n.output(n.build.cast(n.binary(BinaryOp::k_add, y, n.build.reshape(m, n.shape(y))), dtype));
}

Status import_arg_max(NodeImport& n) { return import_arg(n, OpKind::k_reduce_argmax); }
Status import_arg_min(NodeImport& n) { return import_arg(n, OpKind::k_reduce_argmin); }

namespace {
Status import_scan(NodeImport& n, OpKind op) {
  bool exclusive = n.attr_int("exclusive", 0) != 0, reverse = n.attr_int("reverse", 0) != 0;
  int64_t axis = 0;  // the only one of a vector
  if (n.rank(n.in(0)) != 1 || n.constant(n.in(1))) {
    QUERNEL_TRY(axis, n.int_in(1, "axis"));
  }
  QUERNEL_TRY(axis, n.axis(axis, n.rank(n.in(0))));
  return n.output(n.build.scan(op, n.in(0), axis, exclusive, reverse));
}
}  // namespace

Status import_cum_sum(NodeImport& n) { return import_scan(n, OpKind::k_scan_sum); }
Status import_cum_prod(NodeImport& n) { return import_scan(n, OpKind::k_scan_prod); }

}  // namespace quernel::onnx_import
