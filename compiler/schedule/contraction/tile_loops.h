// The loops over the tiles of a contraction's kernel, and which of them share its work out to threads.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

// A tile's place: its position along each of the grid axes, then its number among those of the columns, then
// among those of the rows.
struct TileLoop {
  size_t place;  // which of them it counts
  Dim extent;
};

// Outermost first. Tiles are in the plan's order, but threads, each of which gets workgroups that follow one
// another, shall have the same rows of all kernels of a network, so that what a thread reads is what it has
// written, and in its cache: where columns, or axes that the weights depend on, would be outermost, blocks of
// rows come before them. Such a place has two loops, of blocks and within a block; together they may count
// beyond tile_extents, where there are no tiles.
std::vector<TileLoop> tile_loops(const ContractionPlan& plan, const Target& target);

// How many tiles there are along each of the places.
Shape tile_extents(const ContractionPlan& plan);

}  // namespace quernel::schedule
