// Custom operators that the user has described (graph/custom_op.h) become custom ops.
#pragma once

#include "frontends/shared/custom_node.h"
#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

// Attributes are the entries of the options, where these are a FlexBuffers map; other bytes are a list of integers, the
// attribute `custom_options`. Quantized operands and results are their integers.
Status import_custom_op(NodeImport& n, const CustomOpDescription& op);

}  // namespace quernel::tflite_import
