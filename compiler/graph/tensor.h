// Constant tensor data: dtype, static shape and bytes in row-major order, shared and immutable once built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "graph/dim.h"
#include "support/dtype.h"

namespace quernel {

// Bytes with an owner that keeps them alive: a heap buffer, or a mapping of the model's file.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const void> owner, const uint8_t* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}
  static Bytes own(std::vector<uint8_t> bytes) {
    auto holder = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
    return Bytes(holder, holder->data(), holder->size());
  }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::shared_ptr<const void> owner_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

struct Tensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  Bytes bytes;  // byte_size(dtype, count()) bytes; packed types low nibble first

  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  // Element i of a type T as wide as the dtype; the bytes need no alignment.
  template <class T>
  T at(int64_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }
};

// Element i converted: as f64 (exact but for i64/u64 beyond 2^53) or as i64 (integers and bool exact; floats
// truncate).
double element_as_f64(const Tensor& tensor, int64_t i);
int64_t element_as_i64(const Tensor& tensor, int64_t i);
// Writes a value into element i of a raw buffer of `dtype`, rounding floats to nearest even, wrapping
// integers.
void store_f64(DType dtype, uint8_t* data, int64_t i, double value);
void store_i64(DType dtype, uint8_t* data, int64_t i, int64_t value);

template <class T>
Tensor make_tensor(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {dtype, std::move(dims), Bytes::own(std::move(bytes))};
}
inline Tensor f32_tensor(std::vector<int64_t> dims, const std::vector<float>& values) {
  return make_tensor(DType::kF32, std::move(dims), values);
}
inline Tensor i64_tensor(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return make_tensor(DType::kI64, std::move(dims), values);
}
// A scalar of `dtype` holding `value` (rounded or wrapped).
Tensor scalar_tensor(DType dtype, double value);

}  // namespace quernel
