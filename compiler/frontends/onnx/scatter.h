// Writing into caches.
#pragma once

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// `cache` with the update's rows at starts[b], starts[b] + 1 … along the axis, of each b of the first dim;
// kNoValue: from 0 on. Rows beyond the end are dropped, or wrap around.
ValueId write_rows(NodeImport& n, ValueId cache, ValueId update, ValueId starts, int64_t axis, bool wraps);

}  // namespace quernel::onnx_import
