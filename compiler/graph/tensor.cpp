#include "graph/tensor.h"

#include <bit>
#include <cmath>

namespace quernel {
namespace {

template <class T>
T get(const Tensor& t, int64_t i) {
  return t.at<T>(i);
}
template <class T>
void put(uint8_t* data, int64_t i, T value) {
  std::memcpy(data + i * sizeof(T), &value, sizeof(T));
}
int nibble(const Tensor& t, int64_t i) { return (t.bytes.data()[i / 2] >> (i % 2 * 4)) & 15; }

// The 8-bit float formats of the OCP/ONNX definition: e4m3fn has no infinity, e5m2 is IEEE-like.
double decode_f8(uint8_t bits, int man_bits, int bias, bool ieee) {
  int exp_bits = 7 - man_bits;
  int exponent = (bits >> man_bits) & ((1 << exp_bits) - 1), mantissa = bits & ((1 << man_bits) - 1);
  double sign = bits & 0x80 ? -1 : 1;
  int top = (1 << exp_bits) - 1;
  if (exponent == top && ieee) return mantissa ? NAN : sign * INFINITY;
  if (exponent == top && mantissa == (1 << man_bits) - 1) return NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - man_bits);
  return sign * std::ldexp(mantissa + (1 << man_bits), exponent - bias - man_bits);
}

// The OCP 8-bit formats, saturating as ONNX's Cast does by default: out of range values, infinities included,
// become the largest finite one.
uint8_t encode_float8(DType dtype, double value) {
  int mantissa_bits = dtype == DType::kF8E4M3 ? 3 : 2;
  int bias = dtype == DType::kF8E4M3 ? 7 : 15;
  uint8_t largest = dtype == DType::kF8E4M3 ? 0x7e : 0x7b;
  double limit = dtype == DType::kF8E4M3 ? 448.0 : 57344.0;
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | (dtype == DType::kF8E4M3 ? 0x7f : 0x7e);
  double magnitude = std::fabs(value);
  if (magnitude >= limit) return sign | largest;
  int exponent = magnitude == 0 ? -1000 : std::ilogb(magnitude);
  if (exponent < 1 - bias) exponent = 1 - bias;  // subnormals share the smallest normal's quantum
  double quanta = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  return sign | static_cast<uint8_t>(((exponent + bias - 1) << mantissa_bits) + static_cast<int>(quanta));
}

}  // namespace

double element_as_f64(const Tensor& t, int64_t i) {
  switch (t.dtype) {
    case DType::kF32:
      return get<float>(t, i);
    case DType::kF64:
      return get<double>(t, i);
    case DType::kF16:
      return f16_bits_to_f32(get<uint16_t>(t, i));
    case DType::kBF16:
      return bf16_bits_to_f32(get<uint16_t>(t, i));
    case DType::kU64:
      return static_cast<double>(get<uint64_t>(t, i));
    case DType::kF8E4M3:
      return decode_f8(get<uint8_t>(t, i), 3, 7, false);
    case DType::kF8E5M2:
      return decode_f8(get<uint8_t>(t, i), 2, 15, true);
    default:
      return static_cast<double>(element_as_i64(t, i));
  }
}

int64_t element_as_i64(const Tensor& t, int64_t i) {
  switch (t.dtype) {
    case DType::kI8:
      return get<int8_t>(t, i);
    case DType::kU8:
      return get<uint8_t>(t, i);
    case DType::kBool:
      return get<uint8_t>(t, i) != 0;
    case DType::kI16:
      return get<int16_t>(t, i);
    case DType::kU16:
      return get<uint16_t>(t, i);
    case DType::kI32:
      return get<int32_t>(t, i);
    case DType::kU32:
      return get<uint32_t>(t, i);
    case DType::kI64:
      return get<int64_t>(t, i);
    case DType::kU64:
      return static_cast<int64_t>(get<uint64_t>(t, i));
    case DType::kU4:
      return nibble(t, i);
    case DType::kI4:
      return nibble(t, i) >= 8 ? nibble(t, i) - 16 : nibble(t, i);
    default: {
      double v = element_as_f64(t, i);
      if (std::isnan(v)) return 0;
      if (v >= 9223372036854775807.0) return INT64_MAX;
      if (v <= -9223372036854775808.0) return INT64_MIN;
      return static_cast<int64_t>(v);
    }
  }
}

void store_f64(DType dtype, uint8_t* data, int64_t i, double value) {
  switch (dtype) {
    case DType::kF32:
      return put<float>(data, i, static_cast<float>(value));
    case DType::kF64:
      return put<double>(data, i, value);
    case DType::kF16:
      return put<uint16_t>(data, i, f64_to_f16_bits(value));
    case DType::kBF16:
      return put<uint16_t>(data, i, f64_to_bf16_bits(value));
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return put<uint8_t>(data, i, encode_float8(dtype, value));
    default:
      QUERNEL_UNREACHABLE("store_f64 expects a float dtype");
  }
}

void store_i64(DType dtype, uint8_t* data, int64_t i, int64_t value) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
      return put<uint8_t>(data, i, static_cast<uint8_t>(value));
    case DType::kBool:
      return put<uint8_t>(data, i, value != 0);
    case DType::kI16:
    case DType::kU16:
      return put<uint16_t>(data, i, static_cast<uint16_t>(value));
    case DType::kI32:
    case DType::kU32:
      return put<uint32_t>(data, i, static_cast<uint32_t>(value));
    case DType::kI64:
    case DType::kU64:
      return put<uint64_t>(data, i, static_cast<uint64_t>(value));
    case DType::kI4:
    case DType::kU4: {
      int shift = i % 2 * 4;
      data[i / 2] = static_cast<uint8_t>((data[i / 2] & ~(15 << shift)) | ((value & 15) << shift));
      return;
    }
    default:
      QUERNEL_UNREACHABLE("store_i64 expects an integer dtype");
  }
}

Tensor scalar_tensor(DType dtype, double value) {
  std::vector<uint8_t> bytes(byte_size(dtype, 1));
  if (is_float(dtype))
    store_f64(dtype, bytes.data(), 0, value);
  else
    store_i64(dtype, bytes.data(), 0, static_cast<int64_t>(value));
  return {dtype, {}, Bytes::own(std::move(bytes))};
}

}  // namespace quernel
