// Data types of tensor elements: the closed list of CORE_OPS, their sizes, names and host conversions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quernel {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool,
  kI4,
  kU4,
  kF8E4M3,
  kF8E5M2,  // storage only
};
inline constexpr int kDTypeCount = 17;

int bit_width(DType dtype);  // bool is stored in 8 bits
// i4 and u4: two elements per byte, the first in the low half.
inline bool is_packed(DType dtype) { return bit_width(dtype) < 8; }
// Bytes of one element; for i4/u4, which are packed two per byte, use byte_size(dtype, count).
inline int element_size(DType dtype) { return (bit_width(dtype) + 7) / 8; }
// Bytes that `count` elements take, packed types rounded up to whole bytes.
int64_t byte_size(DType dtype, int64_t count);

std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

bool is_float(DType dtype);    // f32 f16 bf16 f64 f8*
bool is_integer(DType dtype);  // signed or unsigned, not bool
bool is_signed_integer(DType dtype);
bool is_unsigned_integer(DType dtype);
inline bool is_compute(DType dtype) { return dtype < DType::kI4; }  // not of storage alone
inline bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

// Conversions between f32 and the narrow formats, round to nearest even.
uint16_t f32_to_f16_bits(float value);
float f16_bits_to_f32(uint16_t bits);
uint16_t f32_to_bf16_bits(float value);
float bf16_bits_to_f32(uint16_t bits);
// From f64 in one rounding, as a direct conversion would do.
uint16_t f64_to_f16_bits(double value);
uint16_t f64_to_bf16_bits(double value);

}  // namespace quernel
