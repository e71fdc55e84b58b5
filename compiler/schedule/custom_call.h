// Custom ops as the functions that compute them see them.
#pragma once

#include <functional>
#include <string>

#include "graph/ir.h"
#include "support/expected.h"

namespace quernel::schedule {

// Returns whether the node is a result of a custom op.
bool is_custom_result(const Graph& graph, const Node& node);
// Returns the dims of all operands, then of all results, in order.
Shape custom_dims(const Graph& graph, const Node& node);
// Returns the dtypes and ranks of operands and results: "f32[?,?],i64[?]->f32[?,?]".
std::string custom_signature(const Graph& graph, const Node& node);
// Returns the graph with a last operand added to each custom op that has a kernel: its attributes as text
// with a terminating zero, u8[length].
Expected<Graph> give_kernels_attributes(Graph graph,
                                        const std::function<bool(const std::string& name)>& has_kernel);

}  // namespace quernel::schedule
