// Rewriting by rebuilding: a pass walks the old graph in order and builds a new one. Dead nodes fall away by
// themselves.
#pragma once

#include <functional>

#include "graph/build.h"
#include "graph/ir.h"

namespace quernel {

// What a rule sees: the old graph, and the map from old values to new ones for everything before the present
// node.
struct Rewriter {
  const Graph& old;
  Graph graph;                  // the new graph
  GraphBuilder build;           // appends to it
  std::vector<ValueId> mapped;  // old value -> new value

  explicit Rewriter(const Graph& g) : old(g), build(graph) {}
  ValueId operator()(ValueId old_value) const { return mapped[old_value]; }
  // Copies an old node with its mapped inputs.
  ValueId copy(const Node& node);
};

// For each live old node, `rule` returns the new value that replaces its output, or kNoValue to copy the node
// as it is. Inputs, symbols, output names and value names are kept.
Expected<Graph> rewrite(const Graph& graph, const std::function<ValueId(Rewriter&, const Node&)>& rule);

}  // namespace quernel
