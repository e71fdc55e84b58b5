#include "loop/evaluate_scalar.h"

#include <bit>
#include <cmath>
#include <limits>

#include "support/diagnostic.h"

namespace quernel::loop {
namespace {

uint64_t low_bits(int width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

// OCP 8-bit floats. e4m3 has no infinities (S.1111.111 is NaN); conversion saturates, as ONNX's Cast does by
// default.
struct Float8 {
  int man_bits, bias;
  uint8_t max_finite, nan;
};
Float8 float8(DType dtype) {
  return dtype == DType::kF8E4M3 ? Float8{3, 7, 0x7e, 0x7f} : Float8{2, 15, 0x7b, 0x7e};
}

double decode_float8(DType dtype, uint64_t bits) {
  Float8 f = float8(dtype);
  int magnitude = static_cast<int>(bits & 0x7f);
  double sign = bits & 0x80 ? -1.0 : 1.0;
  if (magnitude > f.max_finite) {
    bool infinite = dtype == DType::kF8E5M2 && magnitude == 0x7c;
    return infinite ? sign * std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  }
  int exponent = magnitude >> f.man_bits, mantissa = magnitude & ((1 << f.man_bits) - 1);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.man_bits);
  return sign * std::ldexp(mantissa | (1 << f.man_bits), exponent - f.bias - f.man_bits);
}

uint64_t encode_float8(DType dtype, double value) {
  Float8 f = float8(dtype);
  uint64_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | f.nan;
  double magnitude = std::fabs(value);
  if (magnitude >= decode_float8(dtype, f.max_finite)) return sign | f.max_finite;
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  int e = std::max(exponent - 1, 1 - f.bias);
  auto integer = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, f.man_bits - e)));
  // A normal number's integer has its leading one, which the field e - (1 - bias) carries into the exponent.
  uint64_t field = (static_cast<uint64_t>(e - (1 - f.bias)) << f.man_bits) + integer;
  return sign | field;
}

double mod_of_divisor_sign(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0 && std::signbit(r) != std::signbit(b)) r += b;
  return r == 0 ? std::copysign(0.0, b) : r;
}

double unary_double(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::k_neg:
      return -x;
    case UnaryOp::k_abs:
      return std::fabs(x);
    case UnaryOp::k_sign:
      return std::isnan(x) || x == 0 ? x : std::copysign(1.0, x);
    case UnaryOp::k_floor:
      return std::floor(x);
    case UnaryOp::k_ceil:
      return std::ceil(x);
    case UnaryOp::k_round:
      return std::nearbyint(x);
    case UnaryOp::k_trunc:
      return std::trunc(x);
    case UnaryOp::k_sqrt:
      return std::sqrt(x);
    case UnaryOp::k_rsqrt:
      return 1.0 / std::sqrt(x);
    case UnaryOp::k_recip:
      return 1.0 / x;
    case UnaryOp::k_exp:
      return std::exp(x);
    case UnaryOp::k_exp2:
      return std::exp2(x);
    case UnaryOp::k_log:
      return std::log(x);
    case UnaryOp::k_log2:
      return std::log2(x);
    case UnaryOp::k_log1p:
      return std::log1p(x);
    case UnaryOp::k_expm1:
      return std::expm1(x);
    case UnaryOp::k_sin:
      return std::sin(x);
    case UnaryOp::k_cos:
      return std::cos(x);
    case UnaryOp::k_tan:
      return std::tan(x);
    case UnaryOp::k_asin:
      return std::asin(x);
    case UnaryOp::k_acos:
      return std::acos(x);
    case UnaryOp::k_atan:
      return std::atan(x);
    case UnaryOp::k_sinh:
      return std::sinh(x);
    case UnaryOp::k_cosh:
      return std::cosh(x);
    case UnaryOp::k_tanh:
      return std::tanh(x);
    case UnaryOp::k_asinh:
      return std::asinh(x);
    case UnaryOp::k_acosh:
      return std::acosh(x);
    case UnaryOp::k_atanh:
      return std::atanh(x);
    case UnaryOp::k_erf:
      return std::erf(x);
    default:
      QUERNEL_UNREACHABLE("unary operation is not defined on floats");
  }
}

double binary_double(BinaryOp op, double a, double b) {
  bool either_nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case BinaryOp::k_add:
      return a + b;
    case BinaryOp::k_sub:
      return a - b;
    case BinaryOp::k_mul:
      return a * b;
    case BinaryOp::k_div:
      return a / b;
    case BinaryOp::k_idiv:
      return std::trunc(a / b);
    case BinaryOp::k_fdiv:
      return std::floor(a / b);
    case BinaryOp::k_mod:
      return mod_of_divisor_sign(a, b);
    case BinaryOp::k_fmod:
      return std::fmod(a, b);
    case BinaryOp::k_pow:
      return std::pow(a, b);
    case BinaryOp::k_max:
      return either_nan ? a + b : std::fmax(a, b);
    case BinaryOp::k_min:
      return either_nan ? a + b : std::fmin(a, b);
    default:
      QUERNEL_UNREACHABLE("binary operation is not defined on floats");
  }
}

template <class T>
bool compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::k_eq:
      return a == b;
    case BinaryOp::k_ne:
      return a != b;
    case BinaryOp::k_lt:
      return a < b;
    case BinaryOp::k_le:
      return a <= b;
    case BinaryOp::k_gt:
      return a > b;
    case BinaryOp::k_ge:
      return a >= b;
    default:
      QUERNEL_UNREACHABLE("not a comparison");
  }
}

uint64_t integer_power(uint64_t base, uint64_t exponent) {  // modulo 2^64, so any integer width wraps rightly
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): 20 rounds, a key injection after each
// four.
uint64_t threefry2x32(uint64_t key, uint64_t counter) {
  static constexpr int kRotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t keys[3] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), 0x1bd11bda};
  keys[2] ^= keys[0] ^ keys[1];
  uint32_t a = static_cast<uint32_t>(counter) + keys[0];
  uint32_t b = static_cast<uint32_t>(counter >> 32) + keys[1];
  for (uint32_t round = 0; round < 20; ++round) {
    a += b;
    b = std::rotl(b, kRotations[round % 8]) ^ a;
    if (round % 4 != 3) continue;
    uint32_t injection = round / 4 + 1;
    a += keys[injection % 3];
    b += keys[(injection + 1) % 3] + injection;
  }
  return a | uint64_t{b} << 32;
}

// On 64-bit two's complement values, sign- or zero-extended from the dtype; the caller wraps the result.
uint64_t binary_unsigned(BinaryOp op, uint64_t a, uint64_t b, int width) {
  switch (op) {
    case BinaryOp::k_div:
    case BinaryOp::k_idiv:
    case BinaryOp::k_fdiv:
      return b == 0 ? 0 : a / b;
    case BinaryOp::k_mod:
    case BinaryOp::k_fmod:
      return b == 0 ? 0 : a % b;
    case BinaryOp::k_pow:
      return integer_power(a, b);
    case BinaryOp::k_max:
      return a > b ? a : b;
    case BinaryOp::k_min:
      return a < b ? a : b;
    case BinaryOp::k_shr:
      return b >= static_cast<uint64_t>(width) ? 0 : a >> b;
    default:
      QUERNEL_UNREACHABLE("integer operation is not handled");
  }
}

uint64_t binary_signed(BinaryOp op, int64_t a, int64_t b, int width) {
  bool overflow = b == -1;  // x / -1 is -x, which wraps for the smallest value
  int64_t quotient = b == 0 ? 0 : overflow ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
  int64_t remainder = b == 0 || overflow ? 0 : a % b;
  bool inexact_below_zero = remainder != 0 && (remainder < 0) != (b < 0);
  switch (op) {
    case BinaryOp::k_div:
    case BinaryOp::k_idiv:
      return static_cast<uint64_t>(quotient);
    case BinaryOp::k_fdiv:
      return static_cast<uint64_t>(quotient - (inexact_below_zero ? 1 : 0));
    case BinaryOp::k_mod:
      return static_cast<uint64_t>(inexact_below_zero ? remainder + b : remainder);
    case BinaryOp::k_fmod:
      return static_cast<uint64_t>(remainder);
    case BinaryOp::k_pow:
      if (b >= 0) return integer_power(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
      if (a == 1) return 1;  // a negative power truncates to 0 but for 1 and -1
      return a == -1 ? (b % 2 == 0 ? 1 : ~uint64_t{0}) : 0;
    case BinaryOp::k_max:
      return static_cast<uint64_t>(a > b ? a : b);
    case BinaryOp::k_min:
      return static_cast<uint64_t>(a < b ? a : b);
    case BinaryOp::k_shr: {
      bool past_end = b < 0 || b >= width;
      return static_cast<uint64_t>(past_end ? (a < 0 ? -1 : 0) : a >> b);
    }
    default:
      QUERNEL_UNREACHABLE("integer operation is not handled");
  }
}

uint64_t binary_integer(BinaryOp op, DType dtype, uint64_t a, uint64_t b) {
  int width = bit_width(dtype);
  switch (op) {
    case BinaryOp::k_add:
      return a + b;
    case BinaryOp::k_sub:
      return a - b;
    case BinaryOp::k_mul:
      return a * b;
    case BinaryOp::k_and:
      return a & b;
    case BinaryOp::k_or:
      return a | b;
    case BinaryOp::k_xor:
      return a ^ b;
    case BinaryOp::k_shl:
      return b >= static_cast<uint64_t>(width) ? 0 : a << b;
    case BinaryOp::k_threefry2x32:
      return threefry2x32(a, b);
    default:
      break;
  }
  if (!is_signed_integer(dtype)) return binary_unsigned(op, a, b, width);
  return binary_signed(op, bits_to_int(dtype, a), bits_to_int(dtype, b), width);
}

uint64_t binary_bool(BinaryOp op, bool a, bool b) {
  switch (op) {
    case BinaryOp::k_add:
    case BinaryOp::k_max:
    case BinaryOp::k_or:
      return a || b;
    case BinaryOp::k_mul:
    case BinaryOp::k_min:
    case BinaryOp::k_and:
      return a && b;
    case BinaryOp::k_xor:
      return a != b;
    default:
      QUERNEL_UNREACHABLE("binary operation is not defined on bool");
  }
}

uint64_t float_to_integer(DType to, double value) {
  if (std::isnan(value)) return 0;
  double truncated = std::trunc(value);
  int width = bit_width(to);
  if (is_signed_integer(to)) {
    double limit = std::ldexp(1.0, width - 1);
    if (truncated >= limit) return low_bits(width - 1);
    if (truncated < -limit) return uint64_t{1} << (width - 1);
    return int_to_bits(to, static_cast<int64_t>(truncated));
  }
  if (truncated >= std::ldexp(1.0, width)) return low_bits(width);
  return truncated <= 0 ? 0 : static_cast<uint64_t>(truncated);
}

}  // namespace

double bits_to_double(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::kF64:
      return std::bit_cast<double>(bits);
    case DType::kF16:
      return f16_bits_to_f32(static_cast<uint16_t>(bits));
    case DType::kBF16:
      return bf16_bits_to_f32(static_cast<uint16_t>(bits));
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return decode_float8(dtype, bits);
    default:
      QUERNEL_UNREACHABLE("not a float dtype");
  }
}

uint64_t double_to_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::kF64:
      return std::bit_cast<uint64_t>(value);
    case DType::kF16:
      return f64_to_f16_bits(value);
    case DType::kBF16:
      return f64_to_bf16_bits(value);
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return encode_float8(dtype, value);
    default:
      QUERNEL_UNREACHABLE("not a float dtype");
  }
}

int64_t bits_to_int(DType dtype, uint64_t bits) {
  if (dtype == DType::kBool) return bits != 0;
  int width = bit_width(dtype);
  bits &= low_bits(width);
  bool negative = is_signed_integer(dtype) && width < 64 && ((bits >> (width - 1)) & 1);
  return static_cast<int64_t>(negative ? bits | ~low_bits(width) : bits);
}

uint64_t int_to_bits(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  return static_cast<uint64_t>(value) & low_bits(bit_width(dtype));
}

uint64_t evaluate_unary(UnaryOp op, DType dtype, uint64_t x) {
  if (is_float(dtype)) {
    double value = bits_to_double(dtype, x);
    if (op == UnaryOp::k_is_nan) return std::isnan(value);
    if (op == UnaryOp::k_is_inf) return std::isinf(value);
    return double_to_bits(dtype, unary_double(op, value));
  }
  if (dtype == DType::kBool)
    return op == UnaryOp::k_neg || op == UnaryOp::k_not || op == UnaryOp::k_bit_not ? !x : x;
  int64_t value = bits_to_int(dtype, x);
  bool negative = is_signed_integer(dtype) && value < 0;
  switch (op) {
    case UnaryOp::k_is_nan:
    case UnaryOp::k_is_inf:
      return 0;
    case UnaryOp::k_neg:
      return int_to_bits(dtype, static_cast<int64_t>(0 - x));
    case UnaryOp::k_abs:
      return negative ? int_to_bits(dtype, static_cast<int64_t>(0 - x)) : x;
    case UnaryOp::k_sign:
      return int_to_bits(dtype, negative ? -1 : value != 0);
    case UnaryOp::k_not:
    case UnaryOp::k_bit_not:
      return int_to_bits(dtype, static_cast<int64_t>(~x));
    default:
      return x;  // floor, ceil, round, trunc
  }
}

uint64_t evaluate_binary(BinaryOp op, DType dtype, uint64_t a, uint64_t b) {
  if (is_comparison(op)) {
    if (is_float(dtype)) return compare(op, bits_to_double(dtype, a), bits_to_double(dtype, b));
    if (is_signed_integer(dtype)) return compare(op, bits_to_int(dtype, a), bits_to_int(dtype, b));
    return compare(op, a, b);
  }
  if (dtype == DType::kBool) return binary_bool(op, a != 0, b != 0);
  if (is_float(dtype))
    // f64 arithmetic rounds once more to narrower formats, which is exact for + - * / (53 >= 2 * 24 + 2
    // digits).
    return double_to_bits(dtype, binary_double(op, bits_to_double(dtype, a), bits_to_double(dtype, b)));
  return int_to_bits(dtype, static_cast<int64_t>(binary_integer(op, dtype, a, b)));
}

uint64_t evaluate_mul_acc(DType dtype, uint64_t a, uint64_t b, uint64_t c) {
  if (dtype == DType::kF32)
    return std::bit_cast<uint32_t>(std::fma(std::bit_cast<float>(static_cast<uint32_t>(a)),
                                            std::bit_cast<float>(static_cast<uint32_t>(b)),
                                            std::bit_cast<float>(static_cast<uint32_t>(c))));
  if (is_float(dtype))
    return double_to_bits(
        dtype, std::fma(bits_to_double(dtype, a), bits_to_double(dtype, b), bits_to_double(dtype, c)));
  return evaluate_binary(BinaryOp::k_add, dtype, evaluate_binary(BinaryOp::k_mul, dtype, a, b), c);
}

uint64_t evaluate_dot(DType a_dtype, DType b_dtype, DType sum_dtype, uint64_t a, uint64_t b, uint64_t c) {
  if (sum_dtype == DType::kF32) {
    for (int shift : {16, 0}) {
      auto half = [&](uint64_t word) { return (word >> shift & 0xffff) << 16; };
      c = evaluate_mul_acc(DType::kF32, half(a), half(b), c);
    }
    return c;
  }
  auto byte = [](DType dtype, uint64_t word, int i) -> int64_t {
    auto bits = static_cast<uint8_t>(word >> (8 * i));
    return dtype == DType::kI32 ? static_cast<int8_t>(bits) : int64_t{bits};
  };
  auto product = [&](int i) { return byte(a_dtype, a, i) * byte(b_dtype, b, i); };
  if (sum_dtype == DType::kU32) {
    constexpr uint64_t kHalf = 0xffff;
    auto half = [&](int first) {
      return ((c >> (8 * first)) + static_cast<uint64_t>(product(first) + product(first + 1))) & kHalf;
    };
    return half(0) | half(2) << 16;
  }
  int64_t sum = bits_to_int(DType::kI32, c);
  for (int i = 0; i < 4; ++i) sum += product(i);
  return int_to_bits(DType::kI32, sum);
}

uint64_t evaluate_cast(DType from, DType to, uint64_t bits) {
  if (from == to) return bits;
  if (is_float(from)) {
    double value = bits_to_double(from, bits);
    if (is_float(to)) return double_to_bits(to, value);
    if (to == DType::kBool) return value != 0;  // NaN is true
    return float_to_integer(to, value);
  }
  if (!is_float(to)) return int_to_bits(to, bits_to_int(from, bits));
  if (to == DType::kF32)  // one rounding, not two
    return std::bit_cast<uint32_t>(from == DType::kU64 ? static_cast<float>(bits)
                                                       : static_cast<float>(bits_to_int(from, bits)));
  return double_to_bits(
      to, from == DType::kU64 ? static_cast<double>(bits) : static_cast<double>(bits_to_int(from, bits)));
}

bool is_storage_only(DType dtype) { return dtype >= DType::kI4; }

bool unary_accepts(UnaryOp op, DType dtype) {
  if (is_storage_only(dtype)) return false;
  switch (op) {
    case UnaryOp::k_not:
    case UnaryOp::k_bit_not:
      return !is_float(dtype);
    case UnaryOp::k_neg:
    case UnaryOp::k_abs:
    case UnaryOp::k_sign:
    case UnaryOp::k_floor:
    case UnaryOp::k_ceil:
    case UnaryOp::k_round:
    case UnaryOp::k_trunc:
    case UnaryOp::k_is_nan:
    case UnaryOp::k_is_inf:
      return true;
    default:
      return is_float(dtype);
  }
}

bool binary_accepts(BinaryOp op, DType dtype) {
  if (is_storage_only(dtype)) return false;
  if (is_comparison(op)) return true;
  switch (op) {
    case BinaryOp::k_add:
    case BinaryOp::k_mul:
    case BinaryOp::k_max:
    case BinaryOp::k_min:
      return true;
    case BinaryOp::k_and:
    case BinaryOp::k_or:
    case BinaryOp::k_xor:
      return !is_float(dtype);
    case BinaryOp::k_shl:
    case BinaryOp::k_shr:
      return is_integer(dtype);
    case BinaryOp::k_threefry2x32:
      return dtype == DType::kU64;
    default:
      return dtype != DType::kBool;
  }
}

}  // namespace quernel::loop
