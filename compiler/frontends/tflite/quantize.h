// Integer arithmetic of quantized operators, equal to the bit on every device: nothing here computes with floats in the
// graph, except from and to real values.
//
// A value x is scaled by a real multiplier m = q * 2^(s - 31), q of 31 bits, with one rounding, half up:
// (x * q + 2^(30 - s)) >> (31 - s) in 64 bits.
#pragma once

#include <functional>
#include <vector>

#include "frontends/tflite/activation.h"
#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

struct Multiplier {
  int64_t q = 0;  // of 31 bits, or of 15
  int shift = 0;  // to the right: the result is (x * q + 2^(shift - 1)) >> shift
};
// Returns m with 31 bits; 0 where it is below 2^-32. Requires m >= 0.
Multiplier make_multiplier(double m);
// Returns the same with 15 bits, as 64-bit sums are scaled.
Multiplier short_multiplier(double m);

// Returns x, integers, scaled, as i64. `multipliers`: one, or one for each index of the last dim.
ValueId scale_integers(ImportedNode& n, ValueId x, const std::vector<Multiplier>& multipliers);
// The same of integers at compile time.
int64_t scale_integer(int64_t x, const Multiplier& m);

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

// Returns table[x] for x of 8 bits: `entry` gives the integer for each integer that x may be.
ValueId look_up(ImportedNode& n, ValueId x, DType result, const std::function<int64_t(int64_t)>& entry);
// Imports an operator on one quantized operand as a table of a real function: rounded half away from zero and saturated
// for 8 bits, interpolated for int16.
Status import_table(NodeImport& n, const std::function<double(double)>& function);

// Returns the elements of x, of 8 bits and scale `q`, in result 0's scale: computed in f32 and rounded at compile time.
ValueId rescale(NodeImport& n, ValueId x, const Quantization& q);

// Returns the real values in the integers of `q`: rounded half away from zero, saturated.
ValueId quantize(ImportedNode& n, ValueId x, const Quantization& q, DType dtype);

}  // namespace quernel::tflite_import
