// Integer arithmetic of quantized operators, equal to the bit on every device: nothing here computes with floats in the
// graph, except from and to real values.
//
// A value x is scaled by a real multiplier m = q * 2^(s - 31), q of 31 bits. IntegerRounding says how:
//   single: (x * q + 2^(30 - s)) >> (31 - s) in 64 bits, one rounding, half up;
//   double: x * 2^max(s, 0) * q, rounded half up to a multiple of 2^31, then a shift, rounded half away from zero;
//   float32: x and m as f32, and their product, rounded half to even. Conversion, product and rounding are exact or
//     correctly rounded on every device.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontends/tflite/activation.h"
#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

// Returns the nearest integer, half away from zero, within 2^52; 0 for NaN.
int64_t rounded(double x);

struct Multiplier {
  int64_t q = 0;                // of 31 bits, or of fewer
  int shift = 0;                // to the right: the result is (x * q + 2^(shift - 1)) >> shift
  int second_shift = 0;         // to the right, rounded half away from zero
  std::optional<float> factor;  // instead of all the others: float32
};
// Returns m with 31 bits; 0 where it is below 2^-32, the largest multiplier where it is not finite. Requires m >= 0.
// Only some operators have kFloat32 (float_multiplier); in the others LiteRT does not use XNNPACK, and rounds twice.
Multiplier make_multiplier(double m, IntegerRounding rounding);
// Returns the same with 15 bits and one rounding, as 64-bit sums are scaled.
Multiplier short_multiplier(double m);
// Returns `factor` as a multiplier of float32.
Multiplier float_multiplier(float factor);

// Returns x, integers, scaled, as i64; as i32 by float32, saturated to 24 bits. `multipliers`: one, or one for each
// index of the last dim, all of one kind.
ValueId scale_integers(ImportedNode& n, ValueId x, const std::vector<Multiplier>& multipliers);
// The same of integers at compile time.
int64_t scale_integer(int64_t x, const Multiplier& m);

// Whether the node's sums are scaled by float32, which exists for 8 bits only.
bool in_floats(const NodeImport& n);
// Returns m with 8 bits behind the point, as float32 has it in QUANTIZE and LEAKY_RELU; nullopt: in the other roundings,
// or where m is too small or too large for that.
std::optional<Multiplier> eight_bit_multiplier(const NodeImport& n, float m);

// The integers that a fused activation function lets through, of a dtype and a scale.
struct IntegerRange {
  int64_t lo, hi;
};
Expected<IntegerRange> integer_range(NodeImport& n, ActivationFunctionType function, DType dtype,
                                     const Quantization& q);
// Returns x clamped to result 0's range and cast to its dtype.
ValueId clamp_integers(NodeImport& n, ValueId x, ActivationFunctionType function);
// Returns x scaled, moved to result 0's zero point, and clamped.
ValueId requantize(NodeImport& n, ValueId x, const std::vector<Multiplier>& multipliers,
                   ActivationFunctionType function);
// Returns a / b, rounded half away from zero. Requires b > 0.
ValueId divide_rounding(ImportedNode& n, ValueId a, ValueId b);

// Returns x minus a zero point, as i32.
ValueId centred(ImportedNode& n, ValueId x, int64_t zero);

// Operands of a sum of products of x - zero_x and weights - zero_w: sum(x * w) - correction * sum(w) is the same.
struct ProductOperands {
  ValueId x = kNoValue, weights = kNoValue;
  int64_t fill = 0;        // what stands for 0 in x
  int64_t correction = 0;  // 0: the sum of products is all
  DType accumulator = DType::kI32;
};
// `terms`: products in a sum, which decide whether sums of int16 activations fit 32 bits. Requires integers with one
// zero point each.
Expected<ProductOperands> product_operands(NodeImport& n, int x, int weights, int64_t terms);

// What a weight scale and the others make of a sum, for each of the scales of operand `weights`.
enum class ScaleProduct { kDouble, kFloat };  // of the product of both operands' scales
std::vector<Multiplier> product_multipliers(NodeImport& n, int x, int weights, ScaleProduct product,
                                            bool is_short);
// Adds the bias, operand `bias` if there is one, to sums of int8 or int16 products and requantizes them.
Status finish_product(NodeImport& n, ValueId sums, int x, int weights, int bias,
                      ActivationFunctionType function);

// Returns table[index], as i64. The constant has the narrowest signed integers that hold the table.
ValueId table_entry(ImportedNode& n, const std::vector<int64_t>& table, ValueId index);
// Returns table[x] for x of 8 bits: `entry` gives the integer for each integer that x may be.
ValueId look_up(ImportedNode& n, ValueId x, DType result, const std::function<int64_t(int64_t)>& entry);
// Imports an operator on one quantized operand as a table of a real function: rounded half away from zero and saturated
// for 8 bits, interpolated for int16.
Status import_table(NodeImport& n, const std::function<double(double)>& function);

// Returns the elements of x, of 8 bits and scale `q`, in result 0's scale: computed in f32 and rounded at compile time.
ValueId rescale(NodeImport& n, ValueId x, const Quantization& q);

// Returns the real values in the integers of `q`: rounded half away from zero, saturated.
ValueId quantize(ImportedNode& n, ValueId x, const Quantization& q, DType dtype);
// The same by float32: a product with the scale's reciprocal, rounded half to even.
ValueId quantize_by_product(ImportedNode& n, ValueId x, const Quantization& q, DType dtype);

}  // namespace quernel::tflite_import
