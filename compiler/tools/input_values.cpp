#include "input_values.h"

namespace quernel::tools {

static_assert(static_cast<int>(DType::kF32) == QNL_F32 && static_cast<int>(DType::kBool) == QNL_BOOL &&
              static_cast<int>(DType::kF8E5M2) == QNL_F8E5M2);

Tensor to_tensor(const tensor_file::HostTensor& host) {
  const auto* data = reinterpret_cast<const uint8_t*>(host.bytes.data());
  return {static_cast<DType>(host.dtype), host.shape,
          Bytes::own(std::vector<uint8_t>(data, data + host.bytes.size()))};
}

Expected<Tensor> read_input_value(const std::string& path) {
  tensor_file::HostTensor host;
  tensor_file::Error error;
  if (path.ends_with(".npy"))
    error = tensor_file::read_npy(path, &host);
  else if (path.ends_with(".pb"))
    error = tensor_file::read_pb(path, &host);
  else
    error = "expected a file that ends in .npy or .pb, found '" + path + "'";
  if (error) return invalid_input(*error);
  return to_tensor(host);
}

}  // namespace quernel::tools
