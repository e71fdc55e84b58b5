#include "frontends/tflite/tensors.h"

#include <algorithm>
#include <cmath>

#include "frontends/shared/check_node.h"

namespace quernel::tflite_import {
namespace {

std::vector<int64_t> dims_of(const tflite::Tensor& tensor) {
  std::vector<int64_t> dims;
  for (int32_t d : elements(tensor.shape())) dims.push_back(d);
  return dims;
}

// Without elements there are no data.
bool is_empty(const tflite::Tensor& tensor) {
  std::vector<int32_t> dims = elements(tensor.shape());
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

}  // namespace

Expected<DType> dtype_of(tflite::TensorType type, const Location& place) {
  switch (type) {
    case tflite::TensorType::FLOAT32:
      return DType::kF32;
    case tflite::TensorType::FLOAT16:
      return DType::kF16;
    case tflite::TensorType::BFLOAT16:
      return DType::kBF16;
    case tflite::TensorType::FLOAT64:
      return DType::kF64;
    case tflite::TensorType::INT8:
      return DType::kI8;
    case tflite::TensorType::UINT8:
      return DType::kU8;
    case tflite::TensorType::INT16:
      return DType::kI16;
    case tflite::TensorType::UINT16:
      return DType::kU16;
    case tflite::TensorType::INT32:
      return DType::kI32;
    case tflite::TensorType::UINT32:
      return DType::kU32;
    case tflite::TensorType::INT64:
      return DType::kI64;
    case tflite::TensorType::UINT64:
      return DType::kU64;
    case tflite::TensorType::BOOL:
      return DType::kBool;
    case tflite::TensorType::INT4:
      return DType::kI4;
    case tflite::TensorType::UINT4:
      return DType::kU4;
    case tflite::TensorType::FLOAT8_E4M3FN:
      return DType::kF8E4M3;
    case tflite::TensorType::FLOAT8_E5M2:
      return DType::kF8E5M2;
    default:
      return unsupported("tensors of " + type_name(type) + " are not supported", place,
                         "leave them to the application, or convert the model without them");
  }
}

Expected<Quantization> quantization_of(const tflite::Tensor& tensor, const Location& place) {
  Quantization q;
  const tflite::QuantizationParameters* given = tensor.quantization();
  if (unknown_field(tensor) || (given && unknown_field(*given)))
    return unsupported("a tensor with fields that are newer than this importer is not supported", place,
                       "convert the model with an older converter");
  if (!given) return q;
  q.axis = given->quantized_dimension();
  if (given->details_type() == tflite::QuantizationDetails::BlockwiseQuantization) {
    const auto* blocks = given->details_as_BlockwiseQuantization();
    if (blocks->block_size() <= 0 || blocks->zero_points() > 0)
      return unsupported(
          "blocks of quantized elements with zero points, or of no elements, are not supported", place,
          "convert the model with symmetric weights");
    q.block = blocks->block_size();
    q.block_scales = blocks->scales();
    return q;
  }
  if (given->details_type() != tflite::QuantizationDetails::NONE)
    return unsupported("custom and multi-axis quantization are not supported", place,
                       "convert the model with scales per tensor or per channel");
  q.scales = elements(given->scale());
  q.zero_points = elements(given->zero_point());
  if (q.scales.empty()) return Quantization{};
  for (float scale : q.scales)
    if (!(scale > 0) || !std::isfinite(scale))
      return invalid_input("expected scales above 0, found " + std::to_string(scale), place);
  if (!q.zero_points.empty() && q.zero_points.size() != q.scales.size())
    return invalid_input("expected as many zero points as scales, found " +
                             std::to_string(q.zero_points.size()) + " and " + std::to_string(q.scales.size()),
                         place);
  // Of the elements' range; 32 bits for all others.
  int64_t lowest = INT32_MIN, highest = INT32_MAX;
  if (tensor.type() == tflite::TensorType::INT8) lowest = INT8_MIN, highest = INT8_MAX;
  if (tensor.type() == tflite::TensorType::UINT8) lowest = 0, highest = UINT8_MAX;
  if (tensor.type() == tflite::TensorType::INT16) lowest = INT16_MIN, highest = INT16_MAX;
  for (int64_t zero : q.zero_points)
    if (zero < lowest || zero > highest)
      return invalid_input("expected zero points from " + std::to_string(lowest) + " to " +
                               std::to_string(highest) + ", found " + std::to_string(zero),
                           place);
  if (q.scales.size() > 1) {
    std::vector<int64_t> dims = dims_of(tensor);
    // Files of old converters name the weights' dim in the biases, which have one dim only.
    if (dims.size() == 1) q.axis = 0;
    if (q.axis < 0 || q.axis >= static_cast<int>(dims.size()) ||
        dims[static_cast<size_t>(q.axis)] != static_cast<int64_t>(q.scales.size()))
      return invalid_input("expected a scale for each index of dim " + std::to_string(q.axis) + ", found " +
                               std::to_string(q.scales.size()) + " scales",
                           place);
  }
  return q;
}

bool has_data(const ModelFile& file, const tflite::Tensor& tensor) {
  if (tensor.external_buffer() != 0 || is_empty(tensor)) return true;
  if (!file.model->buffers() || tensor.buffer() == 0) return false;
  const tflite::Buffer& buffer = *file.model->buffers()->Get(tensor.buffer());
  return buffer.offset() >= kFirstOffset || (buffer.data() && buffer.data()->size() > 0);
}

Expected<Tensor> read_tensor(const ModelFile& file, const tflite::Tensor& tensor, const Location& place) {
  QUERNEL_TRY(DType dtype, dtype_of(tensor.type(), place));
  if (tensor.external_buffer() != 0)
    return unsupported("data in another file are not supported", place, "convert the model to a single file");
  std::vector<int64_t> dims = dims_of(tensor);
  if (!is_sane_shape(dims))
    return invalid_input("expected the shape of a constant, found " + to_string(make_shape(dims)), place);
  if (is_empty(tensor)) return Tensor{dtype, dims, Bytes::own({})};
  const tflite::Buffer& buffer = *file.model->buffers()->Get(tensor.buffer());
  uint64_t size = 0;
  const uint8_t* data = nullptr;
  if (buffer.offset() >= kFirstOffset) {
    size = buffer.size();
    if (buffer.offset() > file.bytes.size() || size > file.bytes.size() - buffer.offset())
      return invalid_input("data " + std::to_string(buffer.offset()) + "+" + std::to_string(size) +
                               " lie outside of the file of " + std::to_string(file.bytes.size()) + " bytes",
                           place);
    data = file.bytes.data() + buffer.offset();
  } else {
    size = buffer.data()->size();
    data = buffer.data()->data();
  }
  auto owner = std::make_shared<Bytes>(file.bytes);
  if (const tflite::SparsityParameters* sparsity = tensor.sparsity()) {
    int64_t stored = static_cast<int64_t>(size) / std::max(element_size(dtype), 1);
    if (is_packed(dtype) || stored * element_size(dtype) != static_cast<int64_t>(size))
      return unsupported("sparse tensors of " + type_name(tensor.type()) + " are not supported", place,
                         "convert the model with dense weights");
    return make_dense(*sparsity, Tensor{dtype, {stored}, Bytes(owner, data, size)}, dims, place);
  }
  Tensor result{dtype, dims, Bytes(owner, data, size)};
  int64_t expected = byte_size(dtype, result.count());
  if (static_cast<int64_t>(size) != expected)
    return invalid_input("expected " + std::to_string(expected) + " bytes for " +
                             to_string(TensorType{dtype, make_shape(dims)}) + ", found " +
                             std::to_string(size),
                         place);
  return result;
}

}  // namespace quernel::tflite_import
