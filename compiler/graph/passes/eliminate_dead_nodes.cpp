#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {

// rewrite() rebuilds only what outputs need.
Expected<Graph> eliminate_dead_nodes(const Graph& graph) {
  return rewrite(graph, [](Rewriter&, const Node&) { return kNoValue; });
}

}  // namespace quernel
