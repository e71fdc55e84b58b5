// Forms of operators before opset 7, told in the later one's terms.
#pragma once

#include <optional>

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// The node with attributes as later opsets have them; nullopt where nothing differs.
Expected<std::optional<onnx::NodeProto>> modern_attributes(const onnx::NodeProto& node, int64_t opset,
                                                           const Location& place);
// Operands as numpy broadcasting expects them, for the operators that broadcast by attributes.
Status align_legacy_operands(NodeImport& n);

}  // namespace quernel::onnx_import
