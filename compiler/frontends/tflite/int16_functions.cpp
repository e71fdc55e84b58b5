#include "frontends/tflite/int16_functions.h"

#include <algorithm>
#include <cmath>

#include "frontends/tflite/fixed_point.h"
#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {
namespace {

constexpr int kSteps = 512;
constexpr double kLowest = -32768, kHighest = 32767;

ValueId constant(ImportedNode& n, const std::vector<int64_t>& values) {
  std::vector<int32_t> narrow(values.begin(), values.end());
  return n.build.constant(make_tensor(DType::kI32, {static_cast<int64_t>(values.size())}, narrow));
}

Status expect_fraction(NodeImport& n) {
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  if (n.out_dtype(0) == DType::kI16 && n.out_quantization(0).scale() == 1.0f / 32768 &&
      n.out_quantization(0).zero() == 0 && n.in_quantization(0).zero() == 0)
    return {};
  return n.no_kernel();
}

// Whether TensorFlow Lite takes fixed-point numbers instead of a table: where the operand's scale is one of these
// powers of two, except in TensorFlow Lite Micro.
bool has_fixed_point(NodeImport& n, std::initializer_list<int> exponents) {
  if (n.file.rounding == IntegerRounding::kDouble) return false;
  float scale = n.in_quantization(0).scale();
  return std::any_of(exponents.begin(), exponents.end(),
                     [&](int exponent) { return scale == std::ldexp(1.0f, exponent); });
}

// The magnitude of x in units of 1 / (3 * 4096), and whether x is not negative: 2^17 stands for 10.7.
struct Magnitude {
  ValueId value, not_negative;
};
Magnitude magnitude_of(NodeImport& n) {
  constexpr double kUnits = 3 * 4096, kMost = 32767.0 / 2;
  constexpr int kMostShift = 30;
  double factor = static_cast<double>(n.in_quantization(0).scale()) * kUnits;
  int shift = 0;
  for (; factor <= kMost && shift <= kMostShift; ++shift) factor *= 2;
  ValueId x = n.binary(BinaryOp::k_mul, n.build.cast(n.in(0), DType::kI64), std::floor(factor));
  if (shift > 0) {
    x = n.binary(BinaryOp::k_add, x, std::ldexp(1.0, shift - 1));
    x = n.binary(BinaryOp::k_shr, x, static_cast<double>(shift));
  }
  return {n.unary(UnaryOp::k_abs, x), n.binary(BinaryOp::k_ge, x, 0.0)};
}

// The logistic function in steps of 1/24, as unsigned 16-bit fractions, interpolated with `bits` more; saturated where
// the table ends.
ValueId interpolated_logistic(NodeImport& n, ValueId magnitude, int bits, double saturated) {
  constexpr int kEntries = 256;
  // TensorFlow Lite's table has one more than the nearest integer at these steps.
  constexpr int kOneMore[] = {4,  8,  12, 14, 15, 16, 17, 19, 20,  21,  22,  25,  27,  28, 29,
                              30, 31, 33, 34, 35, 37, 39, 40, 41,  43,  44,  45,  46,  49, 50,
                              54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255};
  std::vector<int64_t> table;
  for (int i = 0; i < kEntries; ++i)
    table.push_back(std::min<int64_t>(std::llround(65536 / (1 + std::exp(-i / 24.0))), 65535));
  for (int i : kOneMore) ++table[static_cast<size_t>(i)];
  ValueId step = n.binary(BinaryOp::k_shr, magnitude, static_cast<double>(bits));
  ValueId index = n.binary(BinaryOp::k_min, step, static_cast<double>(kEntries - 2));
  ValueId fraction = n.binary(BinaryOp::k_and, magnitude, static_cast<double>((1 << bits) - 1));
  ValueId entries = n.build.cast(constant(n, table), DType::kI64);
  ValueId here = n.build.take(entries, index, 0);
  ValueId next = n.build.take(entries, n.binary(BinaryOp::k_add, index, 1.0), 0);
  ValueId y = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_shl, here, static_cast<double>(bits)),
                       n.binary(BinaryOp::k_mul, fraction, n.binary(BinaryOp::k_sub, next, here)));
  return n.build.where(n.binary(BinaryOp::k_ge, step, static_cast<double>(kEntries - 1)),
                       n.scalar(DType::kI64, saturated), y);
}

}  // namespace

std::vector<int64_t> int16_table(const std::function<double(double)>& function, double lo, double hi,
                                 double factor) {
  std::vector<int64_t> table;
  double step = (hi - lo) / kSteps;
  auto at = [&](double x) {
    double y = function(x) * factor;
    return std::isnan(y) ? 0 : std::clamp(y, -1e12, 1e12);
  };
  for (int i = 0; i < kSteps; ++i) {
    double here = std::round(at(lo + i * step)), next = at(lo + (i + 1) * step);
    double off = std::round((next + here) / 2) - std::round(at(lo + i * step + step / 2));
    table.push_back(static_cast<int64_t>(std::clamp(here - std::round(off / 2), kLowest, kHighest)));
  }
  table.push_back(static_cast<int64_t>(std::clamp(std::round(at(hi)), kLowest, kHighest)));
  return table;
}

ValueId interpolate(ImportedNode& n, ValueId x, const std::vector<int64_t>& table) {
  constexpr int kBits = 7;  // of a step's fraction
  x = n.build.cast(x, DType::kI32);
  ValueId index = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_shr, x, 1.0 * kBits), kSteps / 2.0);
  ValueId fraction = n.binary(BinaryOp::k_and, x, 1.0 * ((1 << kBits) - 1));
  ValueId entries = constant(n, table);
  ValueId here = n.build.take(entries, index, 0);
  ValueId next = n.build.take(entries, n.binary(BinaryOp::k_add, index, 1.0), 0);
  ValueId product = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_sub, next, here), fraction);
  product = n.binary(BinaryOp::k_add, product, 1.0 * (1 << (kBits - 1)));
  return n.binary(BinaryOp::k_add, here, n.binary(BinaryOp::k_shr, product, 1.0 * kBits));
}

Status int16_logistic(NodeImport& n) {
  QUERNEL_CHECK(expect_fraction(n));
  if (has_fixed_point(n, {-12})) return fixed_point_logistic_int16(n);
  constexpr int kBits = 9;
  Magnitude m = magnitude_of(n);
  ValueId y = interpolated_logistic(n, m.value, kBits, 32767.0 * 1024);
  ValueId below = n.binary(BinaryOp::k_sub, n.scalar(DType::kI64, 1 << (16 + kBits)), y);
  y = n.build.where(m.not_negative, n.binary(BinaryOp::k_add, y, 1.0 * (1 << kBits)),
                    n.binary(BinaryOp::k_add, below, 1.0 * ((1 << kBits) - 1)));
  return n.output(n.build.cast(n.binary(BinaryOp::k_shr, y, 1.0 * (kBits + 1)), DType::kI16));
}

// tanh(x) = 2 * logistic(2 * x) - 1.
Status int16_tanh(NodeImport& n) {
  QUERNEL_CHECK(expect_fraction(n));
  if (has_fixed_point(n, {-12, -11})) return fixed_point_tanh_int16(n);
  constexpr int kBits = 8;
  Magnitude m = magnitude_of(n);
  ValueId y = interpolated_logistic(n, m.value, kBits, 65535.0 * 256);
  y = n.binary(BinaryOp::k_sub, y, 1.0 * (1 << (15 + kBits)));
  y = n.build.where(m.not_negative, n.binary(BinaryOp::k_add, y, 1.0 * (1 << (kBits - 1))),
                    n.binary(BinaryOp::k_add, n.unary(UnaryOp::k_neg, y), 1.0 * ((1 << (kBits - 1)) - 1)));
  return n.output(n.build.cast(n.binary(BinaryOp::k_shr, y, 1.0 * kBits), DType::kI16));
}

// exp of differences between -10 and 0, and one reciprocal of their sum, which is normalized to 1 + a fraction.
Status int16_softmax(NodeImport& n, double beta) {
  QUERNEL_CHECK(expect_fraction(n));
  const double one = 32768;
  std::vector<int64_t> exponentials = int16_table([](double x) { return std::exp(x); }, -10, 0, one);
  std::vector<int64_t> reciprocals = int16_table([](double x) { return 1 / (1 + x); }, 0, 1, one);
  int64_t last = n.rank(n.in(0)) - 1;
  ValueId x = n.build.cast(n.in(0), DType::kI32);
  ValueId below = n.binary(BinaryOp::k_sub, x, n.build.reduce(OpKind::k_reduce_max, x, {last}, true));
  double m = static_cast<double>(n.in_quantization(0).scale()) * beta / (10.0 / 65535.0);
  auto saturated = [&](ValueId v) {
    return n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, v, kLowest), kHighest);
  };
  ValueId scaled = scale_integers(n, below, {make_multiplier(m, n.file.rounding)});
  ValueId e = n.build.cast(
      interpolate(n, saturated(n.binary(BinaryOp::k_add, scaled, kHighest)), exponentials), DType::kI64);
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, e, {last}, true);
  std::vector<int32_t> powers;
  for (int i = 0; i < 31; ++i) powers.push_back(1 << i);
  ValueId limits = n.build.cast(n.build.constant(make_tensor(DType::kI32, {31}, powers)), DType::kI64);
  ValueId reached = n.build.cast(n.binary(BinaryOp::k_ge, sum, limits), DType::kI64);
  ValueId bits = n.build.reduce(OpKind::k_reduce_sum, reached, {last}, true);  // of the sum
  ValueId room = n.binary(BinaryOp::k_sub, n.scalar(DType::kI64, 31), bits);
  ValueId normal = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_shl, sum, room), 1.0 * (1 << 13));
  normal = n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_shr, normal, 14.0), 1.0 * ((1 << 15) + (1 << 16)));
  ValueId reciprocal = n.build.cast(interpolate(n, saturated(normal), reciprocals), DType::kI64);
  ValueId shift = n.binary(BinaryOp::k_sub, bits, 1.0);
  ValueId half = n.binary(BinaryOp::k_shl, n.scalar(DType::kI64, 1), n.binary(BinaryOp::k_sub, shift, 1.0));
  ValueId y = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, e, reciprocal), half);
  y = n.binary(BinaryOp::k_shr, y, shift);
  y = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, y, 0.0), kHighest);
  return n.output(n.build.cast(y, DType::kI16));
}

}  // namespace quernel::tflite_import
