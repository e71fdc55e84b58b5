#include "frontends/tflite/quantized_elementwise.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {
namespace {

constexpr std::initializer_list<DType> kIntegers{DType::kI8, DType::kU8, DType::kI16};

// Requires operands and result of one integer dtype, each with one scale.
Status expect_integers(NodeImport& n) {
  for (int i = 0; i < n.input_count(); ++i) {
    QUERNEL_CHECK(n.expect_dtypes(i, kIntegers));
    QUERNEL_CHECK(n.expect_per_tensor(i));
    if (n.dtype(n.in(i)) != n.out_dtype(0)) return n.no_kernel();
  }
  return n.expect_output_per_tensor();
}

Multiplier multiplier(const NodeImport& n, double m) { return make_multiplier(m, n.file.rounding); }
bool is_double(const NodeImport& n) { return n.file.rounding == IntegerRounding::kDouble; }

ValueId centred_in(NodeImport& n, int i) { return centred(n, n.in(i), n.in_quantization(i).zero()); }
bool is_16_bits(NodeImport& n) { return n.out_dtype(0) == DType::kI16; }

ValueId shifted(ImportedNode& n, ValueId x, int bits) {
  return n.binary(BinaryOp::k_shl, n.build.cast(x, DType::kI64), static_cast<double>(bits));
}

// An operator on one operand, from integers to integers: a table, if there are 256 of them.
Status integer_function(NodeImport& n, const std::function<int64_t(int64_t)>& function) {
  const IntegerRange range =
      *integer_range(n, ActivationFunctionType::NONE, n.out_dtype(0), n.out_quantization(0));
  int64_t zero_in = n.in_quantization(0).zero(), zero_out = n.out_quantization(0).zero();
  return n.output(look_up(n, n.in(0), n.out_dtype(0), [&](int64_t x) {
    return std::clamp(function(x - zero_in) + zero_out, range.lo, range.hi);
  }));
}

bool is_power_of_two(float scale) {
  int exponent;
  return std::frexp(scale, &exponent) == 0.5f;
}

// int16 with scales that are powers of two: the finer of both operands is shifted, sums saturate.
Status add_shifted(NodeImport& n, bool subtract, ActivationFunctionType function) {
  ValueId x[2];
  for (int i : {0, 1}) {
    int shift = std::ilogb(n.out_quantization(0).scale()) - std::ilogb(n.in_quantization(i).scale());
    x[i] = n.build.cast(n.in(i), DType::kI32);
    if (shift > 0) {
      x[i] = n.binary(BinaryOp::k_add, x[i], static_cast<double>(int64_t{1} << (shift - 1)));
      x[i] = n.binary(BinaryOp::k_shr, x[i], static_cast<double>(shift));
    }
  }
  ValueId sum = n.binary(subtract ? BinaryOp::k_sub : BinaryOp::k_add, x[0], x[1]);
  return n.output(clamp_integers(n, sum, function));
}

// By float32: multipliers of 21 bits, one rounding. nullopt where a scale is too far from the result's for that; then
// the sum is that of `single`.
std::optional<ValueId> add_by_short_multipliers(NodeImport& n, bool subtract,
                                                ActivationFunctionType function) {
  constexpr float kLeast = 0x1p-10f, kMost = 0x1p8f;
  constexpr int kBits = 20;
  float ratio[2];
  for (int i : {0, 1}) {
    ratio[i] = n.in_quantization(i).scale() / n.out_quantization(0).scale();
    if (!(ratio[i] >= kLeast && ratio[i] < kMost)) return std::nullopt;
  }
  int shift = kBits - std::ilogb(std::max(ratio[0], ratio[1]));
  ValueId x[2];
  for (int i : {0, 1}) {
    double m = std::nearbyint(std::ldexp(static_cast<double>(ratio[i]), shift));
    x[i] = n.binary(BinaryOp::k_mul, centred_in(n, i), m);
  }
  ValueId sum = n.binary(subtract ? BinaryOp::k_sub : BinaryOp::k_add, x[0], x[1]);
  sum = n.binary(BinaryOp::k_add, sum, std::ldexp(1.0, shift - 1));
  sum = n.binary(BinaryOp::k_shr, sum, static_cast<double>(shift));
  if (int64_t zero = n.out_quantization(0).zero(); zero != 0)
    sum = n.binary(BinaryOp::k_add, sum, static_cast<double>(zero));
  return clamp_integers(n, sum, function);
}

}  // namespace

// Operands become integers in units of twice the larger scale over 2^20 (int16: 2^15) first.
Status quantized_add(NodeImport& n, bool subtract, bool power_of_two, ActivationFunctionType function) {
  QUERNEL_CHECK(expect_integers(n));
  float a = n.in_quantization(0).scale(), b = n.in_quantization(1).scale(), y = n.out_quantization(0).scale();
  const bool shifts =
      power_of_two && is_16_bits(n) && is_power_of_two(a) && is_power_of_two(b) && is_power_of_two(y);
  if (shifts && std::max(a, b) == y) return add_shifted(n, subtract, function);
  if (shifts && !is_double(n))  // TensorFlow Lite Micro never shifts
    return n.refuse(
        "expected the result to have the larger scale of both operands, as they are powers of two, found " +
            std::to_string(y) + " for " + std::to_string(a) + " and " + std::to_string(b),
        "TensorFlow Lite does not run such a model: convert it with equal scales, with pot_scale_int16 off, "
        "or "
        "use --rounding double, which is TensorFlow Lite Micro's");
  if (in_floats(n))
    if (std::optional<ValueId> sum = add_by_short_multipliers(n, subtract, function)) return n.output(*sum);
  int bits = is_16_bits(n) ? 15 : 20;
  double twice = 2 * static_cast<double>(std::max(a, b));
  // TensorFlow Lite Micro divides scales in SUB as floats.
  auto unit = [&](double m) {
    return is_double(n) && subtract ? static_cast<double>(static_cast<float>(m)) : m;
  };
  ValueId sum[2];
  for (int i : {0, 1}) {
    double m = unit(static_cast<double>(n.in_quantization(i).scale()) / twice);
    Multiplier scaling = multiplier(n, m);
    ValueId x = centred_in(n, i);
    // Two more bits on both sides change nothing, and leave the result in the high word of a product.
    constexpr int kMore = 2;
    if (!is_16_bits(n) && scaling.second_shift == 0) {
      x = n.binary(BinaryOp::k_shl, x, 1.0 * (bits + kMore));
      scaling.shift += kMore;
    } else {
      x = shifted(n, x, bits);
    }
    // At most half of 2^29 (int16: of 2^31): sums have 32 bits.
    sum[i] = n.build.cast(scale_integers(n, x, {scaling}), DType::kI32);
  }
  ValueId total = n.binary(subtract ? BinaryOp::k_sub : BinaryOp::k_add, sum[0], sum[1]);
  double m = unit(twice / (std::ldexp(1.0, bits) * static_cast<double>(y)));
  return n.output(requantize(n, total, {multiplier(n, m)}, function));
}

Status quantized_mul(NodeImport& n, ActivationFunctionType function) {
  QUERNEL_CHECK(expect_integers(n));
  float m = n.in_quantization(0).scale() * n.in_quantization(1).scale() / n.out_quantization(0).scale();
  Multiplier scaling = multiplier(n, static_cast<double>(m));
  if (is_double(n))
    scaling = multiplier(n, static_cast<double>(n.in_quantization(0).scale()) *
                                static_cast<double>(n.in_quantization(1).scale()) /
                                static_cast<double>(n.out_quantization(0).scale()));
  if (in_floats(n) && m >= 0x1p-16f && m < 0x1p8f) scaling = float_multiplier(m);
  ValueId product = n.binary(BinaryOp::k_mul, centred_in(n, 0), centred_in(n, 1));
  return n.output(requantize(n, product, {scaling}, function));
}

// The quotient times a multiplier, in one rounding half away from zero. x / 0 is 0.
Status quantized_div(NodeImport& n, ActivationFunctionType function) {
  QUERNEL_CHECK(expect_integers(n));
  float m = n.in_quantization(0).scale() / (n.in_quantization(1).scale() * n.out_quantization(0).scale());
  Multiplier scaling = make_multiplier(static_cast<double>(m), IntegerRounding::kSingle);
  constexpr int kMaxShift = 46;  // of a divisor of 16 bits
  if (is_16_bits(n) || scaling.shift > kMaxShift) return n.no_kernel();
  ValueId a = n.build.cast(centred_in(n, 0), DType::kI64), b = n.build.cast(centred_in(n, 1), DType::kI64);
  ValueId numerator = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, a, n.unary(UnaryOp::k_sign, b)),
                               static_cast<double>(scaling.q));
  ValueId divisor = shifted(n, n.unary(UnaryOp::k_abs, b), scaling.shift);
  ValueId quotient = divide_rounding(n, numerator, divisor);
  quotient = n.binary(BinaryOp::k_add, quotient, static_cast<double>(n.out_quantization(0).zero()));
  return n.output(clamp_integers(n, quotient, function));
}

Status quantized_squared_difference(NodeImport& n) {
  QUERNEL_CHECK(expect_integers(n));
  if (is_16_bits(n)) return n.no_kernel();
  constexpr int kBits = 7;
  double twice =
      2 * static_cast<double>(std::max(n.in_quantization(0).scale(), n.in_quantization(1).scale()));
  ValueId x[2];
  for (int i : {0, 1}) {
    double m = static_cast<double>(n.in_quantization(i).scale()) / twice;
    x[i] = scale_integers(n, shifted(n, centred_in(n, i), kBits), {multiplier(n, m)});
  }
  ValueId difference = n.binary(BinaryOp::k_sub, x[0], x[1]);
  ValueId square = n.binary(BinaryOp::k_mul, difference, difference);
  double m =
      twice * twice / (std::ldexp(1.0, 2 * kBits) * static_cast<double>(n.out_quantization(0).scale()));
  return n.output(requantize(n, square, {multiplier(n, m)}, ActivationFunctionType::NONE));
}

// Integers of one scale compare as real values; others are brought to units of 2^-8 first.
Status quantized_comparison(NodeImport& n, BinaryOp op) {
  for (int i : {0, 1}) {
    QUERNEL_CHECK(n.expect_dtypes(i, kIntegers));
    QUERNEL_CHECK(n.expect_per_tensor(i));
  }
  if (n.dtype(n.in(0)) != n.dtype(n.in(1))) return n.no_kernel();
  if (n.in_quantization(0) == n.in_quantization(1)) return n.output(n.binary(op, n.in(0), n.in(1)));
  constexpr int kBits = 8;
  ValueId x[2];
  for (int i : {0, 1})
    x[i] = scale_integers(n, shifted(n, centred_in(n, i), kBits),
                          {multiplier(n, static_cast<double>(n.in_quantization(i).scale()))});
  return n.output(n.binary(op, x[0], x[1]));
}

Status quantized_clamp(NodeImport& n, const ClampRange& range) {
  QUERNEL_CHECK(expect_integers(n));
  const Quantization& out = n.out_quantization(0);
  float m = n.in_quantization(0).scale() / out.scale();
  Multiplier scaling = multiplier(n, static_cast<double>(m));
  auto limit = [&](double real, double other) {
    return std::isfinite(real) ? static_cast<double>(rounded(static_cast<float>(real) / out.scale())) : other;
  };
  double lo = limit(range.lo, -1e9), hi = limit(range.hi, 1e9);
  if (!is_16_bits(n))
    return integer_function(n, [&](int64_t x) {
      return std::clamp(scale_integer(x, scaling), static_cast<int64_t>(lo), static_cast<int64_t>(hi));
    });
  ValueId y = scale_integers(n, centred_in(n, 0), {scaling});
  y = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, y, lo), hi);
  y = n.binary(BinaryOp::k_add, y, static_cast<double>(out.zero()));
  return n.output(clamp_integers(n, y, ActivationFunctionType::NONE));
}

Status quantized_abs(NodeImport& n) {
  QUERNEL_CHECK(expect_integers(n));
  double m =
      static_cast<double>(n.in_quantization(0).scale()) / static_cast<double>(n.out_quantization(0).scale());
  Multiplier scaling = multiplier(n, m);
  if (!is_16_bits(n))
    return integer_function(n, [&](int64_t x) { return scale_integer(std::abs(x), scaling); });
  return n.output(
      requantize(n, n.unary(UnaryOp::k_abs, centred_in(n, 0)), {scaling}, ActivationFunctionType::NONE));
}

Status quantized_neg(NodeImport& n) {
  QUERNEL_CHECK(expect_integers(n));
  double m =
      static_cast<double>(n.in_quantization(0).scale()) / static_cast<double>(n.out_quantization(0).scale());
  Multiplier scaling = multiplier(n, m);
  if (!is_16_bits(n)) return integer_function(n, [&](int64_t x) { return scale_integer(-x, scaling); });
  return n.output(
      requantize(n, n.unary(UnaryOp::k_neg, centred_in(n, 0)), {scaling}, ActivationFunctionType::NONE));
}

Status quantized_leaky_relu(NodeImport& n, float alpha) {
  QUERNEL_CHECK(expect_integers(n));
  float in = n.in_quantization(0).scale(), out = n.out_quantization(0).scale();
  if (std::optional<Multiplier> positive = eight_bit_multiplier(n, in / out))
    if (std::optional<Multiplier> negative = eight_bit_multiplier(n, in / out * alpha))
      return integer_function(n, [&](int64_t x) { return scale_integer(x, x >= 0 ? *positive : *negative); });
  // A negative alpha turns the sign around.
  Multiplier identity = multiplier(n, static_cast<double>(in / out)),
             slope = multiplier(n, std::abs(static_cast<double>(in * alpha / out)));
  if (alpha < 0) slope.q = -slope.q;
  if (!is_16_bits(n))
    return integer_function(n, [&](int64_t x) { return scale_integer(x, x >= 0 ? identity : slope); });
  ValueId x = centred_in(n, 0);
  ValueId y = n.build.where(n.binary(BinaryOp::k_ge, x, 0.0), scale_integers(n, x, {identity}),
                            scale_integers(n, x, {slope}));
  y = n.binary(BinaryOp::k_add, y, static_cast<double>(n.out_quantization(0).zero()));
  return n.output(clamp_integers(n, y, ActivationFunctionType::NONE));
}

Status quantized_prelu(NodeImport& n) {
  QUERNEL_CHECK(expect_integers(n));
  if (is_16_bits(n)) return n.no_kernel();
  float in = n.in_quantization(0).scale(), alpha = n.in_quantization(1).scale(),
        out = n.out_quantization(0).scale();
  Multiplier identity = multiplier(n, static_cast<double>(in / out)),
             slope = multiplier(n, static_cast<double>(in * alpha / out));
  if (is_double(n)) {
    double wide = static_cast<double>(in) / static_cast<double>(out);
    identity = multiplier(n, wide);
    slope = multiplier(n, static_cast<double>(in) * static_cast<double>(alpha) / static_cast<double>(out));
  }
  ValueId x = centred_in(n, 0);
  ValueId y = n.build.where(n.binary(BinaryOp::k_ge, x, 0.0), scale_integers(n, x, {identity}),
                            scale_integers(n, n.binary(BinaryOp::k_mul, x, centred_in(n, 1)), {slope}));
  y = n.binary(BinaryOp::k_add, y, static_cast<double>(n.out_quantization(0).zero()));
  return n.output(clamp_integers(n, y, ActivationFunctionType::NONE));
}

}  // namespace quernel::tflite_import
