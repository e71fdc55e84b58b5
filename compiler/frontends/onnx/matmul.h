// Products of matrices, as values.
#pragma once

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// numpy.matmul of two operands of one dtype. `accumulator`: i32 for narrow integers, which is then the
// result's dtype.
Expected<ValueId> matmul(NodeImport& n, ValueId a, ValueId b, std::optional<DType> accumulator = {});
// alpha * op(A) op(B) + beta * C, as the node's attributes say.
Expected<ValueId> gemm(NodeImport& n);
// Constant weights that have been widened to f32, as they are stored: a contraction with f32 reads narrow
// floats, too.
ValueId stored_weights(NodeImport& n, ValueId weights);

}  // namespace quernel::onnx_import
