// Quantised values: elements of 4 or 8 bits whose neighbours share a scale and a zero point.
//   dequantize [g0, g1 ...]   x[i0, i1 ...], s[j0, j1 ...] (, z[j0, j1 ...])  ->  (x[i] - z[i / g]) * s[i / g] in f32
//   dequantize_rows [g]       q[.., k], s[.., j], t[.., j]  ->  q[.., k] * s[.., k / g] in f32; t[.., j] is the sum of group j of
//                             the result: kernels of int8 dot products read it instead of adding it up. With t of i32, a row has
//                             one scale, s[.., 0], and t[.., j] is the sum of group j of q
//   dequantize_rows [g, b]    the same for up to three q, which are digits of base b, the most significant first:
//                             p[.., k], q[.., k], s[.., j], t[.., j]  ->  (p[.., k] * b + q[.., k]) * s[.., k / g]
//   dequantize_rows [g, b, f] the same with t that are sums times f, by which kernels would multiply them. b of a single q: 0
#include <cstdlib>

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

namespace {
constexpr int64_t kMostFactor = 128;  // of sums: the middle of bytes
}

Expected<TensorType> infer_quantized_rows(OpKind, const Types& inputs, const Attributes& a) {
  const TensorType& q = inputs[0];
  const size_t digits = inputs.size() - 2;
  for (size_t i = 0; i < digits; ++i)
    if (inputs[i].dtype != DType::kI8 || inputs[i].shape.empty() || inputs[i].shape != q.shape)
      return invalid_input("expected rows of i8, of one shape, found " + to_string(inputs[i]));
  if (a.ints.empty() || a.ints.size() > 3 || (digits > 1 && a.ints.size() == 1) || a.ints[0] < 1)
    return invalid_input(
        std::string("expected a group size") + (digits == 1 ? "" : ", the base of the digits") +
        " and at most a factor of the sums, found " + std::to_string(a.ints.size()) + " numbers");
  if (digits > 1 && (a.ints[1] < 2 || a.ints[1] > 256))
    return invalid_input("expected digits of base 2 to 256, found base " + std::to_string(a.ints[1]));
  if (digits == 1 && a.ints.size() > 1 && a.ints[1] != 0)
    return invalid_input("expected base 0 of one digit, found base " + std::to_string(a.ints[1]));
  if (a.ints.size() > 2 && (a.ints[2] == 0 || std::abs(a.ints[2]) > kMostFactor))
    return invalid_input("expected a factor of the sums from -" + std::to_string(kMostFactor) + " to " +
                         std::to_string(kMostFactor) + ", not 0, found " + std::to_string(a.ints[2]));
  Shape groups = q.shape;
  if (!(floormod(groups.back(), a.ints[0]) == Dim(0)))
    return invalid_input("expected whole groups of " + std::to_string(a.ints[0]) + " elements, found " +
                         to_string(q));
  groups.back() = floordiv(groups.back(), a.ints[0]);
  const bool of_whole_rows =
      digits == 1 && inputs[digits + 1].dtype == DType::kI32 && q.shape.back().is_const();
  Shape scales = groups;
  if (of_whole_rows) scales.back() = 1;
  const TensorType expected[] = {{DType::kF32, scales}, {of_whole_rows ? DType::kI32 : DType::kF32, groups}};
  for (size_t i : {0, 1})
    if (!(inputs[digits + i] == expected[i]))
      return invalid_input(std::string("expected ") + (i == 0 ? "scales " : "sums ") +
                           to_string(expected[i]) + ", found " + to_string(inputs[digits + i]));
  return TensorType{DType::kF32, q.shape};
}

}  // namespace quernel::ops
