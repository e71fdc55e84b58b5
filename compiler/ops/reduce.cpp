// Reductions over any subset of axes. The empty reduction gives the dtype's identity; argmax and argmin need
// elements.
#include <algorithm>

#include "graph/empty_choice.h"
#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_reduce(OpKind op, const Types& inputs, const Attributes& a) {
  const TensorType& x = inputs[0];
  int64_t rank = static_cast<int64_t>(x.shape.size());
  if (!std::is_sorted(a.ints.begin(), a.ints.end()) ||
      std::adjacent_find(a.ints.begin(), a.ints.end()) != a.ints.end() ||
      (!a.ints.empty() && (a.ints.front() < 0 || a.ints.back() >= rank)))
    return invalid_input("expected distinct ascending axes of " + to_string(x));
  bool is_arg = op == OpKind::k_reduce_argmax || op == OpKind::k_reduce_argmin;
  bool is_logical = op == OpKind::k_reduce_and || op == OpKind::k_reduce_or;
  if (is_logical && is_float(x.dtype))
    return unsupported("expected bool or an integer, found " + to_string(x));
  if (!is_logical && x.dtype == DType::kBool && (op == OpKind::k_reduce_sum || op == OpKind::k_reduce_prod))
    return unsupported("expected a number, found " + to_string(x));
  if (!is_compute(x.dtype)) return unsupported("expected a compute dtype, found " + to_string(x));
  bool accumulates = op == OpKind::k_reduce_sum || op == OpKind::k_reduce_prod;
  if (accumulates && (is_float(a.accumulator) != is_float(x.dtype) || a.accumulator >= DType::kBool))
    return invalid_input("expected an accumulator " + std::string(is_float(x.dtype) ? "float" : "integer") +
                         " for " + to_string(x) + ", found " + std::string(to_string(a.accumulator)));
  TensorType result{is_arg ? a.dtype : x.dtype, {}};
  if (is_arg && a.dtype != DType::kI64 && a.dtype != DType::kI32)
    return invalid_input("expected an index dtype of i32 or i64, found " + std::string(to_string(a.dtype)));
  if (is_arg && a.ints.size() != 1)
    return invalid_input("expected one axis, found " + std::to_string(a.ints.size()));
  for (int64_t i = 0; i < rank; ++i) {
    bool reduced = std::binary_search(a.ints.begin(), a.ints.end(), i);
    if (!reduced)
      result.shape.push_back(x.shape[i]);
    else if (a.keepdims)
      result.shape.push_back(1);
  }
  if (std::optional<Dim> n = choices(op, x, a, {});
      n && *n == Dim(0) && always_le(1, element_count(result.shape)))
    return invalid_input("expected a non-empty axis, found " + to_string(x));
  return result;
}

}  // namespace quernel::ops
