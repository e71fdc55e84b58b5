// Nodes that the user has described (graph/custom_op.h) become custom ops.
#pragma once

#include "frontends/onnx/node_import.h"
#include "graph/custom_op.h"

namespace quernel::onnx_import {

// "domain::Operator", without a domain the operator alone.
std::string custom_op_name(std::string_view domain, std::string_view op_type);

// The node's attributes as a custom op carries them, in the text form of graph/custom_op.h. Unsupported:
// tensors, graphs and types.
Expected<std::string> custom_attributes(NodeImport& n);

Status import_custom_op(NodeImport& n, const CustomOpDescription& op);

}  // namespace quernel::onnx_import
