#include "frontends/tflite/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/tflite/int16_functions.h"
#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {
namespace {

// Limits of what 64 bits with a sign hold of a dtype.
int64_t highest_of(DType dtype) {
  int bits = std::min(bit_width(dtype) - (is_signed_integer(dtype) ? 1 : 0), 63);
  return static_cast<int64_t>((uint64_t{1} << bits) - 1);
}
int64_t lowest_of(DType dtype) { return is_signed_integer(dtype) ? -highest_of(dtype) - 1 : 0; }

// One element, or one for each index of the last dim.
ValueId parameter(ImportedNode& n, const std::vector<int64_t>& values) {
  bool same = std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
  if (same) return n.build.constant(i64_tensor({}, {values[0]}));
  return n.build.constant(i64_tensor({static_cast<int64_t>(values.size())}, values));
}

// x times the multipliers' factors, rounded half to even, as f32.
ValueId rounded_product(ImportedNode& n, ValueId x, const std::vector<Multiplier>& multipliers) {
  std::vector<float> factors;
  for (const Multiplier& m : multipliers) factors.push_back(*m.factor);
  bool same = std::all_of(factors.begin(), factors.end(), [&](float f) { return f == factors[0]; });
  if (same) factors.resize(1);
  ValueId factor = n.build.constant(f32_tensor({static_cast<int64_t>(factors.size())}, factors));
  if (same) factor = n.build.reshape(factor, {});
  return n.unary(UnaryOp::k_round, n.binary(BinaryOp::k_mul, n.build.cast(x, DType::kF32), factor));
}

}  // namespace

int64_t rounded(double x) {
  constexpr double kMost = 0x1p52;
  return std::isnan(x) ? 0 : std::llround(std::clamp(x, -kMost, kMost));
}

Multiplier make_multiplier(double m, IntegerRounding rounding) {
  constexpr int kBits = 31;
  if (m == 0) return {0, 1};
  if (!std::isfinite(m)) return {(int64_t{1} << kBits) - 1, 1};
  int exponent = 0;
  int64_t q = std::llround(std::frexp(m, &exponent) * std::ldexp(1.0, kBits));
  if (q == int64_t{1} << kBits) q /= 2, ++exponent;
  if (exponent < -kBits) return {0, 1};
  if (exponent > kBits - 1) return {(int64_t{1} << kBits) - 1, 1};
  // With a shift to the left there is nothing behind the product's 31 bits.
  if (rounding != IntegerRounding::kSingle && exponent < 0) return {q, kBits, -exponent};
  return {q, kBits - exponent};
}

bool in_floats(const NodeImport& n) {
  return n.file.rounding == IntegerRounding::kFloat32 && bit_width(n.out_dtype(0)) == 8;
}

std::optional<Multiplier> eight_bit_multiplier(const NodeImport& n, float m) {
  constexpr float kLeast = 0x1p-8f, kMost = 0x1p7f;
  constexpr int kBits = 8;
  if (!in_floats(n) || !(std::abs(m) >= kLeast && std::abs(m) <= kMost)) return std::nullopt;
  return Multiplier{std::lrint(std::ldexp(m, kBits)), kBits};
}

Multiplier float_multiplier(float factor) {
  Multiplier m;
  m.factor = std::isfinite(factor) ? factor : std::numeric_limits<float>::max();
  return m;
}

Multiplier short_multiplier(double m) {
  Multiplier full = make_multiplier(m, IntegerRounding::kSingle);
  constexpr int64_t kLargest = 0x7FFF0000;
  if (full.q == 0) return full;
  Multiplier result{full.q < kLargest ? (full.q + (1 << 15)) >> 16 : 0x7FFF, full.shift - 16};
  if (result.shift < 1) result = {result.q << (1 - result.shift), 1};
  return result;
}

int64_t scale_integer(int64_t x, const Multiplier& m) {
  constexpr float kMost = 0x1p40f;
  if (m.factor)
    return static_cast<int64_t>(std::nearbyint(std::clamp(static_cast<float>(x) * *m.factor, -kMost, kMost)));
  int64_t y = (x * m.q + (int64_t{1} << (m.shift - 1))) >> m.shift;
  if (m.second_shift == 0) return y;
  return (y + (int64_t{1} << (m.second_shift - 1)) - (y < 0 ? 1 : 0)) >> m.second_shift;
}

namespace {

// Where the low word of a product and of the half that rounds it decides nothing, 32 bits of the product do: the half is
// a multiple of 2^32. Returns x of 32 bits scaled, plus `zero`, as i32; kNoValue where a shift is too short, or too long
// for the zero point.
ValueId scale_by_high_words(ImportedNode& n, ValueId x, const std::vector<Multiplier>& multipliers,
                            int64_t zero) {
  constexpr int kWord = 32;
  if (n.dtype(x) != DType::kI32) return kNoValue;
  std::vector<int64_t> factors, halves, shifts;
  for (const Multiplier& m : multipliers) {
    if (m.factor) return kNoValue;
    const int shift = m.q == 0 ? kWord + 1 : m.shift;  // zero is zero with any shift
    if (shift <= kWord || m.second_shift != 0) return kNoValue;
    const int64_t half = (int64_t{1} << (shift - kWord - 1)) + zero * (int64_t{1} << (shift - kWord));
    // A product's upper half is within 2^30.
    if (zero != 0 && std::abs(half) >= int64_t{1} << 30) return kNoValue;
    factors.push_back(m.q);
    halves.push_back(half);
    shifts.push_back(shift - kWord);
  }
  ValueId product = n.binary(BinaryOp::k_mul, n.build.cast(x, DType::kI64), parameter(n, factors));
  ValueId high = n.build.cast(n.binary(BinaryOp::k_shr, product, 1.0 * kWord), DType::kI32);
  auto word = [&](const std::vector<int64_t>& values) {
    return n.build.cast(parameter(n, values), DType::kI32);
  };
  return n.binary(BinaryOp::k_shr, n.binary(BinaryOp::k_add, high, word(halves)), word(shifts));
}

}  // namespace

ValueId scale_integers(ImportedNode& n, ValueId x, const std::vector<Multiplier>& multipliers) {
  if (ValueId y = scale_by_high_words(n, x, multipliers, 0); y != kNoValue)
    return n.build.cast(y, DType::kI64);
  if (multipliers[0].factor) {
    constexpr double kMost = 1 << 24;
    ValueId rounded = rounded_product(n, x, multipliers);
    rounded = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, rounded, -kMost), kMost);
    return n.build.cast(rounded, DType::kI32);
  }
  std::vector<int64_t> factors, halves, shifts, second_halves, second_shifts, ones;
  for (const Multiplier& m : multipliers) {
    factors.push_back(m.q);
    halves.push_back(int64_t{1} << (m.shift - 1));
    shifts.push_back(m.shift);
    second_halves.push_back((int64_t{1} << m.second_shift) / 2);
    second_shifts.push_back(m.second_shift);
    ones.push_back(m.second_shift > 0 ? 1 : 0);
  }
  ValueId product = n.binary(BinaryOp::k_mul, n.build.cast(x, DType::kI64), parameter(n, factors));
  ValueId y = n.binary(BinaryOp::k_shr, n.binary(BinaryOp::k_add, product, parameter(n, halves)),
                       parameter(n, shifts));
  if (std::all_of(ones.begin(), ones.end(), [](int64_t one) { return one == 0; })) return y;
  // Half away from zero: halves of negative numbers go down.
  constexpr double kSignBit = 63;
  ValueId below = n.binary(BinaryOp::k_shr, y, kSignBit);  // -1 or 0
  if (std::any_of(ones.begin(), ones.end(), [](int64_t one) { return one == 0; }))
    below = n.binary(BinaryOp::k_mul, below, parameter(n, ones));
  y = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_add, y, below), parameter(n, second_halves));
  return n.binary(BinaryOp::k_shr, y, parameter(n, second_shifts));
}

Expected<IntegerRange> integer_range(NodeImport& n, ActivationFunctionType function, DType dtype,
                                     const Quantization& q) {
  std::optional<ClampRange> range = clamp_range(function);
  if (!range)
    return n.bad_option("fused_activation_function", "none, a clamp, or tanh of floats",
                        tflite::EnumNameActivationFunctionType(function));
  IntegerRange result{lowest_of(dtype), highest_of(dtype)};
  auto integer = [&](double real) { return q.zero() + rounded(static_cast<float>(real) / q.scale()); };
  if (std::isfinite(range->lo)) result.lo = std::max<int64_t>(result.lo, integer(range->lo));
  if (std::isfinite(range->hi)) result.hi = std::min<int64_t>(result.hi, integer(range->hi));
  return result;
}

ValueId clamp_integers(NodeImport& n, ValueId x, ActivationFunctionType function) {
  Expected<IntegerRange> range = integer_range(n, function, n.out_dtype(0), n.out_quantization(0));
  if (!range) return n.build.fail(range.take_errors().front());
  x = n.binary(BinaryOp::k_max, x, static_cast<double>(range->lo));
  x = n.binary(BinaryOp::k_min, x, static_cast<double>(range->hi));
  return n.build.cast(x, n.out_dtype(0));
}

ValueId requantize(NodeImport& n, ValueId x, const std::vector<Multiplier>& multipliers,
                   ActivationFunctionType function) {
  if (multipliers[0].factor) {
    Expected<IntegerRange> range = integer_range(n, function, n.out_dtype(0), n.out_quantization(0));
    if (!range) return n.build.fail(range.take_errors().front());
    double zero = static_cast<double>(n.out_quantization(0).zero());
    x = rounded_product(n, x, multipliers);
    x = n.binary(BinaryOp::k_max, x, static_cast<double>(range->lo) - zero);
    x = n.binary(BinaryOp::k_min, x, static_cast<double>(range->hi) - zero);
    x = n.build.cast(x, DType::kI32);
    return n.build.cast(zero == 0 ? x : n.binary(BinaryOp::k_add, x, zero), n.out_dtype(0));
  }
  const int64_t zero = n.out_quantization(0).zero();
  ValueId scaled = scale_by_high_words(n, x, multipliers, zero);
  if (scaled != kNoValue) return clamp_integers(n, scaled, function);
  scaled = scale_by_high_words(n, x, multipliers, 0);
  if (scaled == kNoValue) scaled = scale_integers(n, x, multipliers);
  if (zero != 0) scaled = n.binary(BinaryOp::k_add, scaled, static_cast<double>(zero));
  return clamp_integers(n, scaled, function);
}

ValueId divide_rounding(ImportedNode& n, ValueId a, ValueId b) {
  ValueId half = n.binary(BinaryOp::k_idiv, b, 2.0);
  ValueId up = n.binary(BinaryOp::k_add, a, half), down = n.binary(BinaryOp::k_sub, a, half);
  return n.binary(BinaryOp::k_idiv, n.build.where(n.binary(BinaryOp::k_gt, a, 0.0), up, down), b);
}

ValueId centred(ImportedNode& n, ValueId x, int64_t zero) {
  x = n.build.cast(x, DType::kI32);
  return zero == 0 ? x : n.binary(BinaryOp::k_sub, x, static_cast<double>(zero));
}

ValueId table_entry(ImportedNode& n, const std::vector<int64_t>& table, ValueId index) {
  auto [lowest, highest] = std::minmax_element(table.begin(), table.end());
  DType narrow = DType::kI64;
  for (DType dtype : {DType::kI32, DType::kI16, DType::kI8})
    if (*lowest >= lowest_of(dtype) && *highest <= highest_of(dtype)) narrow = dtype;
  const auto count = static_cast<int64_t>(table.size());
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(narrow, count)));
  for (size_t i = 0; i < table.size(); ++i)
    store_i64(narrow, bytes.data(), static_cast<int64_t>(i), table[i]);
  ValueId entries = n.build.constant(Tensor{narrow, {count}, Bytes::own(std::move(bytes))});
  return n.build.cast(n.build.take(entries, index, 0), DType::kI64);
}

ValueId look_up(ImportedNode& n, ValueId x, DType result, const std::function<int64_t(int64_t)>& entry) {
  DType dtype = n.dtype(x);
  auto is_integer = [](DType of) { return !is_float(of) && of != DType::kBool; };
  if (!is_integer(dtype) || bit_width(dtype) > 8 || !is_integer(result))
    return n.build.fail(n.invalid("expected integers of 8 bits for a table of integers, found " +
                                  std::string(to_string(dtype)) + " for " + std::string(to_string(result))));
  int64_t lowest = lowest_of(dtype), count = highest_of(dtype) - lowest + 1;
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(result, count)));
  for (int64_t i = 0; i < count; ++i) store_i64(result, bytes.data(), i, entry(lowest + i));
  ValueId table = n.build.constant(Tensor{result, {count}, Bytes::own(std::move(bytes))});
  ValueId index = n.build.cast(x, DType::kI32);
  if (lowest != 0) index = n.binary(BinaryOp::k_sub, index, static_cast<double>(lowest));
  return n.build.take(table, index, 0);
}

Status import_table(NodeImport& n, const std::function<double(double)>& function) {
  if (!n.is_quantized(0) || !n.is_output_quantized()) return n.no_kernel();
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8, DType::kU8, DType::kI16}));
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  const Quantization &in = n.in_quantization(0), &out = n.out_quantization(0);
  DType dtype = n.out_dtype(0);
  if (n.dtype(n.in(0)) == DType::kI16) {
    if (dtype != DType::kI16 || in.zero() != 0 || out.zero() != 0) return n.no_kernel();
    constexpr double kLowest = -32768, kHighest = 32767, kValues = 65536;
    double scale = static_cast<double>(in.scale()), result = static_cast<double>(out.scale());
    std::vector<int64_t> table =
        int16_table(function, scale * kLowest, scale * kHighest, kValues / (result * (kHighest - kLowest)));
    return n.output(n.build.cast(interpolate(n, n.in(0), table), dtype));
  }
  auto entry = [&](int64_t x) {
    double real = function(static_cast<double>(in.scale()) * static_cast<double>(x - in.zero()));
    double lowest = static_cast<double>(lowest_of(dtype)), highest = static_cast<double>(highest_of(dtype));
    double scaled = std::round(real / out.scale()) + static_cast<double>(out.zero());
    return std::isnan(scaled) ? out.zero() : static_cast<int64_t>(std::clamp(scaled, lowest, highest));
  };
  return n.output(look_up(n, n.in(0), dtype, entry));
}

ValueId rescale(NodeImport& n, ValueId x, const Quantization& q) {
  const Quantization& out = n.out_quantization(0);
  DType dtype = n.out_dtype(0);
  float factor = q.scale() * (1.0f / out.scale()), bias = -static_cast<float>(q.zero()) * factor;
  return look_up(n, x, dtype, [&](int64_t v) {
    int64_t scaled = rounded(static_cast<float>(v) * factor + bias) + out.zero();
    return std::clamp(scaled, lowest_of(dtype), highest_of(dtype));
  });
}

namespace {

// Of one scale, or of one for each index of a dim of x.
ValueId spread_over(ImportedNode& n, ValueId x, const Quantization& q, Tensor values) {
  ValueId v = n.build.constant(std::move(values));
  if (q.is_per_tensor()) return n.build.reshape(v, {});
  return n.build.reshape(v, shape_of_scales(n, x, q));
}

}  // namespace

ValueId quantize_by_product(ImportedNode& n, ValueId x, const Quantization& q, DType dtype) {
  double zero = static_cast<double>(q.zero());
  ValueId scaled = n.binary(BinaryOp::k_mul, x, static_cast<double>(1.0f / q.scale()));
  scaled = n.binary(BinaryOp::k_max, scaled, static_cast<double>(lowest_of(dtype)) - zero);
  scaled = n.binary(BinaryOp::k_min, scaled, static_cast<double>(highest_of(dtype)) - zero);
  ValueId integers = n.build.cast(n.unary(UnaryOp::k_round, scaled), DType::kI32);
  return n.build.cast(n.binary(BinaryOp::k_add, integers, zero), dtype);
}

// trunc(x + half) would round 0.49999997 up: the fraction decides, which is exact.
ValueId quantize(ImportedNode& n, ValueId x, const Quantization& q, DType dtype) {
  int64_t count = static_cast<int64_t>(q.scales.size());
  ValueId scaled = n.binary(BinaryOp::k_div, x, spread_over(n, x, q, f32_tensor({count}, q.scales)));
  ValueId whole = n.unary(UnaryOp::k_trunc, scaled);
  ValueId rest = n.unary(UnaryOp::k_abs, n.binary(BinaryOp::k_sub, scaled, whole));
  ValueId away = n.binary(BinaryOp::k_add, whole, n.unary(UnaryOp::k_sign, scaled));
  ValueId rounded = n.build.where(n.binary(BinaryOp::k_ge, rest, 0.5), away, whole);
  ValueId integers = n.build.cast(n.build.cast(rounded, DType::kI32), DType::kI64);  // saturates
  std::vector<int64_t> zeros = q.zero_points;
  zeros.resize(q.scales.size(), 0);
  integers = n.binary(BinaryOp::k_add, integers, spread_over(n, x, q, i64_tensor({count}, zeros)));
  integers = n.binary(BinaryOp::k_max, integers, static_cast<double>(lowest_of(dtype)));
  integers = n.binary(BinaryOp::k_min, integers, static_cast<double>(highest_of(dtype)));
  return n.build.cast(integers, dtype);
}

}  // namespace quernel::tflite_import
