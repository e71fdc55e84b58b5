// TopK: the positions of the first elements in sorted order, and what stands there. Unique: neighbours in
// sorted order.
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

ValueId gather_along(NodeImport& n, ValueId x, ValueId positions, int64_t axis) {
  Attributes along;
  along.ints = {axis};
  return n.build.add(OpKind::k_gather_elements, {x, positions}, std::move(along));
}

// Where an element of the sorted columns, [n,m], differs from the one before it; the first does. As in numpy,
// NaN equals NaN here.
ValueId starts_of_runs(NodeImport& n, ValueId sorted) {
  Dim rows = n.shape(sorted)[0], columns = n.shape(sorted)[1];
  bool has_first = rows.is_const() && rows.value() >= 1;
  // Where there may be no first row, one of zeros is before it.
  ValueId before = has_first ? n.build.slice(sorted, {0, 0}, {rows - 1, columns})
                             : n.build.slice(n.build.pad(sorted, {1, 0}, {0, 0}), {0, 0}, {rows, columns});
  ValueId after = has_first ? n.build.slice(sorted, {1, 0}, {rows, columns}) : sorted;
  ValueId differs = n.binary(BinaryOp::k_ne, before, after);
  if (is_float(n.dtype(sorted)))
    differs = n.binary(BinaryOp::k_and, differs,
                       n.unary(UnaryOp::k_not, n.binary(BinaryOp::k_and, n.unary(UnaryOp::k_is_nan, before),
                                                        n.unary(UnaryOp::k_is_nan, after))));
  if (has_first) return n.build.cat({n.full(DType::kBool, {1, columns}, 1), differs}, 0);
  ValueId row = n.build.reshape(n.positions(DType::kI64, rows), {rows, 1});
  return n.binary(BinaryOp::k_or, n.binary(BinaryOp::k_eq, row, 0.0), differs);
}

// The numbers of elements in the order of their values along axis 0, equal ones having equal numbers: i64.
ValueId dense_ranks(NodeImport& n, ValueId x) {
  ValueId order = n.build.argsort(x, 0, n.shape(x)[0], false);
  ValueId starts = n.build.cast(starts_of_runs(n, gather_along(n, x, order, 0)), DType::kI64);
  ValueId ranks = n.build.scan(OpKind::k_scan_sum, starts, 0, false, false);
  return n.build.scatter_unique(ranks, order, 0);
}

// One number per row of x, [n,m], that orders the rows lexicographically: pairs of columns become one column,
// until one is left.
ValueId row_ranks(NodeImport& n, ValueId x, int64_t columns) {
  Dim rows = n.shape(x)[0];
  if (columns == 0) return n.full(DType::kI64, {rows, 1}, 0);
  while (columns > 1) {
    x = dense_ranks(n, x);
    if (columns % 2) {
      x = n.build.pad(x, {0, 0}, {0, 1});
      columns += 1;
    }
    auto every_second = [&](int64_t first) { return n.build.slice(x, {0, first}, {rows, columns}, {1, 2}); };
    x = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, every_second(0), n.number(DType::kI64, rows + 1)),
                 every_second(1));
    columns /= 2;
  }
  return x;
}

}  // namespace

Status import_top_k(NodeImport& n) {
  ValueId x = n.in(0);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -1), n.rank(x)));
  bool largest = true;
  Dim count = 0;
  if (n.opset < 10) {
    count = n.attr_int("k", 0);
    if (n.has(1)) return n.invalid("k is an attribute before opset 10, found an input");
  } else {
    QUERNEL_TRY(Shape given, n.dims_in(1, "K"));
    if (given.size() != 1)
      return n.invalid("expected K of one element, found " + std::to_string(given.size()));
    count = given[0];
  }
  if (n.opset >= 11) {
    largest = n.attr_int("largest", 1) != 0;
    n.ignore_attribute("sorted");  // any order will do where it is 0
  }
  if (always_lt(count, 0)) return n.invalid("expected K of at least 0, found " + to_string(count));
  Dim size = n.shape(x)[static_cast<size_t>(axis)];
  if (!size.is_const() && size.is_bound() && !always_le(count, size))
    QUERNEL_CHECK(n.require_at_least(size - count, 0, "what the sorted dim has beyond K"));
  ValueId positions = n.build.argsort(x, axis, count, largest);
  return n.set_outputs({gather_along(n, x, positions, axis), positions});
}

// The different slices along an axis, or elements of the flattened tensor; how many is found at run time.
Status import_unique(NodeImport& n) {
  ValueId x = n.in(0);
  bool ascending = n.attr_int("sorted", 1) != 0;
  int64_t axis = 0, columns = 1;
  if (n.attribute("axis")) {
    QUERNEL_TRY(axis, n.axis(n.attr_int("axis", 0), n.rank(x)));
    Dim others = 1;
    for (int64_t d = 0; d < n.rank(x); ++d)
      if (d != axis) others *= n.shape(x)[static_cast<size_t>(d)];
    QUERNEL_TRY(columns, n.dim(others));
  } else {
    x = n.build.reshape(x, {element_count(n.shape(x))});
  }
  Dim size = n.shape(x)[static_cast<size_t>(axis)];
  std::vector<int64_t> axis_first{axis};
  for (int64_t d = 0; d < n.rank(x); ++d)
    if (d != axis) axis_first.push_back(d);
  ValueId key = row_ranks(n, n.build.reshape(n.build.permute(x, axis_first), {size, columns}), columns);
  // In sorted order equal ones are neighbours, the first of the tensor first.
  key = n.build.reshape(key, {size});
  ValueId order = n.build.argsort(key, 0, size, false);
  ValueId sorted = n.build.reshape(n.build.take(key, order, 0), {size, 1});
  ValueId starts = n.build.reshape(starts_of_runs(n, sorted), {size});
  ValueId place = n.build.scatter_unique(n.positions(DType::kI64, size), order, 0);  // in sorted order
  auto numbers_of = [&](ValueId mask) {
    ValueId count = n.build.scan(OpKind::k_scan_sum, n.build.cast(mask, DType::kI64), 0, false, false);
    return n.binary(BinaryOp::k_sub, count, 1.0);
  };
  ValueId first, inverse;
  if (ascending) {
    first = n.build.take(order, n.positions_where(starts), 0);
    inverse = n.build.take(numbers_of(starts), place, 0);
  } else {
    ValueId is_first = n.build.take(starts, place, 0);
    ValueId start = n.build.scan(
        OpKind::k_scan_max, n.build.where(starts, n.positions(DType::kI64, size), n.scalar(DType::kI64, 0)),
        0, false, false);
    first = n.positions_where(is_first);
    inverse = n.build.take(numbers_of(is_first), n.build.take(order, n.build.take(start, place, 0), 0), 0);
  }
  Dim count = n.shape(first)[0];
  ValueId counts = n.build.scatter(OpKind::k_scatter_elements, n.full(DType::kI64, {size}, 0), inverse,
                                   n.full(DType::kI64, {size}, 1), 0, ScatterMode::kAdd);
  return n.set_outputs({n.build.take(x, first, axis), first, inverse, n.build.slice(counts, {0}, {count})});
}

}  // namespace quernel::onnx_import
