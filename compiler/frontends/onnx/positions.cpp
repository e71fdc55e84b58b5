#include "frontends/onnx/positions.h"

#include <numeric>

namespace quernel::onnx_import {

ValueId positions(NodeImport& n, DType dtype, int64_t count, int trailing) {
  constexpr int64_t kMaxPositions = int64_t{1} << 24;
  if (count < 0 || count > kMaxPositions)
    return n.build.fail(n.refuse("expected a dim of at most 2^24, found " + std::to_string(count)));
  std::vector<int64_t> values(static_cast<size_t>(count)), dims(static_cast<size_t>(trailing) + 1, 1);
  std::iota(values.begin(), values.end(), 0);
  dims[0] = count;
  Tensor wide = i64_tensor(dims, values);
  if (dtype == DType::kI64) return n.build.constant(std::move(wide));
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, count)));
  for (int64_t i = 0; i < count; ++i) {
    if (is_float(dtype))
      store_f64(dtype, data.data(), i, static_cast<double>(i));
    else
      store_i64(dtype, data.data(), i, i);
  }
  return n.build.constant({dtype, dims, Bytes::own(std::move(data))});
}

}  // namespace quernel::onnx_import
