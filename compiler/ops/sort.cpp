// argsort: positions along an axis in the order of the elements there, all or the first few of them. The
// order is total: -0 equals +0, NaN equals NaN and is above everything else; equal elements keep their order,
// ascending and descending. Values come from gather_elements.
#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_sort(OpKind, const Types& inputs, const Attributes& a) {
  const TensorType& x = inputs[0];
  if (a.ints.size() != 1 || a.ints[0] < 0 || a.ints[0] >= static_cast<int64_t>(x.shape.size()))
    return invalid_input("expected an axis of " + to_string(x));
  if (!is_compute(x.dtype)) return unsupported("expected a compute dtype, found " + to_string(x));
  if (a.shape.size() != 1) return invalid_input("expected the number of positions");
  const Dim &count = a.shape[0], &size = x.shape[static_cast<size_t>(a.ints[0])];
  bool fits =
      !count.is_const() || (count.value() >= 0 && (!size.is_const() || count.value() <= size.value()));
  if (!fits)
    return invalid_input("expected at most " + to_string(size) + " positions, found " + to_string(count));
  TensorType result{DType::kI64, x.shape};
  result.shape[static_cast<size_t>(a.ints[0])] = count;
  return result;
}

}  // namespace quernel::ops
