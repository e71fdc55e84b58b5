// Numbers are integers of 32 bits: `real * 2^(31 - integer bits)`. The names of constants say how many integer bits there
// are: kQ0 has none. https://github.com/google/gemmlowp/blob/master/fixedpoint/fixedpoint.h defines the functions.
#include "frontends/tflite/fixed_point.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {
namespace {

constexpr int kProductBits = 31;
constexpr int64_t kOne = std::numeric_limits<int32_t>::max();  // of kQ0: the largest number below 1

int64_t shift_right(int64_t x, int bits) {  // rounded half away from zero
  if (bits == 0) return x;
  return (x + (int64_t{1} << (bits - 1)) - (x < 0 ? 1 : 0)) >> bits;
}

// Arithmetic of numbers with `bits` bits besides the sign, 31 or 15, at compile time, and the same in the graph.
struct Numbers {
  using Value = int64_t;
  int bits = kProductBits;
  int64_t one() const { return (int64_t{1} << bits) - 1; }
  // `a`: of 31 bits.
  int64_t constant(int64_t a) const { return shift_right(a, kProductBits - bits); }
  int64_t product(int64_t a, int64_t b) const { return (a * b + (int64_t{1} << (bits - 1))) >> bits; }
  int64_t sum(int64_t a, int64_t b) const { return a + b; }
  int64_t difference(int64_t a, int64_t b) const { return a - b; }
  int64_t saturated(int64_t a) const { return std::clamp(a, -one() - 1, one()); }
  int64_t doubled(int64_t a, int times) const { return saturated(a * (int64_t{1} << times)); }
  int64_t halved(int64_t a) const { return a / 2; }
  int64_t rounded_shift(int64_t a, int count) const { return shift_right(a, count); }
  int64_t masked(int64_t a, int64_t mask) const { return a & mask; }
  int64_t where_any(int64_t condition, int64_t a, int64_t b) const { return condition != 0 ? a : b; }
};

struct GraphNumbers {
  using Value = ValueId;
  ImportedNode& n;
  int bits = kProductBits;
  ValueId literal(int64_t a) const { return n.scalar(DType::kI64, static_cast<double>(a)); }
  int64_t one() const { return (int64_t{1} << bits) - 1; }
  ValueId constant(int64_t a) const { return literal(shift_right(a, kProductBits - bits)); }
  ValueId product(ValueId a, ValueId b) const {
    ValueId y = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, a, b), std::ldexp(1.0, bits - 1));
    return n.binary(BinaryOp::k_shr, y, static_cast<double>(bits));
  }
  ValueId sum(ValueId a, ValueId b) const { return n.binary(BinaryOp::k_add, a, b); }
  ValueId difference(ValueId a, ValueId b) const { return n.binary(BinaryOp::k_sub, a, b); }
  ValueId saturated(ValueId a) const {
    a = n.binary(BinaryOp::k_max, a, static_cast<double>(-one() - 1));
    return n.binary(BinaryOp::k_min, a, static_cast<double>(one()));
  }
  ValueId doubled(ValueId a, int times) const {
    return saturated(n.binary(BinaryOp::k_shl, a, static_cast<double>(times)));
  }
  ValueId halved(ValueId a) const { return n.binary(BinaryOp::k_idiv, a, 2.0); }
  ValueId rounded_shift(ValueId a, int count) const {
    constexpr double kSignBit = 63;
    a = n.binary(BinaryOp::k_add, a, n.binary(BinaryOp::k_shr, a, kSignBit));
    a = n.binary(BinaryOp::k_add, a, std::ldexp(1.0, count - 1));
    return n.binary(BinaryOp::k_shr, a, static_cast<double>(count));
  }
  ValueId masked(ValueId a, int64_t mask) const {
    return n.binary(BinaryOp::k_and, a, static_cast<double>(mask));
  }
  ValueId where_any(ValueId condition, ValueId a, ValueId b) const {
    return n.build.where(n.binary(BinaryOp::k_eq, condition, 0.0), b, a);
  }
};

// 1 / ((1 + x) / 2), of 2 integer bits, for a kQ0 between 0 and 1: three steps of Newton's iteration.
template <class Arithmetic>
typename Arithmetic::Value reciprocal_of_half_sum(const Arithmetic& m, typename Arithmetic::Value x) {
  constexpr int64_t k48Over17 = 1515870810, k32Over17 = 1010580540, kUnit = int64_t{1} << 29;
  constexpr int kSteps = 3;
  // The halved sum is rounded up: x is not negative.
  auto denominator = m.halved(m.sum(x, m.constant(kOne + 1)));
  auto y = m.sum(m.constant(k48Over17), m.product(denominator, m.constant(-k32Over17)));
  for (int i = 0; i < kSteps; ++i) {
    auto rest = m.difference(m.constant(kUnit), m.product(denominator, y));
    y = m.sum(y, m.doubled(m.product(y, rest), 2));
  }
  return y;
}
// 1 / (1 + x) as kQ0.
template <class Arithmetic>
typename Arithmetic::Value reciprocal_of_sum(const Arithmetic& m, typename Arithmetic::Value x) {
  return m.doubled(reciprocal_of_half_sum(m, x), 1);
}

// exp(x) for a kQ0 in [-1/4, 0): a polynomial around -1/8.
template <class Arithmetic>
typename Arithmetic::Value exp_of_quarter(const Arithmetic& m, typename Arithmetic::Value a) {
  constexpr int64_t kExpOfEighth = 1895147668, kThird = 715827883, kEighth = int64_t{1} << 28;
  auto x = m.sum(a, m.constant(kEighth));
  auto x2 = m.product(x, x), x3 = m.product(x2, x), x4 = m.product(x2, x2);
  auto higher = m.product(m.sum(m.rounded_shift(x4, 2), x3), m.constant(kThird));
  higher = m.rounded_shift(m.sum(higher, x2), 1);
  auto scale = m.constant(kExpOfEighth);
  return m.saturated(m.sum(scale, m.product(scale, m.sum(x, higher))));
}

// exp(x) as kQ0, for a number of `integer_bits` integer bits that is not positive.
template <class Arithmetic>
typename Arithmetic::Value exp_of_negative(const Arithmetic& m, typename Arithmetic::Value a,
                                           int integer_bits) {
  // exp(-2^i) for i from -2.
  constexpr int64_t kExponentials[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  constexpr int kFirst = -2;
  const int fraction = m.bits - integer_bits;
  const int64_t quarter = int64_t{1} << (fraction + kFirst);
  auto literal = [&](int64_t v) { return m.constant(v * (int64_t{1} << (kProductBits - m.bits))); };
  auto inside = m.difference(m.masked(a, quarter - 1), literal(quarter));
  auto steps = m.difference(inside, a);
  auto y = exp_of_quarter(m, m.doubled(inside, integer_bits));
  for (int i = 0; i < static_cast<int>(std::size(kExponentials)); ++i)
    if (integer_bits > i + kFirst)
      y = m.where_any(m.masked(steps, int64_t{1} << (fraction + kFirst + i)),
                      m.product(y, m.constant(kExponentials[i])), y);
  return m.where_any(a, y, literal(m.one()));
}

// The logistic function of a number that is not positive, from 1, as kQ0: 1 / (1 + exp(x)).
template <class Arithmetic>
typename Arithmetic::Value logistic_of_magnitude(const Arithmetic& m, typename Arithmetic::Value negative,
                                                 int integer_bits) {
  return reciprocal_of_sum(m, exp_of_negative(m, negative, integer_bits));
}
// tanh of a magnitude, from the number with its sign turned, as kQ0: 2 / (1 + exp(2 * x)) - 1.
template <class Arithmetic>
typename Arithmetic::Value tanh_of_magnitude(const Arithmetic& m, typename Arithmetic::Value negative,
                                             int integer_bits) {
  constexpr int64_t kUnit = int64_t{1} << 29;
  auto e = exp_of_negative(m, negative, integer_bits + 1);
  return m.doubled(m.difference(reciprocal_of_half_sum(m, e), m.constant(kUnit)), 2);
}

constexpr int kInputBits = 4;  // of LOGISTIC and TANH of 8 bits

int64_t logistic(int64_t a) {
  if (a == 0) return (kOne + 1) / 2;
  int64_t y = logistic_of_magnitude(Numbers(), -std::abs(a), kInputBits);
  return a > 0 ? y : kOne - y;
}

int64_t tanh(int64_t a) {
  int64_t y = a == 0 ? 0 : tanh_of_magnitude(Numbers(), -std::abs(a), kInputBits);
  return a > 0 ? y : -y;
}

// Numbers of `integer_bits` above this are too large for what follows.
int64_t input_radius(int integer_bits, int left_shift) {
  double largest = std::ldexp((1 << integer_bits) - 1.0, kProductBits - integer_bits - left_shift);
  return static_cast<int64_t>(std::floor(largest));
}

int exponent_of(const Multiplier& m) { return kProductBits - m.shift - m.second_shift; }

Status expect_one_scale(NodeImport& n) {
  QUERNEL_CHECK(n.expect_per_tensor(0));
  return n.expect_output_per_tensor();
}

// A table of a function of kInputBits integer bits, whose kQ0 is shifted right by `bits` and moved by `zero`.
Status function_table(NodeImport& n, int64_t (*function)(int64_t), int bits, int64_t zero) {
  QUERNEL_CHECK(expect_one_scale(n));
  const Quantization& in = n.in_quantization(0);
  Multiplier m = make_multiplier(static_cast<double>(in.scale()) * std::ldexp(1.0, kProductBits - kInputBits),
                                 IntegerRounding::kDouble);
  int64_t radius = input_radius(kInputBits, exponent_of(m));
  QUERNEL_TRY(IntegerRange range,
              integer_range(n, ActivationFunctionType::NONE, n.out_dtype(0), n.out_quantization(0)));
  return n.output(look_up(n, n.in(0), n.out_dtype(0), [&](int64_t v) {
    int64_t x = v - in.zero();
    if (x <= -radius) return range.lo;
    if (x >= radius) return range.hi;
    return std::clamp(shift_right(function(scale_integer(x, m)), bits) + zero, range.lo, range.hi);
  }));
}

}  // namespace

Status fixed_point_logistic(NodeImport& n) {
  constexpr int kResultBits = 8;
  return function_table(n, logistic, kProductBits - kResultBits, n.out_quantization(0).zero());
}

Status fixed_point_tanh(NodeImport& n) {
  constexpr int kResultBits = 7;
  return function_table(n, tanh, kProductBits - kResultBits, n.out_quantization(0).zero());
}

// Numbers of 16 bits.
Status fixed_point_hard_swish(NodeImport& n) {
  QUERNEL_CHECK(expect_one_scale(n));
  constexpr int kBits = 7, kFraction = 15;
  constexpr int64_t kLowest = -32768, kHighest = 32767;
  const Quantization &in = n.in_quantization(0), &out = n.out_quantization(0);
  struct Scaling {
    int64_t q;
    int exponent;
  };
  auto scaling = [](float m) {
    Multiplier full = make_multiplier(static_cast<double>(m), IntegerRounding::kSingle);
    constexpr int64_t kLargest = 0x7FFF0000;
    int64_t q = full.q >= kLargest ? kHighest : (full.q + (1 << 15)) >> 16;
    return Scaling{q, kProductBits - full.shift};
  };
  float fine = 1.0f / (1 << kBits) * in.scale();
  Scaling output = scaling(fine / out.scale()), gate = scaling(fine / (3.0f / 32768.0f));
  if (output.exponent > 0)
    return n.refuse("expected a result's scale that is at least 1/128 of the operand's");
  auto saturated = [&](int64_t x) { return std::clamp(x, kLowest, kHighest); };
  auto product = [&](int64_t a, int64_t b) {
    return saturated((a * b + (1 << (kFraction - 1))) >> kFraction);
  };
  QUERNEL_TRY(IntegerRange range, integer_range(n, ActivationFunctionType::NONE, n.out_dtype(0), out));
  return n.output(look_up(n, n.in(0), n.out_dtype(0), [&](int64_t v) {
    int64_t x = (v - in.zero()) * (1 << kBits), y = product(x, output.q), g = x;
    constexpr int kMostShift = 16;  // saturates all but 0
    if (gate.exponent > 0) g = saturated(g << std::min(gate.exponent - 1, kMostShift));
    g = product(g, gate.q);
    if (gate.exponent > 0) g = saturated(g * 2);
    if (gate.exponent < 0) g = shift_right(g, -gate.exponent);
    g = (g + (1 << kFraction)) >> 1;
    y = shift_right(g * y / (1 << kFraction), -output.exponent);
    return std::clamp(y + out.zero(), range.lo, range.hi);
  }));
}

namespace {

constexpr int kInt16Bits = 15;
constexpr int kInt16InputBits = 3;

// The operand in 3 integer bits: a scale of 2^-12 is 1, larger powers saturate.
ValueId operand_of_int16(NodeImport& n) {
  constexpr int kFraction = kInt16Bits - kInt16InputBits;
  ValueId x = n.build.cast(n.in(0), DType::kI64);
  int shift = std::ilogb(n.in_quantization(0).scale()) + kFraction;
  return shift > 0 ? GraphNumbers{n, kInt16Bits}.doubled(x, shift) : x;
}

ValueId negative_magnitude(ImportedNode& n, ValueId x) {
  return n.unary(UnaryOp::k_neg, n.unary(UnaryOp::k_abs, x));
}

}  // namespace

ValueId fixed_point_logistic(ImportedNode& n, ValueId x, int integer_bits) {
  GraphNumbers m{n, kInt16Bits};
  ValueId negative = negative_magnitude(n, x), y = logistic_of_magnitude(m, negative, integer_bits);
  ValueId below = m.difference(m.literal(m.one()), y);
  y = n.build.where(n.binary(BinaryOp::k_ge, x, 0.0), y, below);
  return m.where_any(negative, y, m.literal((m.one() + 1) / 2));
}

ValueId fixed_point_tanh(ImportedNode& n, ValueId x, int integer_bits) {
  GraphNumbers m{n, kInt16Bits};
  ValueId negative = negative_magnitude(n, x), y = tanh_of_magnitude(m, negative, integer_bits);
  y = n.build.where(n.binary(BinaryOp::k_ge, x, 0.0), y, n.unary(UnaryOp::k_neg, y));
  return m.where_any(negative, y, m.literal(0));
}

ValueId fixed_point_shift(ImportedNode& n, ValueId x, int bits) {
  return GraphNumbers{n}.rounded_shift(x, bits);
}

Status fixed_point_logistic_int16(NodeImport& n) {
  return n.output(n.build.cast(fixed_point_logistic(n, operand_of_int16(n), kInt16InputBits), DType::kI16));
}

Status fixed_point_tanh_int16(NodeImport& n) {
  return n.output(n.build.cast(fixed_point_tanh(n, operand_of_int16(n), kInt16InputBits), DType::kI16));
}

Status fixed_point_softmax(NodeImport& n, double beta) {
  QUERNEL_CHECK(expect_one_scale(n));
  constexpr int kDifferenceBits = 5, kSumBits = 12;
  // 2^12 exponentials below one fit the 31 bits of a sum.
  QUERNEL_CHECK(n.require_at_least(Dim((1 << kSumBits) - 1) - n.shape(n.in(0)).back(), 0,
                                   "4095 minus the elements of a row"));
  int result_bits = bit_width(n.out_dtype(0));
  double step = std::min(beta * static_cast<double>(n.in_quantization(0).scale()) *
                             std::ldexp(1.0, kProductBits - kDifferenceBits),
                         std::ldexp(1.0, kProductBits) - 1);
  if (!(step > 1)) return n.refuse("expected a scale times beta of more than 2^-26");
  Multiplier m = make_multiplier(step, IntegerRounding::kDouble);
  int64_t radius = input_radius(kDifferenceBits, exponent_of(m));
  std::vector<int64_t> exponentials, terms;
  for (int64_t i = 0; i < 256; ++i) {
    int64_t e = i <= radius ? exp_of_negative(Numbers(), scale_integer(-i, m), kDifferenceBits) : 0;
    exponentials.push_back(e);
    terms.push_back(i <= radius ? shift_right(e, kSumBits) : 0);
  }
  int64_t last = n.rank(n.in(0)) - 1;
  ValueId x = n.build.cast(n.in(0), DType::kI32);
  ValueId below = n.binary(BinaryOp::k_sub, n.build.reduce(OpKind::k_reduce_max, x, {last}, true), x);
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, table_entry(n, terms, below), {last}, true);
  // The sum, at least 1, is 2^k * (1 + a fraction): the fraction as kQ0, and what k is.
  std::vector<int64_t> powers;
  for (int i = kProductBits - kSumBits + 1; i < kProductBits; ++i) powers.push_back(int64_t{1} << i);
  ValueId limits = n.build.constant(i64_tensor({static_cast<int64_t>(powers.size())}, powers));
  ValueId reached = n.build.cast(n.binary(BinaryOp::k_ge, sum, limits), DType::kI64);
  ValueId k = n.build.reduce(OpKind::k_reduce_sum, reached, {last}, true);
  ValueId room = n.binary(BinaryOp::k_sub, n.scalar(DType::kI64, 1.0 * kSumBits), k);
  ValueId fraction =
      n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_shl, sum, room), std::ldexp(1.0, kProductBits));
  GraphNumbers numbers{n};
  ValueId scale = reciprocal_of_sum(numbers, fraction);
  ValueId y = numbers.product(table_entry(n, exponentials, below), scale);
  ValueId shift = n.binary(BinaryOp::k_add, k, 1.0 * (kProductBits - result_bits));
  ValueId half = n.binary(BinaryOp::k_shr, n.binary(BinaryOp::k_shl, n.scalar(DType::kI64, 1), shift), 1.0);
  y = n.binary(BinaryOp::k_shr, n.binary(BinaryOp::k_add, y, half), shift);
  y = n.binary(BinaryOp::k_add, y, static_cast<double>(n.out_quantization(0).zero()));
  return n.output(clamp_integers(n, y, ActivationFunctionType::NONE));
}

}  // namespace quernel::tflite_import
