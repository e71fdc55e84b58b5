// Winograd's algorithm on a GPU. Shared memory cannot hold tiles of every point. Therefore the two transforms
// are separate kernels, and the products between them are one contraction for all points.
#pragma once

#include <optional>

#include "graph/rewrite.h"
#include "targets/target.h"

namespace quernel::schedule {

// Returns the sides of tiles, 2 and 4, in which the convolution can be expanded.
std::vector<int> expandable_tiles(const Graph& graph, const Node& node);
// Returns the side with the lowest estimated time; 0: the direct convolution is faster.
int best_expanded_tile(const Graph& graph, const Node& node, const Target& target);

// Returns the value in the new graph that replaces the result of `node`, a convolution of the old graph:
//   contract(image, w) -> winograd_output(contract(winograd_input(view(image)), transformed w))
// Returns kNoValue if the convolution has groups, writes its dims in another order than batch, rows, columns,
// channels, or its transforms exceed a storage buffer.
ValueId expand_winograd(Rewriter& r, const Node& node, int tile);

}  // namespace quernel::schedule
