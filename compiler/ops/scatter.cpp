// Scatters: a copy of the template with updates at the places that the indices name, applied in row-major
// order: elements along an axis, rows of an axis (the inverse of take), and n-dimensional tuples. Negative
// indices count from the end; updates whose indices are out of range are ignored. Sums and products round to
// the dtype at each update.
#include "ops/families.h"

namespace quernel::ops {
namespace {

// The shape of the updates, or what is wrong with the indices.
Expected<Shape> elements_shape(const TensorType& x, const TensorType& indices, int64_t axis) {
  bool fits = indices.shape.size() == x.shape.size();
  for (size_t i = 0; fits && i < x.shape.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || indices.shape[i] == x.shape[i] ||
           (indices.shape[i].is_const() && x.shape[i].is_const() &&
            indices.shape[i].value() <= x.shape[i].value());
  if (!fits)
    return invalid_input("expected indices no larger than the template off the axis, found " +
                         to_string(indices) + " for " + to_string(x));
  return indices.shape;
}

Shape rows_shape(const TensorType& x, const TensorType& indices, int64_t axis) {
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return shape;
}

Expected<Shape> tuples_shape(const TensorType& x, const TensorType& indices, int64_t batch) {
  int64_t index_rank = static_cast<int64_t>(indices.shape.size());
  if (batch < 0 || index_rank < 1 || batch >= index_rank || !indices.shape.back().is_const())
    return invalid_input("expected batch_dims below the index rank and a static tuple size, found " +
                         to_string(indices));
  int64_t rank = static_cast<int64_t>(x.shape.size()), tuple = indices.shape.back().value();
  if (batch + tuple > rank)
    return invalid_input("expected index tuples of at most " + std::to_string(rank - batch) +
                         " values, found " + std::to_string(tuple));
  for (int64_t i = 0; i < batch; ++i)
    if (!(x.shape[i] == indices.shape[i]))
      return invalid_input("expected equal batch dims, found " + to_string(x) + " and " + to_string(indices));
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), x.shape.begin() + batch + tuple, x.shape.end());
  return shape;
}

}  // namespace

Expected<TensorType> infer_scatter(OpKind op, const Types& inputs, const Attributes& a) {
  const TensorType &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  if (!is_compute(x.dtype)) return unsupported("expected a compute dtype, found " + to_string(x));
  if (indices.dtype != DType::kI64 && indices.dtype != DType::kI32)
    return invalid_input("expected indices of i32 or i64, found " + to_string(indices));
  bool computes = a.scatter == ScatterMode::kAdd || a.scatter == ScatterMode::kMul;
  if (computes && x.dtype == DType::kBool) return unsupported("expected a number, found " + to_string(x));
  int64_t parameter = a.ints.size() == 1 ? a.ints[0] : -1;
  Shape expected;
  if (op == OpKind::k_scatter_nd) {
    QUERNEL_TRY(expected, tuples_shape(x, indices, parameter));
  } else if (parameter < 0 || parameter >= static_cast<int64_t>(x.shape.size())) {
    return invalid_input("expected an axis of " + to_string(x));
  } else if (op == OpKind::k_scatter_rows) {
    expected = rows_shape(x, indices, parameter);
  } else {
    QUERNEL_TRY(expected, elements_shape(x, indices, parameter));
  }
  if (!(updates == TensorType{x.dtype, expected}))
    return invalid_input("expected updates of " + to_string(TensorType{x.dtype, expected}) + ", found " +
                         to_string(updates));
  return x;
}

}  // namespace quernel::ops
