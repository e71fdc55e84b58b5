// Constants that number the elements of an axis.
#pragma once

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// 0, 1, … count-1 along the first dim of [count, 1 × trailing].
ValueId positions(NodeImport& n, DType dtype, int64_t count, int trailing = 0);

}  // namespace quernel::onnx_import
