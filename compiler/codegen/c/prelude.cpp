#include "codegen/c/prelude.h"

#include "codegen/c/instruction_definitions.h"

namespace quernel::codegen {
namespace {

// Each only uses those above it.
const CDefinition kDefinitions[] = {
    {"qnl_bits_f32", R"(static inline uint32_t qnl_bits_f32(float x) {
  union { float f; uint32_t u; } bits;
  bits.f = x;
  return bits.u;
}
)"},
    {"qnl_f32_of", R"(static inline float qnl_f32_of(uint32_t x) {
  union { uint32_t u; float f; } bits;
  bits.u = x;
  return bits.f;
}
)"},
    {"qnl_bits_f64", R"(static inline uint64_t qnl_bits_f64(double x) {
  union { double f; uint64_t u; } bits;
  bits.f = x;
  return bits.u;
}
)"},
    {"qnl_f64_of", R"(static inline double qnl_f64_of(uint64_t x) {
  union { uint64_t u; double f; } bits;
  bits.u = x;
  return bits.f;
}
)"},
    {"qnl_abs_f32", R"(static inline float qnl_abs_f32(float x) {
  return qnl_f32_of(qnl_bits_f32(x) & 0x7fffffffu);
}
)"},
    {"qnl_abs_f64", R"(static inline double qnl_abs_f64(double x) {
  return qnl_f64_of(qnl_bits_f64(x) & UINT64_C(0x7fffffffffffffff));
}
)"},
    {"qnl_copy_sign_f32", R"(static inline float qnl_copy_sign_f32(float x, float sign) {
  return qnl_f32_of((qnl_bits_f32(x) & 0x7fffffffu) | (qnl_bits_f32(sign) & 0x80000000u));
}
)"},
    {"qnl_copy_sign_f64", R"(static inline double qnl_copy_sign_f64(double x, double sign) {
  return qnl_f64_of((qnl_bits_f64(x) & UINT64_C(0x7fffffffffffffff)) |
                    (qnl_bits_f64(sign) & UINT64_C(0x8000000000000000)));
}
)"},
    {"qnl_funnel_shift_u32",
     R"(static inline uint32_t qnl_funnel_shift_u32(uint32_t high, uint32_t low, uint32_t count) {
  return (count & 31u) == 0 ? high : (high << (count & 31u)) | (low >> (32u - (count & 31u)));
}
)"},
    {"qnl_funnel_shift_u64",
     R"(static inline uint64_t qnl_funnel_shift_u64(uint64_t high, uint64_t low, uint64_t count) {
  return (count & 63u) == 0 ? high : (high << (count & 63u)) | (low >> (64u - (count & 63u)));
}
)"},
    {"qnl_leading_zeros_u64", R"(static inline uint64_t qnl_leading_zeros_u64(uint64_t x) {
  uint64_t count = 0;
  if (x == 0) return 64;
  while (!(x & UINT64_C(0x8000000000000000))) {
    x <<= 1;
    ++count;
  }
  return count;
}
)"},
    // Digit by digit, of twice the root, so that the last digit decides how to round: there are no ties.
    {"qnl_sqrt_f32", R"(#if defined(QNL_SQRT_F32)
#define qnl_sqrt_f32(x) QNL_SQRT_F32(x)
#elif defined(__GNUC__) && defined(__NO_MATH_ERRNO__) && \
    (defined(__SSE2__) || defined(__aarch64__) || (defined(__ARM_FP) && (__ARM_FP & 4)) || defined(__riscv_fdiv))
#define qnl_sqrt_f32(x) __builtin_sqrtf(x)
#else
static inline float qnl_sqrt_f32(float x) {
  uint32_t i = qnl_bits_f32(x), m, e, odd, rest, root = 0, twice = 0, digit;
  if ((i & 0x7fffffffu) == 0 || i == 0x7f800000u) return x;
  if (i > 0x7f800000u) return qnl_f32_of(0x7fc00000u);
  e = i >> 23;
  m = i & 0x7fffffu;
  if (e == 0) {
    e = 1;
    while (!(m & 0x800000u)) {
      m <<= 1;
      --e;
    }
  } else {
    m |= 0x800000u;
  }
  e += 127u;
  odd = e & 1u;
  rest = m << (1u + odd);
  for (digit = 0x1000000u; digit != 0; digit >>= 1) {
    uint32_t sum = twice + digit;
    if (sum <= rest) {
      twice = sum + digit;
      rest -= sum;
      root += digit;
    }
    rest <<= 1;
  }
  return qnl_f32_of(((e >> 1) << 23) - 0x800000u + ((root + 1u) >> 1));
}
#endif
)"},
    {"qnl_sqrt_f64", R"(#if defined(QNL_SQRT_F64)
#define qnl_sqrt_f64(x) QNL_SQRT_F64(x)
#elif defined(__GNUC__) && defined(__NO_MATH_ERRNO__) && \
    (defined(__SSE2__) || defined(__aarch64__) || (defined(__ARM_FP) && (__ARM_FP & 8)) || \
     (defined(__riscv_flen) && __riscv_flen >= 64))
#define qnl_sqrt_f64(x) __builtin_sqrt(x)
#else
static inline double qnl_sqrt_f64(double x) {
  uint64_t i = qnl_bits_f64(x), m, e, odd, rest, root = 0, twice = 0, digit;
  if ((i & UINT64_C(0x7fffffffffffffff)) == 0 || i == UINT64_C(0x7ff0000000000000)) return x;
  if (i > UINT64_C(0x7ff0000000000000)) return qnl_f64_of(UINT64_C(0x7ff8000000000000));
  e = i >> 52;
  m = i & UINT64_C(0xfffffffffffff);
  if (e == 0) {
    e = 1;
    while (!(m & UINT64_C(0x10000000000000))) {
      m <<= 1;
      --e;
    }
  } else {
    m |= UINT64_C(0x10000000000000);
  }
  e += 1023u;
  odd = e & 1u;
  rest = m << (1u + odd);
  for (digit = UINT64_C(0x20000000000000); digit != 0; digit >>= 1) {
    uint64_t sum = twice + digit;
    if (sum <= rest) {
      twice = sum + digit;
      rest -= sum;
      root += digit;
    }
    rest <<= 1;
  }
  return qnl_f64_of(((e >> 1) << 52) - UINT64_C(0x10000000000000) + ((root + 1u) >> 1));
}
#endif
)"},
    // GCC and clang tell of the instruction by different macros. clang takes __builtin_fmaf for a function
    // that sets errno, and calls it.
    {"qnl_fma_f32", R"(#if defined(QNL_FMA_F32)
#define qnl_fma_f32(a, b, c) QNL_FMA_F32(a, b, c)
#elif defined(__GNUC__) && \
    (defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__riscv_flen))
static inline float qnl_fma_f32(float a, float b, float c) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#else
  return __builtin_fmaf(a, b, c); /* a call of the C library unless clang is told -fno-math-errno */
#endif
#else
  return __builtin_fmaf(a, b, c);
#endif
}
#else
#error "this code is for a target with fused multiply-add: tell the compiler of it, define QNL_FMA_F32(a, b, c) as one of one rounding, or compile the model for a target without"
#endif
)"},
    {"qnl_fma_f64", R"(#if defined(QNL_FMA_F64)
#define qnl_fma_f64(a, b, c) QNL_FMA_F64(a, b, c)
#elif defined(__GNUC__) && \
    (defined(__FP_FAST_FMA) || defined(__FMA__) || (defined(__ARM_FEATURE_FMA) && (__ARM_FP & 8)) || \
     (defined(__riscv_flen) && __riscv_flen >= 64))
static inline double qnl_fma_f64(double a, double b, double c) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#else
  return __builtin_fma(a, b, c); /* a call of the C library unless clang is told -fno-math-errno */
#endif
#else
  return __builtin_fma(a, b, c);
#endif
}
#else
#error "this code is for a target with fused multiply-add: tell the compiler of it, define QNL_FMA_F64(a, b, c) as one of one rounding, or compile the model for a target without"
#endif
)"},
};

}  // namespace

std::string_view c_requirements() {
  return R"(#if defined(__FAST_MATH__)
#error "fast-math changes results; compile without it"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "expected float arithmetic in float; on 32-bit x86 compile with -msse2 -mfpmath=sse"
#endif
#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
typedef char qnl_needs_ieee_floats[sizeof(float) == 4 && sizeof(double) == 8 ? 1 : -1];
typedef char qnl_needs_arithmetic_shifts[(-1 >> 1) == -1 && (int8_t)(uint8_t)255 == -1 ? 1 : -1];
)";
}

std::string c_prelude_for(const std::string& text) {
  std::vector<CDefinition> all = instruction_definitions();
  all.insert(all.end(), std::begin(kDefinitions), std::end(kDefinitions));
  std::vector<bool> wanted(all.size());
  std::string users = text;
  for (size_t i = all.size(); i-- > 0;) {
    const std::string name = all[i].name;
    wanted[i] =
        users.find(name + "(") != std::string::npos || users.find("(" + name + ")") != std::string::npos;
    if (wanted[i]) users += all[i].text;
  }
  std::string result;
  for (size_t i = 0; i < all.size(); ++i)
    if (wanted[i]) result += all[i].text;
  return result;
}

}  // namespace quernel::codegen
