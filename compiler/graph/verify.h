// The graph verifier: checks every invariant of the graph IR. Runs after every pass in debug builds and
// tests.
#pragma once

#include "graph/ir.h"

namespace quernel {

// Topological order, types as the op table infers them, unique value names, outputs defined, contraction maps
// in bounds and covering, symbols declared. `after`: the pass to blame.
Status verify(const Graph& graph, const std::string& after = {});

}  // namespace quernel
