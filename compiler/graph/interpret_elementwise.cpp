// Elementwise ops: a chunk of each operand is loaded as f64 (floats) or i64 (integers, bool), computed, and
// rounded or wrapped to the result's dtype. support/scalar_ops.h states the semantics.
#include <array>
#include <cmath>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

constexpr int64_t kChunk = 1024;

void unary_floats(UnaryOp op, int64_t n, const double* x, double* r) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) r[i] = f(x[i]);
  };
  switch (op) {
    case UnaryOp::k_neg:
      return each([](double v) { return -v; });
    case UnaryOp::k_abs:
      return each([](double v) { return std::fabs(v); });
    case UnaryOp::k_sign:
      return each([](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : v; });
    case UnaryOp::k_floor:
      return each([](double v) { return std::floor(v); });
    case UnaryOp::k_ceil:
      return each([](double v) { return std::ceil(v); });
    case UnaryOp::k_round:
      return each([](double v) { return std::nearbyint(v); });
    case UnaryOp::k_trunc:
      return each([](double v) { return std::trunc(v); });
    case UnaryOp::k_sqrt:
      return each([](double v) { return std::sqrt(v); });
    case UnaryOp::k_rsqrt:
      return each([](double v) { return 1 / std::sqrt(v); });
    case UnaryOp::k_recip:
      return each([](double v) { return 1 / v; });
    case UnaryOp::k_exp:
      return each([](double v) { return std::exp(v); });
    case UnaryOp::k_exp2:
      return each([](double v) { return std::exp2(v); });
    case UnaryOp::k_log:
      return each([](double v) { return std::log(v); });
    case UnaryOp::k_log2:
      return each([](double v) { return std::log2(v); });
    case UnaryOp::k_log1p:
      return each([](double v) { return std::log1p(v); });
    case UnaryOp::k_expm1:
      return each([](double v) { return std::expm1(v); });
    case UnaryOp::k_sin:
      return each([](double v) { return std::sin(v); });
    case UnaryOp::k_cos:
      return each([](double v) { return std::cos(v); });
    case UnaryOp::k_tan:
      return each([](double v) { return std::tan(v); });
    case UnaryOp::k_asin:
      return each([](double v) { return std::asin(v); });
    case UnaryOp::k_acos:
      return each([](double v) { return std::acos(v); });
    case UnaryOp::k_atan:
      return each([](double v) { return std::atan(v); });
    case UnaryOp::k_sinh:
      return each([](double v) { return std::sinh(v); });
    case UnaryOp::k_cosh:
      return each([](double v) { return std::cosh(v); });
    case UnaryOp::k_tanh:
      return each([](double v) { return std::tanh(v); });
    case UnaryOp::k_asinh:
      return each([](double v) { return std::asinh(v); });
    case UnaryOp::k_acosh:
      return each([](double v) { return std::acosh(v); });
    case UnaryOp::k_atanh:
      return each([](double v) { return std::atanh(v); });
    case UnaryOp::k_erf:
      return each([](double v) { return std::erf(v); });
    default:
      QUERNEL_UNREACHABLE("unary op without a float meaning");
  }
}

int64_t negate(int64_t v) { return static_cast<int64_t>(0 - static_cast<uint64_t>(v)); }

void unary_integers(UnaryOp op, DType dtype, int64_t n, const int64_t* x, int64_t* r) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) r[i] = f(x[i]);
  };
  bool logical = dtype == DType::kBool, is_signed = is_signed_integer(dtype);
  switch (op) {
    case UnaryOp::k_neg:
      return each([=](int64_t v) { return logical ? !v : negate(v); });
    case UnaryOp::k_abs:
      return each([=](int64_t v) { return is_signed && v < 0 ? negate(v) : v; });
    case UnaryOp::k_sign:
      return each([=](int64_t v) { return is_signed && v < 0 ? -1 : v != 0; });
    case UnaryOp::k_not:
    case UnaryOp::k_bit_not:
      return each([=](int64_t v) { return logical ? !v : ~v; });
    case UnaryOp::k_floor:
    case UnaryOp::k_ceil:
    case UnaryOp::k_round:
    case UnaryOp::k_trunc:
      return each([](int64_t v) { return v; });
    default:
      QUERNEL_UNREACHABLE("unary op without an integer meaning");
  }
}

double floored_mod(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

void binary_floats(BinaryOp op, int64_t n, const double* a, const double* b, double* r) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) r[i] = f(a[i], b[i]);
  };
  switch (op) {
    case BinaryOp::k_add:
      return each([](double x, double y) { return x + y; });
    case BinaryOp::k_sub:
      return each([](double x, double y) { return x - y; });
    case BinaryOp::k_mul:
      return each([](double x, double y) { return x * y; });
    case BinaryOp::k_div:
      return each([](double x, double y) { return x / y; });
    case BinaryOp::k_idiv:
      return each([](double x, double y) { return std::trunc(x / y); });
    case BinaryOp::k_fdiv:
      return each([](double x, double y) { return std::floor(x / y); });
    case BinaryOp::k_mod:
      return each(floored_mod);
    case BinaryOp::k_fmod:
      return each([](double x, double y) { return std::fmod(x, y); });
    case BinaryOp::k_pow:
      return each([](double x, double y) { return std::pow(x, y); });
    case BinaryOp::k_max:
      return each(maximum);
    case BinaryOp::k_min:
      return each(minimum);
    default:
      QUERNEL_UNREACHABLE("binary op without a float meaning");
  }
}

// base^exponent modulo 2^64, which wraps rightly for every narrower dtype.
uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent /= 2, base *= base)
    if (exponent % 2) result *= base;
  return result;
}

// Division and remainder of T (int64_t or uint64_t): x/0 and x%0 are 0, and the smallest value by -1 wraps.
template <class T>
T truncated_quotient(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return negate(x);
  return x / y;
}
template <class T>
T truncated_remainder(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return 0;
  return x % y;
}
template <class T>
bool rounds_up(T x, T y) {  // the truncated quotient lies above the exact one
  if constexpr (std::is_signed_v<T>) return truncated_remainder(x, y) != 0 && (x < 0) != (y < 0);
  return false;
}
template <class T>
T integer_power(T x, T y) {
  if constexpr (std::is_signed_v<T>)
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;  // 1 / x^-y, toward zero
  return static_cast<T>(power(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
}

// Threefry-2x32 of 20 rounds, as its paper defines it, one round after the other: word 0 in the low halves.
uint64_t threefry(uint64_t key, uint64_t counter) {
  const uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const uint32_t schedule[6] = {k0, k1, 0x1bd11bda ^ k0 ^ k1, k0, k1, 0x1bd11bda ^ k0 ^ k1};
  const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t x0 = static_cast<uint32_t>(counter) + k0, x1 = static_cast<uint32_t>(counter >> 32) + k1;
  for (uint32_t group = 0; group < 5; ++group) {
    for (int r : rotations[group % 2]) {
      x0 += x1;
      x1 = (x1 << r | x1 >> (32 - r)) ^ x0;
    }
    x0 += schedule[(group + 1) % 3];
    x1 += schedule[(group + 1) % 3 + 1] + group + 1;
  }
  return static_cast<uint64_t>(x1) << 32 | x0;
}

// T is int64_t for signed dtypes and uint64_t for unsigned ones and bool.
template <class T>
void binary_integers(BinaryOp op, int width, int64_t n, const int64_t* a, const int64_t* b, int64_t* r) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i)
      r[i] = static_cast<int64_t>(f(static_cast<T>(a[i]), static_cast<T>(b[i])));
  };
  auto wrapping = [&](auto f) {
    for (int64_t i = 0; i < n; ++i)
      r[i] = static_cast<int64_t>(f(static_cast<uint64_t>(a[i]), static_cast<uint64_t>(b[i])));
  };
  uint64_t limit = static_cast<uint64_t>(width);
  switch (op) {
    case BinaryOp::k_add:
      return wrapping([](uint64_t x, uint64_t y) { return x + y; });
    case BinaryOp::k_sub:
      return wrapping([](uint64_t x, uint64_t y) { return x - y; });
    case BinaryOp::k_mul:
      return wrapping([](uint64_t x, uint64_t y) { return x * y; });
    case BinaryOp::k_and:
      return wrapping([](uint64_t x, uint64_t y) { return x & y; });
    case BinaryOp::k_or:
      return wrapping([](uint64_t x, uint64_t y) { return x | y; });
    case BinaryOp::k_xor:
      return wrapping([](uint64_t x, uint64_t y) { return x ^ y; });
    case BinaryOp::k_shl:
      return wrapping([=](uint64_t x, uint64_t y) { return y >= limit ? 0 : x << y; });
    case BinaryOp::k_shr:  // a negative amount counts as one beyond the width
      return each(
          [=](T x, T y) { return static_cast<uint64_t>(y) >= limit ? (x < 0 ? T(-1) : T(0)) : x >> y; });
    case BinaryOp::k_div:
    case BinaryOp::k_idiv:
      return each([](T x, T y) { return truncated_quotient(x, y); });
    case BinaryOp::k_fdiv:
      return each([](T x, T y) { return truncated_quotient(x, y) - (rounds_up(x, y) ? 1 : 0); });
    case BinaryOp::k_mod:
      return each([](T x, T y) { return truncated_remainder(x, y) + (rounds_up(x, y) ? y : 0); });
    case BinaryOp::k_fmod:
      return each([](T x, T y) { return truncated_remainder(x, y); });
    case BinaryOp::k_pow:
      return each([](T x, T y) { return integer_power(x, y); });
    case BinaryOp::k_threefry2x32:
      return wrapping(threefry);
    case BinaryOp::k_max:
      return each([](T x, T y) { return x > y ? x : y; });
    case BinaryOp::k_min:
      return each([](T x, T y) { return x < y ? x : y; });
    default:
      QUERNEL_UNREACHABLE("binary op without an integer meaning");
  }
}

template <class T, class Loaded>
void compare(BinaryOp op, int64_t n, const Loaded* a, const Loaded* b, int64_t* r) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) r[i] = f(static_cast<T>(a[i]), static_cast<T>(b[i]));
  };
  switch (op) {
    case BinaryOp::k_eq:
      return each([](T x, T y) { return x == y; });
    case BinaryOp::k_ne:
      return each([](T x, T y) { return x != y; });
    case BinaryOp::k_lt:
      return each([](T x, T y) { return x < y; });
    case BinaryOp::k_le:
      return each([](T x, T y) { return x <= y; });
    case BinaryOp::k_gt:
      return each([](T x, T y) { return x > y; });
    case BinaryOp::k_ge:
      return each([](T x, T y) { return x >= y; });
    default:
      QUERNEL_UNREACHABLE("not a comparison");
  }
}

// A chunk of up to three operands and of the result, in both representations; only one is in use at a time.
struct Chunk {
  std::array<std::vector<double>, 3> f;
  std::array<std::vector<int64_t>, 3> i;
  std::vector<double> result_f;
  std::vector<int64_t> result_i;

  explicit Chunk(bool floats) {
    for (auto& v : f) v.resize(floats ? kChunk : 0);
    for (auto& v : i) v.resize(floats ? 0 : kChunk);
    result_f.resize(kChunk);
    result_i.resize(kChunk);
  }
};

void compute_unary(UnaryOp op, DType dtype, int64_t n, Chunk& c) {
  bool floats = is_float(dtype);
  if (is_predicate(op)) {
    for (int64_t i = 0; i < n; ++i)
      c.result_i[i] = floats && (op == UnaryOp::k_is_nan ? std::isnan(c.f[0][i]) : std::isinf(c.f[0][i]));
  } else if (floats) {
    unary_floats(op, n, c.f[0].data(), c.result_f.data());
  } else {
    unary_integers(op, dtype, n, c.i[0].data(), c.result_i.data());
  }
}

void compute_binary(BinaryOp op, DType dtype, int64_t n, Chunk& c) {
  if (is_float(dtype)) {
    if (is_comparison(op))
      compare<double>(op, n, c.f[0].data(), c.f[1].data(), c.result_i.data());
    else
      binary_floats(op, n, c.f[0].data(), c.f[1].data(), c.result_f.data());
    return;
  }
  const int64_t *a = c.i[0].data(), *b = c.i[1].data();
  int64_t* r = c.result_i.data();
  bool is_signed = is_signed_integer(dtype);
  if (is_comparison(op))
    return is_signed ? compare<int64_t>(op, n, a, b, r) : compare<uint64_t>(op, n, a, b, r);
  is_signed ? binary_integers<int64_t>(op, bit_width(dtype), n, a, b, r)
            : binary_integers<uint64_t>(op, bit_width(dtype), n, a, b, r);
}

void compute_ternary(OpKind op, DType dtype, int64_t n, Chunk& c) {
  if (op == OpKind::k_mulacc) {
    for (int64_t i = 0; i < n; ++i) {
      if (dtype == DType::kF32)  // one rounding; through f64 there would be two
        c.result_f[i] = std::fma(static_cast<float>(c.f[0][i]), static_cast<float>(c.f[1][i]),
                                 static_cast<float>(c.f[2][i]));
      else if (is_float(dtype))
        c.result_f[i] = std::fma(c.f[0][i], c.f[1][i], c.f[2][i]);
      else
        c.result_i[i] =
            static_cast<int64_t>(static_cast<uint64_t>(c.i[0][i]) * static_cast<uint64_t>(c.i[1][i]) +
                                 static_cast<uint64_t>(c.i[2][i]));
    }
    return;
  }
  // clamp(x, lo, hi) = min(max(x, lo), hi)
  Chunk inner = c;
  compute_binary(BinaryOp::k_max, dtype, n, inner);
  inner.f[0] = inner.result_f, inner.i[0] = inner.result_i;
  inner.f[1] = c.f[2], inner.i[1] = c.i[2];
  compute_binary(BinaryOp::k_min, dtype, n, inner);
  c.result_f = inner.result_f, c.result_i = inner.result_i;
}

Tensor select(const Operands& operands, const ResultType& type) {
  int64_t n = type.count(), size = element_size(type.dtype);
  std::vector<uint8_t> bytes(n * size);
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& source = operands[0]->bytes.data()[i] != 0 ? *operands[1] : *operands[2];
    std::memcpy(bytes.data() + i * size, source.bytes.data() + i * size, size);
  }
  return {type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

Tensor cast(const Tensor& x, const ResultType& type) {
  if (x.dtype == type.dtype) return x;
  int64_t n = type.count();
  std::vector<uint8_t> bytes(byte_size(type.dtype, n));
  std::vector<double> f(kChunk);
  std::vector<int64_t> i(kChunk);
  for (int64_t first = 0; first < n; first += kChunk) {
    int64_t count = std::min(kChunk, n - first);
    if (is_float(x.dtype)) {
      load(x, first, count, f.data());
      if (!is_float(type.dtype))
        for (int64_t k = 0; k < count; ++k)
          i[k] = type.dtype == DType::kBool ? f[k] != 0 : saturate_to(type.dtype, f[k]);
    } else {
      load(x, first, count, i.data());
      if (is_float(type.dtype)) {
        for (int64_t k = 0; k < count; ++k) {
          bool wide = x.dtype == DType::kU64;
          auto u = static_cast<uint64_t>(i[k]);
          // To f32 in one rounding, not through f64.
          if (type.dtype == DType::kF32)
            f[k] = wide ? static_cast<float>(u) : static_cast<float>(i[k]);
          else
            f[k] = wide ? static_cast<double>(u) : static_cast<double>(i[k]);
        }
      }
    }
    if (is_float(type.dtype))
      store(type.dtype, bytes.data(), first, count, f.data());
    else
      store(type.dtype, bytes.data(), first, count, i.data());
  }
  return {type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

}  // namespace

Expected<Tensor> run_elementwise(const Node& node, const Operands& operands, const ResultType& type) {
  if (node.op == OpKind::k_where) return select(operands, type);
  if (node.op == OpKind::k_cast) return cast(*operands[0], type);
  DType dtype =
      operands[0]->dtype;  // comparisons and predicates have bool results, and compute in the operands' dtype
  bool floats = is_float(dtype);
  Chunk chunk(floats);
  int64_t n = type.count();
  std::vector<uint8_t> bytes(byte_size(type.dtype, n));
  for (int64_t first = 0; first < n; first += kChunk) {
    int64_t count = std::min(kChunk, n - first);
    for (size_t k = 0; k < operands.size(); ++k)
      floats ? load(*operands[k], first, count, chunk.f[k].data())
             : load(*operands[k], first, count, chunk.i[k].data());
    if (auto unary = unary_op(node.op))
      compute_unary(*unary, dtype, count, chunk);
    else if (auto binary = binary_op(node.op))
      compute_binary(*binary, dtype, count, chunk);
    else
      compute_ternary(node.op, dtype, count, chunk);
    if (is_float(type.dtype))
      store(type.dtype, bytes.data(), first, count, chunk.result_f.data());
    else
      store(type.dtype, bytes.data(), first, count, chunk.result_i.data());
  }
  return Tensor{type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

Expected<Tensor> run_bitcast(const Node&, const Operands& operands, const ResultType& type) {
  return Tensor{type.dtype, type.dims, operands[0]->bytes};
}

}  // namespace quernel::interpreter
