// Gathers: rows along an axis (take), elements (index shape = result shape), and n-dimensional tuples
// (gather_nd). Negative indices count from the end; out of range ones are clamped into range.
#include "graph/empty_choice.h"
#include "ops/families.h"

namespace quernel::ops {

namespace {
Expected<TensorType> type_of(OpKind op, const Types& inputs, const Attributes& a);
}

Expected<TensorType> infer_gather(OpKind op, const Types& inputs, const Attributes& a) {
  QUERNEL_TRY(TensorType result, type_of(op, inputs, a));
  if (choices(op, inputs[0], a, inputs[1].shape) == Dim(0) && always_le(1, element_count(result.shape)))
    return invalid_input("expected elements to gather from, found " + to_string(inputs[0]));
  return result;
}

namespace {
Expected<TensorType> type_of(OpKind op, const Types& inputs, const Attributes& a) {
  const TensorType &x = inputs[0], &indices = inputs[1];
  int64_t rank = static_cast<int64_t>(x.shape.size()),
          index_rank = static_cast<int64_t>(indices.shape.size());
  if (indices.dtype != DType::kI64 && indices.dtype != DType::kI32 && indices.dtype != DType::kU8)
    return invalid_input("expected indices of i32, i64 or u8, found " + to_string(indices));
  int64_t parameter = a.ints.size() == 1 ? a.ints[0] : -1;
  TensorType result{x.dtype, {}};
  if (op == OpKind::k_gather_nd) {
    if (parameter < 0 || index_rank < 1 || parameter >= index_rank || !indices.shape.back().is_const())
      return invalid_input("expected batch_dims below the index rank and a static tuple size, found " +
                           to_string(indices));
    int64_t tuple = indices.shape.back().value();
    if (parameter + tuple > rank)
      return invalid_input("expected index tuples of at most " + std::to_string(rank - parameter) +
                           " values, found " + std::to_string(tuple));
    for (int64_t i = 0; i < parameter; ++i)
      if (!(x.shape[i] == indices.shape[i]))
        return invalid_input("expected equal batch dims, found " + to_string(x) + " and " +
                             to_string(indices));
    result.shape.assign(indices.shape.begin(), indices.shape.end() - 1);
    result.shape.insert(result.shape.end(), x.shape.begin() + parameter + tuple, x.shape.end());
    return result;
  }
  if (parameter < 0 || parameter >= rank) return invalid_input("expected an axis of " + to_string(x));
  if (op == OpKind::k_gather_elements) {
    bool fits = index_rank == rank;
    for (int64_t i = 0; fits && i < rank; ++i)
      fits = i == parameter || indices.shape[i] == x.shape[i] ||
             (indices.shape[i].is_const() && x.shape[i].is_const() &&
              indices.shape[i].value() <= x.shape[i].value());
    if (!fits)
      return invalid_input("expected indices no larger than the data off the axis, found " +
                           to_string(indices) + " for " + to_string(x));
    result.shape = indices.shape;
    return result;
  }
  result.shape.assign(x.shape.begin(), x.shape.begin() + parameter);
  result.shape.insert(result.shape.end(), indices.shape.begin(), indices.shape.end());
  result.shape.insert(result.shape.end(), x.shape.begin() + parameter + 1, x.shape.end());
  return result;
}
}  // namespace

}  // namespace quernel::ops
