// Affine quantisation: x stands for (x - zero point) * scale. What the quantised operators of every domain
// share.
#pragma once

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// Scale and zero point (kNoValue: 0), which broadcast to the quantised tensor.
struct Quantization {
  ValueId scale = kNoValue, zero = kNoValue;
};

// (x - zero) * scale in f32, or f64 scales' f64.
ValueId dequantize(NodeImport& n, ValueId x, const Quantization& q);
// x / scale rounded half to even, plus the zero point, saturated to `dtype`. The division is in `precision`,
// else in the scale's dtype.
ValueId quantize(NodeImport& n, ValueId x, const Quantization& q, DType dtype,
                 std::optional<DType> precision = {});

// To u8, with the scale that spans the data and zero.
Quantization dynamic_quantization(NodeImport& n, ValueId x);

// Scales [] or [1]: per tensor; [C]: along `axis`; of the tensor's rank: in blocks of `block` along it.
Expected<ValueId> spread_parameter(NodeImport& n, ValueId parameter, const Shape& shape, int64_t axis,
                                   int64_t block = 0);

// Whether all elements of a constant (or absent) zero point equal `value`.
bool zero_is(NodeImport& n, ValueId zero, int64_t value);

// Two integer operands and zero points, made ready for a product that accumulates in i32.
//
// With one known zero point each, both stay 8 bits wide, constant weights of u8 as i8, and
//   sum (left - left_zero) * (right - right_zero)
//     = sum left * right - left_zero * sum right - right_zero * sum (left - left_zero)
// where padding of the left operand holds left_zero. Otherwise both are centred in 16 bits and the zeros are
// 0.
struct IntegerProduct {
  ValueId left = kNoValue, right = kNoValue;
  int64_t left_zero = 0, right_zero = 0;
};
// The zero points broadcast to their operands.
// `sums_left`: whether the caller can sum the left operand; else right_zero is always 0.
IntegerProduct integer_product(NodeImport& n, ValueId left, ValueId left_zero, ValueId right,
                               ValueId right_zero, bool sums_left);

// numpy.matmul of quantised operands as i32; zero points as MatMulInteger has them.
Expected<ValueId> integer_matmul(NodeImport& n, ValueId a, ValueId a_zero, ValueId b, ValueId b_zero);

// Scalar, scale and zero point of the operands at `i` and `i + 1`, per tensor.
Expected<Quantization> per_tensor(NodeImport& n, int i);

}  // namespace quernel::onnx_import
