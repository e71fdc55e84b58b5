// Quantised values: elements of 4 or 8 bits whose neighbours share a scale and a zero point.
//   dequantize [g0, g1 ...]   x[i0, i1 ...], s[j0, j1 ...] (, z[j0, j1 ...])  ->  (x[i] - z[i / g]) * s[i / g] in f32
#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_quantized(OpKind, const Types& inputs, const Attributes& a) {
  const TensorType &x = inputs[0], &scales = inputs[1];
  if (!is_packed(x.dtype) && !is_byte(x.dtype))
    return invalid_input("expected elements of i4, u4, i8 or u8, found " + to_string(x));
  if (!is_float(scales.dtype) || !is_compute(scales.dtype) || scales.dtype == DType::kF64)
    return invalid_input("expected scales of f32, f16 or bf16, found " + to_string(scales));
  if (a.ints.size() != x.shape.size())
    return invalid_input("expected a group size per dim of " + to_string(x) + ", found " +
                         std::to_string(a.ints.size()));
  Shape groups;
  for (size_t d = 0; d < a.ints.size(); ++d) {
    if (a.ints[d] < 1)
      return invalid_input("expected groups of at least one element, found " + std::to_string(a.ints[d]));
    groups.push_back(ceildiv(x.shape[d], a.ints[d]));
  }
  if (scales.shape != groups)
    return invalid_input("expected scales " + to_string(groups) + ", found " + to_string(scales));
  if (inputs.size() > 2) {
    const TensorType& zeros = inputs[2];
    if (zeros.shape != groups || (zeros.dtype != x.dtype && zeros.dtype != DType::kF32))
      return invalid_input("expected zero points " + to_string(TensorType{x.dtype, groups}) +
                           ", or of f32, found " + to_string(zeros));
  }
  return TensorType{DType::kF32, x.shape};
}

}  // namespace quernel::ops
