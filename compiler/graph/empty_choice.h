// Nodes that choose among elements, and so have no result where there are too few to choose from: the index
// of the largest element, an element at an index, the first k.
#pragma once

#include <optional>

#include "graph/ir.h"

namespace quernel {

// How many elements each element of the result is chosen among, at least 1 where there is a result; nullopt
// for nodes that need none. Reductions need none: of nothing they give the identity.
std::optional<Dim> choices(OpKind op, const TensorType& x, const Attributes& attributes,
                           const Shape& indices);
// Whether a node of the graph may have elements in its result and too few to choose them from: a dim that is
// negative then, and else 0. A constant 0 where that cannot be.
Dim empty_choice(const Graph& graph, const Node& node);

}  // namespace quernel
