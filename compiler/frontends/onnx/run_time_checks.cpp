#include "frontends/onnx/run_time_checks.h"

#include <numeric>

namespace quernel::onnx_import {
namespace {

// The greatest or the least element, but at least (at most) `bound`, which is what no element gives.
ValueId extreme(NodeImport& n, ValueId x, bool greatest, double bound) {
  std::vector<int64_t> axes(static_cast<size_t>(n.rank(x)));
  std::iota(axes.begin(), axes.end(), 0);
  if (!axes.empty())
    x = n.build.reduce(greatest ? OpKind::k_reduce_max : OpKind::k_reduce_min, x, axes, false);
  return n.binary(greatest ? BinaryOp::k_max : BinaryOp::k_min, x, bound);
}

Status check_known(NodeImport& n, const Tensor& indices, int64_t size, std::string_view what) {
  for (int64_t i = 0; i < indices.count(); ++i) {
    int64_t index = element_as_i64(indices, i);
    if (index < -size || index >= size)
      return n.invalid(std::string(what) + " " + std::to_string(index) + " is out of range for a dim of " +
                       std::to_string(size));
  }
  return {};
}

// In a dim of a known size, not empty: the error's range is that of indices. Without one out of range the
// value is 0.
void check_in_known_dim(NodeImport& n, ValueId x, int64_t size, std::string_view what) {
  ValueId zero = n.scalar(DType::kI64, 0);
  auto keep = [&](BinaryOp compare, int64_t limit) {
    return n.build.where(n.binary(compare, x, static_cast<double>(limit)), x, zero);
  };
  ValueId above = extreme(n, keep(BinaryOp::k_ge, size), true, 0),
          below = extreme(n, keep(BinaryOp::k_lt, -size), false, 0);
  ValueId value = n.build.where(n.binary(BinaryOp::k_gt, above, 0.0), above, below);
  require_in_range(n, what, value, -size, size - 1);
}

// In any dim: an index above it is its own value, one below it at most -2. Without either the value is 0, or
// -1 where the dim is empty or its size is computed.
void check_in_dim(NodeImport& n, ValueId x, const Dim& size, std::string_view what) {
  Dim max = size.is_bound() ? size - 1 : Dim(-1);
  ValueId none = n.scalar(DType::kI64, -1), length = n.number(DType::kI64, size);
  ValueId is_above = n.binary(BinaryOp::k_ge, x, length),
          is_below = n.binary(BinaryOp::k_lt, x, n.unary(UnaryOp::k_neg, length));
  ValueId above = extreme(n, n.build.where(is_above, x, none), true, -1),
          below = extreme(n, n.build.where(is_below, n.binary(BinaryOp::k_min, x, -2.0), none), false, -1);
  ValueId value =
      n.build.where(n.binary(BinaryOp::k_lt, below, -1.0), below, n.number(DType::kI64, min(max, 0)));
  value = n.build.where(n.binary(BinaryOp::k_ge, above, 0.0), above, value);
  require_in_range(n, what, value, -1, max);
}

}  // namespace

void require_in_range(NodeImport& n, std::string_view what, ValueId value, int64_t min, const Dim& max) {
  Symbol symbol{std::string(what) + " of node " + n.build.location().node, min, max.bounds().hi, 1, true, {}};
  if (!max.is_const()) symbol.bound = {max};
  n.build.graph().add_symbol(std::move(symbol), n.build.reshape(value, {}));
}

Status check_indices(NodeImport& n, ValueId indices, const Dim& size, std::string_view what) {
  if (size.is_const())
    if (const Tensor* known = n.constant(indices)) return check_known(n, *known, size.value(), what);
  if (!n.choices.checked) return {};
  ValueId x = n.build.cast(indices, DType::kI64);
  if (size.is_const() && size.value() > 0)
    check_in_known_dim(n, x, size.value(), what);
  else
    check_in_dim(n, x, size, what);
  return n.build.status();
}

Status check_index_tuples(NodeImport& n, ValueId tuples, const Shape& data, int64_t first) {
  Shape shape = n.shape(tuples);
  if (shape.empty() || !shape.back().is_const()) return {};  // the op says what is wrong
  int64_t width = shape.back().value();
  if (first < 0 || width > static_cast<int64_t>(data.size()) - first) return {};
  for (int64_t k = 0; k < width; ++k) {
    Shape starts(shape.size(), Dim(0)), stops = shape;
    starts.back() = k;
    stops.back() = k + 1;
    ValueId indices = width == 1 ? tuples : n.build.slice(tuples, starts, stops);
    std::string what = width == 1 ? "index" : "index " + std::to_string(k);
    QUERNEL_CHECK(check_indices(n, indices, data[static_cast<size_t>(first + k)], what));
  }
  return {};
}

}  // namespace quernel::onnx_import
