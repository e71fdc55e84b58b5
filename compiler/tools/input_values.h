// Values of inputs that are known before the model is compiled, read from tensor files.
#pragma once

#include <string>

#include "graph/tensor.h"
#include "support/expected.h"
#include "tensor_file.h"

namespace quernel::tools {

// The same tensor for the compiler; copies the bytes.
Tensor to_tensor(const tensor_file::HostTensor& host);

// By the end of the path: .npy, or .pb (ONNX TensorProto).
Expected<Tensor> read_input_value(const std::string& path);

}  // namespace quernel::tools
