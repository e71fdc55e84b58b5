// Convolution as a value.
#pragma once

#include "frontends/onnx/node_import.h"
#include "frontends/onnx/window.h"

namespace quernel::onnx_import {

// x [N,C,D...] with weights [M,C/group,K...], as the node's attributes say. `fill`: what padding holds.
// `accumulator`: i32 for narrow integers, which is then the result's dtype.
Expected<ValueId> convolve(NodeImport& n, ValueId x, ValueId weights, double fill = 0,
                           std::optional<DType> accumulator = {});
// The contraction of weights [M,C/groups,K...] (`weight_dims`) with the windows of x [batch,C,D...], which
// holds every element that a window of `w` reads: [batch,M,out...].
ValueId contract_windows(NodeImport& n, ValueId x, ValueId weights, const Window& w,
                         const std::vector<int64_t>& weight_dims, const Dim& batch, int64_t groups,
                         std::optional<DType> accumulator = {});
// v [M] added to each channel of y [N,M,D...].
Expected<ValueId> add_bias(NodeImport& n, ValueId y, ValueId v);

}  // namespace quernel::onnx_import
