// The nodes that define a value, as the patterns of attention look at them.
#pragma once

#include "graph/ir.h"

namespace quernel::schedule {

// Returns the node that defines `v` if it is one of that op, else null.
inline const Node* node_of(const Graph& graph, ValueId v, OpKind op) {
  const Node* node = graph.def(v);
  return node && node->op == op ? node : nullptr;
}

// Returns the value that `v` is an expand of, through any number of them.
inline ValueId without_expands(const Graph& graph, ValueId v) {
  while (const Node* expand = node_of(graph, v, OpKind::k_expand)) v = expand->inputs[0];
  return v;
}

}  // namespace quernel::schedule
