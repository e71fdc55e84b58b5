// Average pools as values.
#pragma once

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// As the node's attributes say; x is wide.
Expected<ValueId> average_pool(NodeImport& n, ValueId x);
// The axes of everything after batch and channels.
Expected<std::vector<int64_t>> spatial_axes(NodeImport& n);

}  // namespace quernel::onnx_import
