// The execution order of an ONNX graph's nodes. Files need not be sorted; they must be acyclic.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <vector>

#include "support/expected.h"

namespace quernel::onnx_import {

// What diagnostics call a node: its name, or else its first output's.
std::string node_name(const onnx::NodeProto& node);
// Its operator: "Conv", "com.microsoft.FusedConv".
std::string operator_name(const onnx::NodeProto& node);
// "ai.onnx" is another spelling of the default domain.
std::string_view normal_domain(std::string_view domain);

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Nodes in topological order, else in the order given. `is_defined`: whether a name exists before the graph's
// nodes run (graph inputs, initializers, outer scopes). Requires one producer of each name, without the
// results for which `is_dropped` holds. Reports every missing tensor, or one cycle.
Expected<std::vector<const onnx::NodeProto*>> sort_nodes(
    const std::vector<const onnx::NodeProto*>& nodes, const std::string& file_name,
    const std::function<bool(const std::string&)>& is_defined,
    const std::function<bool(const onnx::NodeProto&, int)>& is_dropped);

}  // namespace quernel::onnx_import
