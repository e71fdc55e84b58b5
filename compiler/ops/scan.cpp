// Scans: running sums, products, maxima and minima along one axis; exclusive ones start at the identity.
#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_scan(OpKind op, const Types& inputs, const Attributes& a) {
  const TensorType& x = inputs[0];
  if (a.ints.size() != 1 || a.ints[0] < 0 || a.ints[0] >= static_cast<int64_t>(x.shape.size()))
    return invalid_input("expected an axis of " + to_string(x));
  if (!is_compute(x.dtype)) return unsupported("expected a compute dtype, found " + to_string(x));
  bool accumulates = op == OpKind::k_scan_sum || op == OpKind::k_scan_prod;
  if (!accumulates) return x;
  if (x.dtype == DType::kBool) return unsupported("expected a number, found " + to_string(x));
  if (is_float(a.accumulator) != is_float(x.dtype) || a.accumulator >= DType::kBool)
    return invalid_input("expected an accumulator " + std::string(is_float(x.dtype) ? "float" : "integer") +
                         " for " + to_string(x) + ", found " + std::string(to_string(a.accumulator)));
  return x;
}

}  // namespace quernel::ops
