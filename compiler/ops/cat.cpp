// cat: operands of one dtype, equal on all dims but the axis, laid one after the other along it.
#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_cat(OpKind, const Types& inputs, const Attributes& attributes) {
  TensorType result = inputs[0];
  if (attributes.ints.size() != 1 || attributes.ints[0] < 0 ||
      attributes.ints[0] >= static_cast<int64_t>(result.shape.size()))
    return invalid_input("expected an axis of " + to_string(result));
  size_t axis = static_cast<size_t>(attributes.ints[0]);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const TensorType& x = inputs[i];
    bool fits = x.dtype == result.dtype && x.shape.size() == result.shape.size();
    for (size_t d = 0; fits && d < x.shape.size(); ++d) fits = d == axis || x.shape[d] == result.shape[d];
    if (!fits)
      return invalid_input("expected operands equal but for dim " + std::to_string(axis) + ", found " +
                           to_string(inputs[0]) + " and " + to_string(x));
    result.shape[axis] = result.shape[axis] + x.shape[axis];
  }
  return result;
}

}  // namespace quernel::ops
