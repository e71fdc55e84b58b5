// How much arithmetic the contractions of a graph are.
#pragma once

#include "graph/ir.h"

namespace quernel {

// Products that contractions which outputs need add up in one run: all points of their axes, padding
// included. Bodies of loops count as often as they run, a branch as its first body.
Dim multiply_adds(const Graph& graph);
// Those of a node alone, with the bodies in it; 0 where it is no contraction.
Dim multiply_adds(const Node& node);

}  // namespace quernel
