// Lookups of bytes in tables of 256 elements, which the graph pass form-byte-tables makes.
#pragma once

#include "graph/ir.h"

namespace quernel::schedule {

// Whether the node takes elements of a constant table of 256 by 8-bit indices.
inline bool is_byte_lookup(const Graph& graph, const Node& node) {
  return node.op == OpKind::k_take && graph.constant(node.inputs[0]) &&
         graph.shape(node.inputs[0]) == Shape{256} && graph.dtype(node.inputs[1]) == DType::kU8;
}

}  // namespace quernel::schedule
