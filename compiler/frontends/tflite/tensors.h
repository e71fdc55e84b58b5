// Tensors of a TensorFlow Lite file: types, quantization and the data of constants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontends/tflite/read_model.h"
#include "graph/ir.h"

namespace quernel::tflite_import {

// real = scale * (value - zero point). Empty scales: the elements are what they are.
struct Quantization {
  std::vector<float> scales;         // one, or one for each index of dim `axis`
  std::vector<int64_t> zero_points;  // as many; empty: zeros
  int axis = 0;
  // Scales in blocks of `block` elements of the last dim: the tensor, by number, that holds them. 0: no blocks.
  int block = 0;
  int32_t block_scales = -1;

  bool is_given() const { return !scales.empty() || block > 0; }
  bool is_per_tensor() const { return scales.size() == 1 && block == 0; }
  // Of one scale.
  float scale() const { return scales.empty() ? 1.0f : scales[0]; }
  int64_t zero() const { return zero_points.empty() ? 0 : zero_points[0]; }
  bool operator==(const Quantization&) const = default;
};

// Returns the dtype of an element type; unsupported for strings, complex numbers, resources and variants.
Expected<DType> dtype_of(tflite::TensorType type, const Location& place);

// Whether elements are complex, which operators may give each other: such a value has one more dim, of both parts.
inline bool is_complex(const tflite::Tensor& tensor) {
  return tensor.type() == tflite::TensorType::COMPLEX64;
}

// Returns what a tensor says of its quantization. Refuses forms that are not known.
Expected<Quantization> quantization_of(const tflite::Tensor& tensor, const Location& place);

// Returns whether the file has data for the tensor, or it needs none.
bool has_data(const ModelFile& file, const tflite::Tensor& tensor);
// Returns the value of a constant; sparse ones are made dense. Requires has_data.
Expected<Tensor> read_tensor(const ModelFile& file, const tflite::Tensor& tensor, const Location& place);
// Returns the elements of a sparse tensor in dense, row-major order. `stored`: those that the file has.
Expected<Tensor> make_dense(const tflite::SparsityParameters& sparsity, const Tensor& stored,
                            const std::vector<int64_t>& dims, const Location& place);

}  // namespace quernel::tflite_import
