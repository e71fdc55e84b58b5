// Winograd's algorithm on a GPU: its memory next to the invocations holds no tiles of every point, so that
// the two transforms are kernels of their own and the products between them one contraction for all points.
#pragma once

#include <optional>

#include "graph/rewrite.h"
#include "targets/target.h"

namespace quernel::schedule {

// The sides of tiles, 2 and 4, in which the convolution can be expanded.
std::vector<int> expandable_tiles(const Graph& graph, const Node& node);
// The one of them that is estimated to be fastest; 0: the convolution as it stands.
int best_expanded_tile(const Graph& graph, const Node& node, const Target& target);

// In the new graph, what gives the result of `node`, a convolution of the old graph:
//   contract(image, w) -> winograd_output(contract(winograd_input(view(image)), transformed w))
// kNoValue where the convolution is of groups, writes its dims in another order than batch, rows, columns,
// channels, or transforms to more than a storage buffer holds.
ValueId expand_winograd(Rewriter& r, const Node& node, int tile);

}  // namespace quernel::schedule
