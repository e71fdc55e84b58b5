// The loops over the tiles of a contraction's kernel, and which of them distribute its work to threads.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

// Returns the loops, outermost first. Tiles are in the plan's order, with one exception. A thread gets
// consecutive workgroups. It should get the same rows in all kernels of a network, so that it reads from its
// cache what it has written. Therefore, if columns, or axes that the weights depend on, would be outermost,
// blocks of rows come before them. Such a place has two loops: over blocks and within a block. Together they
// may count beyond tile_extents, where there are no tiles.
std::vector<TileLoop> tile_loops(const ContractionPlan& plan, const Target& target);

// Returns the number of tiles along each component of the place.
Shape tile_extents(const ContractionPlan& plan);

}  // namespace quernel::schedule
