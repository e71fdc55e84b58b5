#include "codegen/c/instruction_definitions.h"

#include <string_view>
#include <utility>

namespace quernel::codegen {
namespace {

// What "$" and a name stand for in the forms that a definition has.
using Words = std::vector<std::pair<std::string_view, std::string_view>>;
using Forms = std::vector<Words>;

const Forms kSigns = {{{"$s", "i"}, {"$int", "int"}, {"$z", "s"}},
                      {{"$s", "u"}, {"$int", "uint"}, {"$z", "u"}}};
const Forms kPairsOfSigns = {{{"$a", "i"}, {"$b", "i"}, {"$A", "int32_t"}, {"$B", "int32_t"}},
                             {{"$a", "i"}, {"$b", "u"}, {"$A", "int32_t"}, {"$B", "uint32_t"}},
                             {{"$a", "u"}, {"$b", "i"}, {"$A", "uint32_t"}, {"$B", "int32_t"}},
                             {{"$a", "u"}, {"$b", "u"}, {"$A", "uint32_t"}, {"$B", "uint32_t"}}};
const Forms kArithmetic = {
    {{"$name", "add"}, {"$op", "+"}}, {{"$name", "sub"}, {"$op", "-"}}, {{"$name", "mul"}, {"$op", "*"}}};
const Forms kExtremes = {{{"$name", "max"}, {"$op", ">"}}, {{"$name", "min"}, {"$op", "<"}}};

std::string with_words(std::string text, const Words& words) {
  for (const auto& [name, value] : words)
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  return text;
}

struct Definition {
  const char* name;
  const char* text;
  Forms forms = {{}};
};

const Definition kDefinitions[] = {
    // Instructions of Arm: products of halves of words, saturation.
    {"QNL_HALVES", R"(#if defined(__ARM_FEATURE_SIMD32)
#include <arm_acle.h>
#define QNL_HALVES 1
#endif
)"},
    {"QNL_SATURATION", R"(#if defined(__ARM_FEATURE_SAT)
#include <arm_acle.h>
#define QNL_SATURATION 1
#endif
)"},
    {"qnl_word",
     R"(#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef struct { uint32_t word; } __attribute__((packed, may_alias)) qnl_unaligned_word;
static inline uint32_t qnl_word(const void* bytes) { return ((const qnl_unaligned_word*)bytes)->word; }
#else
static inline uint32_t qnl_word(const void* bytes) {
  const uint8_t* b = (const uint8_t*)bytes;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
#endif
)"},
    // Without products of 64 bits, from products of halves (Warren, Hacker's Delight, second edition, 8-2).
    {"qnl_mulh", R"(static inline int32_t qnl_mulh(int32_t a, int32_t b) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
  const uint32_t a0 = (uint32_t)a & 65535u, b0 = (uint32_t)b & 65535u;
  const int32_t a1 = a >> 16, b1 = b >> 16;
  const int32_t middle = (int32_t)((uint32_t)a1 * b0 + (a0 * b0 >> 16));
  const int32_t other = (int32_t)(a0 * (uint32_t)b1 + ((uint32_t)middle & 65535u));
  return a1 * b1 + (middle >> 16) + (other >> 16);
#else
  return (int32_t)((int64_t)a * b >> 32);
#endif
}
)"},
    {"qnl_ssat", R"(#if defined(QNL_SATURATION)
#define qnl_ssat(x, bits) __ssat(x, bits)
#else
static inline int32_t qnl_ssat(int32_t x, int bits) {
  const int32_t end = (int32_t)1 << (bits - 1), most = x < end - 1 ? x : end - 1;
  return most > -end ? most : -end;
}
#endif
)"},
    {"qnl_usat", R"(#if defined(QNL_SATURATION)
#define qnl_usat(x, bits) (int32_t)__usat(x, bits)
#else
static inline int32_t qnl_usat(int32_t x, int bits) {
  const int32_t end = (int32_t)1 << bits, most = x < end - 1 ? x : end - 1;
  return most > 0 ? most : 0;
}
#endif
)"},
    {"qnl_even_$s", R"(#if defined(QNL_HALVES)
static inline int16x2_t qnl_even_$s(uint32_t x) { return (int16x2_t)__$zxtb16(($int8x4_t)x); }
#endif
)",
     kSigns},
    {"qnl_odd_$s", R"(#if defined(QNL_HALVES)
static inline int16x2_t qnl_odd_$s(uint32_t x) {
#if defined(__GNUC__) && !defined(__clang__) /* which makes two instructions of it */
  int16x2_t halves;
  __asm__("$zxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(x));
  return halves;
#else
  return (int16x2_t)__$zxtb16(($int8x4_t)(x >> 8 | x << 24));
#endif
}
#endif
)",
     kSigns},
    {"qnl_byte_i", R"(#define qnl_byte_i(x, i) ((uint32_t)((int32_t)((uint32_t)(x) << (24 - 8 * (i))) >> 24))
)"},
    {"qnl_byte_u", R"(#define qnl_byte_u(x, i) ((x) >> (8 * (i)) & 255u)
)"},
    {"qnl_dot_$a$b", R"(static inline int32_t qnl_dot_$a$b($A a, $B b, int32_t sum) {
#if defined(QNL_HALVES)
  sum = __smlad(qnl_even_$a((uint32_t)a), qnl_even_$b((uint32_t)b), sum);
  return __smlad(qnl_odd_$a((uint32_t)a), qnl_odd_$b((uint32_t)b), sum);
#else
  return (int32_t)((uint32_t)sum + qnl_byte_$a(a, 0) * qnl_byte_$b(b, 0) + qnl_byte_$a(a, 1) * qnl_byte_$b(b, 1) +
                   qnl_byte_$a(a, 2) * qnl_byte_$b(b, 2) + qnl_byte_$a(a, 3) * qnl_byte_$b(b, 3));
#endif
}
)",
     kPairsOfSigns},
    // Vectors of MVE. Four bytes are held in the words of a qnl_i32x4.
    {"QNL_VECTORS", R"(#if defined(__ARM_FEATURE_MVE) && !defined(__ARM_BIG_ENDIAN)
#include <arm_mve.h>
#define QNL_VECTORS 1
typedef int32x4_t qnl_i32x4;
typedef int8x16_t qnl_i8x16;
typedef uint8x16_t qnl_u8x16;
#else
typedef struct { int32_t lane[4]; } qnl_i32x4;
typedef struct { int8_t lane[16]; } qnl_i8x16;
typedef struct { uint8_t lane[16]; } qnl_u8x16;
#endif
)"},
    {"qnl_$name_i32x4", R"(static inline qnl_i32x4 qnl_$name_i32x4(qnl_i32x4 a, qnl_i32x4 b) {
#if defined(QNL_VECTORS)
  return (qnl_i32x4)((uint32x4_t)a $op (uint32x4_t)b);
#else
  for (int i = 0; i < 4; ++i) a.lane[i] = (int32_t)((uint32_t)a.lane[i] $op (uint32_t)b.lane[i]);
  return a;
#endif
}
)",
     kArithmetic},
    {"qnl_$name_i32x4", R"(static inline qnl_i32x4 qnl_$name_i32x4(qnl_i32x4 a, qnl_i32x4 b) {
#if defined(QNL_VECTORS)
  return v$nameq_s32(a, b);
#else
  for (int i = 0; i < 4; ++i) a.lane[i] = a.lane[i] $op b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
#endif
}
)",
     kExtremes},
    {"qnl_mulh_i32x4", R"(static inline qnl_i32x4 qnl_mulh_i32x4(qnl_i32x4 a, qnl_i32x4 b) {
#if defined(QNL_VECTORS)
  return vmulhq_s32(a, b);
#else
  for (int i = 0; i < 4; ++i) a.lane[i] = (int32_t)((int64_t)a.lane[i] * b.lane[i] >> 32);
  return a;
#endif
}
)"},
    {"qnl_shl_i32x4", R"(static inline qnl_i32x4 qnl_shl_i32x4(qnl_i32x4 a, qnl_i32x4 counts) {
#if defined(QNL_VECTORS)
  return vshlq_s32(a, counts);
#else
  for (int i = 0; i < 4; ++i) a.lane[i] = (int32_t)((uint32_t)a.lane[i] << counts.lane[i]);
  return a;
#endif
}
)"},
    {"qnl_shr_i32x4", R"(static inline qnl_i32x4 qnl_shr_i32x4(qnl_i32x4 a, qnl_i32x4 counts) {
#if defined(QNL_VECTORS)
  return vshlq_s32(a, vnegq_s32(counts));
#else
  for (int i = 0; i < 4; ++i) a.lane[i] >>= counts.lane[i];
  return a;
#endif
}
)"},
    {"qnl_shl_n_i32x4", R"(#if defined(QNL_VECTORS)
#define qnl_shl_n_i32x4(a, count) vshlq_n_s32(a, count)
#else
static inline qnl_i32x4 qnl_shl_n_i32x4(qnl_i32x4 a, int count) {
  for (int i = 0; i < 4; ++i) a.lane[i] = (int32_t)((uint32_t)a.lane[i] << count);
  return a;
}
#endif
)"},
    {"qnl_shr_n_i32x4", R"(#if defined(QNL_VECTORS)
#define qnl_shr_n_i32x4(a, count) vshrq_n_s32(a, count)
#else
static inline qnl_i32x4 qnl_shr_n_i32x4(qnl_i32x4 a, int count) {
  for (int i = 0; i < 4; ++i) a.lane[i] >>= count;
  return a;
}
#endif
)"},
    {"qnl_wrap_i8x4", R"(static inline qnl_i32x4 qnl_wrap_i8x4(qnl_i32x4 a) {
#if defined(QNL_VECTORS)
  return vshrq_n_s32(vshlq_n_s32(a, 24), 24);
#else
  for (int i = 0; i < 4; ++i) a.lane[i] = (int8_t)a.lane[i];
  return a;
#endif
}
)"},
    {"qnl_wrap_u8x4", R"(static inline qnl_i32x4 qnl_wrap_u8x4(qnl_i32x4 a) {
#if defined(QNL_VECTORS)
  return vandq_s32(a, vdupq_n_s32(255));
#else
  for (int i = 0; i < 4; ++i) a.lane[i] &= 255;
  return a;
#endif
}
)"},
    {"qnl_store_saturated_i8x4", R"(static inline void qnl_store_saturated_i8x4(int8_t* to, qnl_i32x4 a) {
#if defined(QNL_VECTORS)
#if defined(__GNUC__) && !defined(__clang__) /* which copies a before it changes it */
  __asm__("vqmovnb.s32 %q0, %q0\n\tvqmovnb.s16 %q0, %q0" : "+w"(a));
  vstrbq_s32(to, a);
#else
  const int16x8_t halves = vqmovnbq_s32(vreinterpretq_s16_s32(a), a);
  vstrbq_s32(to, vreinterpretq_s32_s8(vqmovnbq_s16(vreinterpretq_s8_s16(halves), halves)));
#endif
#else
  for (int i = 0; i < 4; ++i) to[i] = (int8_t)(a.lane[i] < -128 ? -128 : a.lane[i] > 127 ? 127 : a.lane[i]);
#endif
}
)"},
    {"qnl_splat_i32x4", R"(static inline qnl_i32x4 qnl_splat_i32x4(int32_t x) {
#if defined(QNL_VECTORS)
  return vdupq_n_s32(x);
#else
  const qnl_i32x4 all = {{x, x, x, x}};
  return all;
#endif
}
)"},
    {"qnl_make_i32x4", R"(static inline qnl_i32x4 qnl_make_i32x4(int32_t a, int32_t b, int32_t c, int32_t d) {
#if defined(QNL_VECTORS) && defined(__GNUC__) && !defined(__clang__) /* which makes four instructions of it */
  qnl_i32x4 all;
  __asm__("vmov %q0[2], %q0[0], %1, %3\n\tvmov %q0[3], %q0[1], %2, %4"
          : "=&w"(all) : "r"(a), "r"(b), "r"(c), "r"(d));
  return all;
#elif defined(QNL_VECTORS)
  return vsetq_lane_s32(d, vsetq_lane_s32(c, vsetq_lane_s32(b, vdupq_n_s32(a), 1), 2), 3);
#else
  const qnl_i32x4 all = {{a, b, c, d}};
  return all;
#endif
}
)"},
    {"qnl_lane_i32x4", R"(static inline int32_t qnl_lane_i32x4(qnl_i32x4 a, int lane) {
#if defined(QNL_VECTORS)
  int32_t lanes[4];
  vstrwq_s32(lanes, a);
  return lanes[lane];
#else
  return a.lane[lane];
#endif
}
)"},
    {"qnl_load_i32x4", R"(static inline qnl_i32x4 qnl_load_i32x4(const int32_t* from) {
#if defined(QNL_VECTORS)
  typedef int32x4_t unaligned __attribute__((aligned(4), may_alias));
  return *(const unaligned*)(const void*)from;
#else
  qnl_i32x4 a;
  for (int i = 0; i < 4; ++i) a.lane[i] = from[i];
  return a;
#endif
}
)"},
    {"qnl_store_i32x4", R"(static inline void qnl_store_i32x4(int32_t* to, qnl_i32x4 a) {
#if defined(QNL_VECTORS)
  vstrwq_s32(to, a);
#else
  for (int i = 0; i < 4; ++i) to[i] = a.lane[i];
#endif
}
)"},
    {"qnl_load_i8x4", R"(static inline qnl_i32x4 qnl_load_i8x4(const int8_t* from) {
#if defined(QNL_VECTORS)
  return vldrbq_s32(from);
#else
  qnl_i32x4 a;
  for (int i = 0; i < 4; ++i) a.lane[i] = from[i];
  return a;
#endif
}
)"},
    {"qnl_store_i8x4", R"(static inline void qnl_store_i8x4(int8_t* to, qnl_i32x4 a) {
#if defined(QNL_VECTORS)
  vstrbq_s32(to, a);
#else
  for (int i = 0; i < 4; ++i) to[i] = (int8_t)a.lane[i];
#endif
}
)"},
    {"qnl_load_$s8x16", R"(static inline qnl_$s8x16 qnl_load_$s8x16(const $int8_t* from) {
#if defined(QNL_VECTORS)
  typedef $int8x16_t unaligned __attribute__((aligned(1), may_alias));
  return *(const unaligned*)(const void*)from;
#else
  qnl_$s8x16 a;
  for (int i = 0; i < 16; ++i) a.lane[i] = from[i];
  return a;
#endif
}
)",
     kSigns},
    {"qnl_store_$s8x16", R"(static inline void qnl_store_$s8x16($int8_t* to, qnl_$s8x16 a) {
#if defined(QNL_VECTORS)
  vstrbq_$z8(to, a);
#else
  for (int i = 0; i < 16; ++i) to[i] = a.lane[i];
#endif
}
)",
     kSigns},
    {"qnl_splat_$s8x16", R"(static inline qnl_$s8x16 qnl_splat_$s8x16($int8_t x) {
#if defined(QNL_VECTORS)
  return vdupq_n_$z8(x);
#else
  qnl_$s8x16 a;
  for (int i = 0; i < 16; ++i) a.lane[i] = x;
  return a;
#endif
}
)",
     kSigns},
    {"qnl_lane_$s8x16", R"(static inline $int8_t qnl_lane_$s8x16(qnl_$s8x16 a, int lane) {
#if defined(QNL_VECTORS)
  $int8_t lanes[16];
  vstrbq_$z8(lanes, a);
  return lanes[lane];
#else
  return a.lane[lane];
#endif
}
)",
     kSigns},
    {"qnl_sum_i8x16", R"(static inline int32_t qnl_sum_i8x16(int32_t sum, qnl_i8x16 a, qnl_i8x16 b) {
#if defined(QNL_VECTORS) && defined(__GNUC__) && !defined(__clang__)
  return __builtin_constant_p(sum) && sum == 0 ? vmladavq_s8(a, b) : vmladavaq_s8(sum, a, b);
#elif defined(QNL_VECTORS)
  return vmladavaq_s8(sum, a, b);
#else
  for (int i = 0; i < 16; ++i) sum = (int32_t)((uint32_t)sum + (uint32_t)(a.lane[i] * b.lane[i]));
  return sum;
#endif
}
)"},
    {"qnl_load_u8x4", R"(static inline qnl_i32x4 qnl_load_u8x4(const uint8_t* from) {
#if defined(QNL_VECTORS)
  return vreinterpretq_s32_u32(vldrbq_u32(from));
#else
  qnl_i32x4 a;
  for (int i = 0; i < 4; ++i) a.lane[i] = from[i];
  return a;
#endif
}
)"},
    {"qnl_store_u8x4", R"(static inline void qnl_store_u8x4(uint8_t* to, qnl_i32x4 a) {
#if defined(QNL_VECTORS)
  vstrbq_u32(to, vreinterpretq_u32_s32(a));
#else
  for (int i = 0; i < 4; ++i) to[i] = (uint8_t)a.lane[i];
#endif
}
)"},
    {"qnl_sum_u8x16", R"(static inline int32_t qnl_sum_u8x16(int32_t sum, qnl_u8x16 a, qnl_u8x16 b) {
#if defined(QNL_VECTORS)
  return (int32_t)vmladavaq_u8((uint32_t)sum, a, b);
#else
  for (int i = 0; i < 16; ++i) sum = (int32_t)((uint32_t)sum + (uint32_t)(a.lane[i] * b.lane[i]));
  return sum;
#endif
}
)"},
};

}  // namespace

std::vector<CDefinition> instruction_definitions() {
  std::vector<CDefinition> all;
  for (const Definition& d : kDefinitions)
    for (const Words& words : d.forms) all.push_back({with_words(d.name, words), with_words(d.text, words)});
  return all;
}

}  // namespace quernel::codegen
