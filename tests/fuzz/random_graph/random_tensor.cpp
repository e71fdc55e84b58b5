#include <string>

#include "random_graph/random_graph.h"

namespace quernel {

Tensor random_tensor(DType dtype, const std::vector<int64_t>& dims, Random& random) {
  Tensor tensor{dtype, dims, {}};
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, tensor.count())));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2) {
      bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(random.below(0x40));  // finite, at most 2
    } else if (is_float(dtype)) {
      store_f64(dtype, bytes.data(), i, static_cast<double>(random.between(-16, 16)) / 8);
    } else if (dtype == DType::kBool) {
      store_i64(dtype, bytes.data(), i, random.below(2));
    } else if (random.chance(3)) {
      store_i64(dtype, bytes.data(), i,
                static_cast<int64_t>(random.chance(50) ? ~uint64_t{0} >> 1
                                                       : uint64_t{1} << (bit_width(dtype) - 1)));
    } else {
      store_i64(dtype, bytes.data(), i, random.between(is_signed_integer(dtype) ? -8 : 0, 8));
    }
  }
  tensor.bytes = Bytes::own(std::move(bytes));
  return tensor;
}

std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  Random random(seed ^ 0x5eed);
  for (ValueId v : graph.inputs)
    inputs.push_back(random_tensor(graph.dtype(v), static_dims(graph.shape(v)), random));
  return inputs;
}

}  // namespace quernel
