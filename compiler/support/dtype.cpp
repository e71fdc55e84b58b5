#include "support/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace quernel {
namespace {

struct DTypeFacts {
  std::string_view name;
  int bits;
  char cls;  // f float, i signed, u unsigned, b bool
};
constexpr std::array<DTypeFacts, kDTypeCount> kFacts = {{
    {"f32", 32, 'f'},
    {"f16", 16, 'f'},
    {"bf16", 16, 'f'},
    {"f64", 64, 'f'},
    {"i8", 8, 'i'},
    {"u8", 8, 'u'},
    {"i16", 16, 'i'},
    {"u16", 16, 'u'},
    {"i32", 32, 'i'},
    {"u32", 32, 'u'},
    {"i64", 64, 'i'},
    {"u64", 64, 'u'},
    {"bool", 8, 'b'},
    {"i4", 4, 'i'},
    {"u4", 4, 'u'},
    {"f8e4m3", 8, 'f'},
    {"f8e5m2", 8, 'f'},
}};
const DTypeFacts& facts(DType d) { return kFacts[static_cast<size_t>(d)]; }

// Rounds a f64 to a binary format with `exp_bits`/`man_bits` in one step (round to nearest even).
uint16_t round_to_format(double value, int exp_bits, int man_bits) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 63) << (exp_bits + man_bits));
  uint16_t inf = static_cast<uint16_t>(((1u << exp_bits) - 1) << man_bits);
  if (std::isnan(value)) return sign | inf | static_cast<uint16_t>(1u << (man_bits - 1));
  if (std::isinf(value)) return sign | inf;
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  int bias = (1 << (exp_bits - 1)) - 1;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m in [0.5, 1)
  int e = exponent - 1;
  int min_e = 1 - bias;
  int quantum = (e < min_e ? min_e : e) - man_bits;
  double scaled = std::nearbyint(std::ldexp(magnitude, -quantum));  // exact, then one rounding
  uint64_t integer = static_cast<uint64_t>(scaled);
  // integer is in [0, 2^(man_bits+1)]; adding it to the exponent field handles carries into the next binade.
  uint64_t field = e < min_e ? integer : (static_cast<uint64_t>(e - min_e) << man_bits) + integer;
  if (field >= inf) return sign | inf;
  return sign | static_cast<uint16_t>(field);
}

}  // namespace

int bit_width(DType d) { return facts(d).bits; }
int64_t byte_size(DType d, int64_t count) { return (count * bit_width(d) + 7) / 8; }
std::string_view to_string(DType d) { return facts(d).name; }
std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kFacts[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}
bool is_float(DType d) { return facts(d).cls == 'f'; }
bool is_integer(DType d) { return facts(d).cls == 'i' || facts(d).cls == 'u'; }
bool is_signed_integer(DType d) { return facts(d).cls == 'i'; }
bool is_unsigned_integer(DType d) { return facts(d).cls == 'u'; }

uint16_t f64_to_f16_bits(double value) { return round_to_format(value, 5, 10); }
uint16_t f64_to_bf16_bits(double value) { return round_to_format(value, 8, 7); }
uint16_t f32_to_f16_bits(float value) { return round_to_format(value, 5, 10); }
uint16_t f32_to_bf16_bits(float value) { return round_to_format(value, 8, 7); }

float f16_bits_to_f32(uint16_t bits) {
  uint32_t sign = (bits >> 15) & 1, exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>((sign << 31) | 0x7f800000u | (mantissa << 13));
  float magnitude = exponent == 0
                        ? std::ldexp(static_cast<float>(mantissa), -24)
                        : std::ldexp(static_cast<float>(mantissa | 1024), static_cast<int>(exponent) - 25);
  return sign ? -magnitude : magnitude;
}
float bf16_bits_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace quernel
