// Custom ops as whoever computes them sees them.
#pragma once

#include <functional>
#include <string>

#include "graph/ir.h"
#include "support/expected.h"

namespace quernel::schedule {

// Whether the node is a result of a custom op.
bool is_custom_result(const Graph& graph, const Node& node);
// The dims of all operands, then of all results, in order.
Shape custom_dims(const Graph& graph, const Node& node);
// The dtypes and ranks of operands and results: "f32[?,?],i64[?]->f32[?,?]".
std::string custom_signature(const Graph& graph, const Node& node);
// Returns the graph with one more operand, the last, for each custom op that has a kernel: its attributes as
// text with a terminating zero, u8[length].
Expected<Graph> give_kernels_attributes(Graph graph,
                                        const std::function<bool(const std::string& name)>& has_kernel);

}  // namespace quernel::schedule
