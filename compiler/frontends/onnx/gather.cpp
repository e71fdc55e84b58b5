// Gathers and OneHot.
#include "frontends/onnx/operators.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

Status check_index_dtype(NodeImport& n, ValueId indices) {
  if (n.dtype(indices) == DType::kI32 || n.dtype(indices) == DType::kI64) return {};
  return n.invalid("expected int32 or int64 indices, found " + std::string(to_string(n.dtype(indices))));
}

}  // namespace

Status import_gather(NodeImport& n) {
  ValueId x = n.in(0), indices = n.in(1);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 0), n.rank(x)));
  QUERNEL_CHECK(check_index_dtype(n, indices));
  Dim size = n.shape(x)[axis];
  QUERNEL_CHECK(check_indices(n, indices, size));
  const Tensor* known = n.constant(indices);
  if (!known || known->count() != 1 || !size.is_const()) return n.output(n.build.take(x, indices, axis));
  // One constant index is a slice.
  int64_t index = element_as_i64(*known, 0);
  if (index < 0) index += size.value();
  Shape starts(n.shape(x).size(), Dim(0)), stops = n.shape(x), result = n.shape(x);
  starts[axis] = index;
  stops[axis] = index + 1;
  result.erase(result.begin() + axis);
  result.insert(result.begin() + axis, known->dims.size(), Dim(1));
  return n.output(n.build.reshape(n.build.slice(x, starts, stops), result));
}

Status import_gather_elements(NodeImport& n) {
  ValueId x = n.in(0), indices = n.in(1);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 0), n.rank(x)));
  QUERNEL_CHECK(check_index_dtype(n, indices));
  QUERNEL_CHECK(check_indices(n, indices, n.shape(x)[axis]));
  Attributes attributes;
  attributes.ints = {axis};
  return n.output(n.build.add(OpKind::k_gather_elements, {x, indices}, std::move(attributes)));
}

Status import_gather_nd(NodeImport& n) {
  QUERNEL_CHECK(check_index_dtype(n, n.in(1)));
  int64_t batch_dims = n.opset < 12 ? 0 : n.attr_int("batch_dims", 0);
  QUERNEL_CHECK(check_index_tuples(n, n.in(1), n.shape(n.in(0)), batch_dims));
  Attributes attributes;
  attributes.ints = {batch_dims};
  return n.output(n.build.add(OpKind::k_gather_nd, {n.in(0), n.in(1)}, std::move(attributes)));
}

namespace {

Expected<Dim> one_hot_depth(NodeImport& n) {
  constexpr int64_t kMaxDepth = int64_t{1} << 24;
  Shape depths;
  if (is_float(n.dtype(n.in(1)))) {
    QUERNEL_TRY(double depth, n.float_in(1, "depth"));
    depths = {depth >= 0 && depth <= static_cast<double>(kMaxDepth) ? static_cast<int64_t>(depth) : -1};
  } else {
    QUERNEL_TRY(depths, n.dims_in(1, "depth"));
  }
  bool known = depths.size() == 1 && depths[0].is_const();
  if (depths.size() != 1 || (known && (depths[0].value() < 0 || depths[0].value() > kMaxDepth)))
    return n.invalid("expected one depth of at least 0 and at most 2^24");
  return max(depths[0], 0);
}

}  // namespace

// Compares indices with 0 … depth-1 along a new axis. Indices out of range give all-off rows.
Status import_one_hot(NodeImport& n) {
  // Of a dtype that holds every depth.
  ValueId indices = n.widen(n.in(0));
  if (!is_float(n.dtype(indices)) && bit_width(n.dtype(indices)) < 32)
    indices = n.build.cast(indices, DType::kI32);
  QUERNEL_TRY(Dim depth, one_hot_depth(n));
  int rank = n.rank(indices);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -1), rank + 1));
  if (n.shape(n.in(2)) != Shape{2})
    return n.invalid("expected values of [2], found " + to_string(n.shape(n.in(2))));
  DType dtype = n.dtype(indices);
  ValueId wrapped = n.build.where(n.binary(BinaryOp::k_lt, indices, 0.0),
                                  n.binary(BinaryOp::k_add, indices, n.number(dtype, depth)), indices);
  Shape shape = n.shape(indices);
  shape.insert(shape.begin() + axis, Dim(1));
  ValueId range = n.positions(dtype, depth, static_cast<int>(rank - axis));
  ValueId hit = n.binary(BinaryOp::k_eq, n.build.reshape(wrapped, shape), range);
  ValueId off = n.build.reshape(n.build.slice(n.in(2), {0}, {1}), {}),
          on = n.build.reshape(n.build.slice(n.in(2), {1}, {2}), {});
  return n.output(n.build.where(hit, on, off));
}

// The slices along an axis, or the elements of the flattened tensor, for which the condition holds; how many
// is found at run time.
Status import_compress(NodeImport& n) {
  ValueId x = n.in(0), condition = n.in(1);
  int64_t axis = 0;
  if (n.attribute("axis")) {
    QUERNEL_TRY(axis, n.axis(n.attr_int("axis", 0), n.rank(x)));
  } else {
    x = n.build.reshape(x, {element_count(n.shape(x))});
  }
  Dim size = n.shape(x)[static_cast<size_t>(axis)];
  if (n.rank(condition) != 1 || n.dtype(condition) != DType::kBool)
    return n.invalid("expected a condition of rank 1, bool, found " +
                     to_string(TensorType{n.dtype(condition), n.shape(condition)}));
  if (!always_le(n.shape(condition)[0], size))
    return n.invalid("expected a condition of at most " + to_string(size) + " elements, found " +
                     to_string(n.shape(condition)));
  return n.output(n.build.take(x, n.positions_where(condition), axis));
}

}  // namespace quernel::onnx_import
