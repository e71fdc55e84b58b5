// Activations that several operators end in, and softmax: as values, not nodes. All take x wide
// (NodeImport::widen), and give results that are.
#pragma once

#include <vector>

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

ValueId sigmoid(NodeImport& n, ValueId x);
// x * sigmoid(alpha * x)
ValueId swish(NodeImport& n, ValueId x, double alpha = 1);
ValueId gelu_erf(NodeImport& n, ValueId x);
ValueId gelu_tanh(NodeImport& n, ValueId x);
ValueId leaky_relu(NodeImport& n, ValueId x, double alpha);
ValueId elu(NodeImport& n, ValueId x, double alpha);
ValueId thresholded_relu(NodeImport& n, ValueId x, double alpha);
ValueId hard_sigmoid(NodeImport& n, ValueId x, double alpha, double beta);
ValueId softsign(NodeImport& n, ValueId x);
ValueId softplus(NodeImport& n, ValueId x);
ValueId softmax(NodeImport& n, ValueId x, const std::vector<int64_t>& axes);
ValueId log_softmax(NodeImport& n, ValueId x, const std::vector<int64_t>& axes);

}  // namespace quernel::onnx_import
