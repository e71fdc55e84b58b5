// Element access of the interpreter: conversions between stored elements and the f64 or i64 it computes in.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

template <class Stored, class Out>
void load_as(const Tensor& tensor, int64_t first, int64_t count, Out* out) {
  const uint8_t* data = tensor.bytes.data() + first * static_cast<int64_t>(sizeof(Stored));
  for (int64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, data + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<Out>(value);
  }
}

template <class Stored, class In>
void store_as(uint8_t* data, int64_t first, int64_t count, const In* values) {
  data += first * static_cast<int64_t>(sizeof(Stored));
  for (int64_t i = 0; i < count; ++i) {
    Stored value = static_cast<Stored>(values[i]);
    std::memcpy(data + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

// Every value of f16, by its bits.
const std::vector<float>& f16_values() {
  static const std::vector<float> values = [] {
    std::vector<float> result(1 << 16);
    for (size_t bits = 0; bits < result.size(); ++bits)
      result[bits] = f16_bits_to_f32(static_cast<uint16_t>(bits));
    return result;
  }();
  return values;
}

}  // namespace

int64_t ResultType::count() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

void load(const Tensor& tensor, int64_t first, int64_t count, double* out) {
  switch (tensor.dtype) {
    case DType::kF32:
      return load_as<float>(tensor, first, count, out);
    case DType::kF64:
      return load_as<double>(tensor, first, count, out);
    case DType::kI8:
      return load_as<int8_t>(tensor, first, count, out);
    case DType::kU8:
      return load_as<uint8_t>(tensor, first, count, out);
    case DType::kI32:
      return load_as<int32_t>(tensor, first, count, out);
    case DType::kI64:
      return load_as<int64_t>(tensor, first, count, out);
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i) out[i] = f16_values()[tensor.at<uint16_t>(first + i)];
      return;
    default:
      for (int64_t i = 0; i < count; ++i) out[i] = element_as_f64(tensor, first + i);
  }
}

void load(const Tensor& tensor, int64_t first, int64_t count, int64_t* out) {
  switch (tensor.dtype) {
    case DType::kI8:
      return load_as<int8_t>(tensor, first, count, out);
    case DType::kU8:
      return load_as<uint8_t>(tensor, first, count, out);
    case DType::kI32:
      return load_as<int32_t>(tensor, first, count, out);
    case DType::kI64:
      return load_as<int64_t>(tensor, first, count, out);
    default:
      for (int64_t i = 0; i < count; ++i) out[i] = element_as_i64(tensor, first + i);
  }
}

void store(DType dtype, uint8_t* data, int64_t first, int64_t count, const double* values) {
  switch (dtype) {
    case DType::kF32:
      return store_as<float>(data, first, count, values);
    case DType::kF64:
      return store_as<double>(data, first, count, values);
    default:
      for (int64_t i = 0; i < count; ++i) store_f64(dtype, data, first + i, values[i]);
  }
}

void store(DType dtype, uint8_t* data, int64_t first, int64_t count, const int64_t* values) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
      return store_as<uint8_t>(data, first, count, values);
    case DType::kI32:
    case DType::kU32:
      return store_as<uint32_t>(data, first, count, values);
    case DType::kI64:
    case DType::kU64:
      return store_as<uint64_t>(data, first, count, values);
    default:
      for (int64_t i = 0; i < count; ++i) store_i64(dtype, data, first + i, values[i]);
  }
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return value;
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF16:
      return f16_bits_to_f32(f64_to_f16_bits(value));
    case DType::kBF16:
      return bf16_bits_to_f32(f64_to_bf16_bits(value));
    default:
      QUERNEL_UNREACHABLE("round_to expects a compute float dtype");
  }
}

int64_t wrap_to(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  int shift = 64 - bit_width(dtype);
  uint64_t top = static_cast<uint64_t>(value) << shift;
  return is_signed_integer(dtype) ? static_cast<int64_t>(top) >> shift : static_cast<int64_t>(top >> shift);
}

int64_t saturate_to(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  int bits = bit_width(dtype);
  if (is_unsigned_integer(dtype)) {
    if (value <= 0) return 0;
    if (value >= std::ldexp(1.0, bits)) return static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  double limit = std::ldexp(1.0, bits - 1);
  if (value >= limit) return static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  if (value <= -limit) return INT64_MIN >> (64 - bits);
  return static_cast<int64_t>(value);
}

double maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? x : y;
  return x > y || (x == y && std::signbit(y)) ? x : y;
}

double minimum(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? x : y;
  return x < y || (x == y && std::signbit(x)) ? x : y;
}

std::vector<uint8_t> unpack(const Tensor& tensor) {
  std::vector<uint8_t> elements(tensor.count());
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = (tensor.bytes.data()[i / 2] >> (i % 2 * 4)) & 15;
  return elements;
}

std::vector<uint8_t> pack(const std::vector<uint8_t>& elements) {
  std::vector<uint8_t> bytes((elements.size() + 1) / 2);
  for (size_t i = 0; i < elements.size(); ++i)
    bytes[i / 2] |= static_cast<uint8_t>((elements[i] & 15) << (i % 2 * 4));
  return bytes;
}

StaticForm static_form(const AffineForm& form) {
  return {static_dims(form.coefficients), form.offset.value()};
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

}  // namespace quernel::interpreter
