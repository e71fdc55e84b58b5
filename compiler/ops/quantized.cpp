// Quantised values: elements of 4 or 8 bits whose neighbours share a scale and a zero point.
//   dequantize [g0, g1 ...]   x[i0, i1 ...], s[j0, j1 ...] (, z[j0, j1 ...])  ->  (x[i] - z[i / g]) * s[i / g] in f32
//   dequantize_rows [g]       q[.., k], s[.., j], t[.., j]  ->  q[.., k] * s[.., k / g] in f32; t[.., j] is the sum of group j of
//                             the result: kernels of int8 dot products read it instead of adding it up
//   dequantize_rows [g, b]    the same for up to three q, which are digits of base b, the most significant first:
//                             p[.., k], q[.., k], s[.., j], t[.., j]  ->  (p[.., k] * b + q[.., k]) * s[.., k / g]
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

Expected<TensorType> infer_quantized_rows(OpKind, const Types& inputs, const Attributes& a) {
  const TensorType& q = inputs[0];
  const size_t digits = inputs.size() - 2;
  for (size_t i = 0; i < digits; ++i)
    if (inputs[i].dtype != DType::kI8 || inputs[i].shape.empty() || inputs[i].shape != q.shape)
      return invalid_input("expected rows of i8, of one shape, found " + to_string(inputs[i]));
  if (a.ints.size() != (digits == 1 ? 1 : 2) || a.ints[0] < 1)
    return invalid_input(std::string("expected one group size") +
                         (digits == 1 ? "" : " and the base of the digits") + ", found " +
                         std::to_string(a.ints.size()) + " numbers");
  if (digits > 1 && (a.ints[1] < 2 || a.ints[1] > 256))
    return invalid_input("expected digits of base 2 to 256, found base " + std::to_string(a.ints[1]));
  Shape groups = q.shape;
  if (!(floormod(groups.back(), a.ints[0]) == Dim(0)))
    return invalid_input("expected whole groups of " + std::to_string(a.ints[0]) + " elements, found " +
                         to_string(q));
  groups.back() = floordiv(groups.back(), a.ints[0]);
  for (size_t i : {digits, digits + 1})
    if (const TensorType expected{DType::kF32, groups}; !(inputs[i] == expected))
      return invalid_input(std::string("expected ") + (i == digits ? "scales " : "sums ") +
                           to_string(expected) + ", found " + to_string(inputs[i]));
  return TensorType{DType::kF32, q.shape};
}

}  // namespace quernel::ops
