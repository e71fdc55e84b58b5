// The cost of a contraction's register tiles, in cycles of one core.
#pragma once

#include <vector>

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

struct TileEstimate {
  Tiling tiling;
  double cycles;  // per grid point
};
// Returns all legal tiles: the chosen one first, then by estimated cycles. `panel_v`: as in `tilings`.
std::vector<TileEstimate> tile_estimates(ContractionPlan plan, const Target& target, int panel_v);
// Returns the register tiles that the kernel may have, in that order. `panel_v`: only tiles that fit panels
// of that many vectors; 0: all.
std::vector<Tiling> tilings(const ContractionPlan& plan, const Target& target, int panel_v = 0);

// Returns the estimated seconds for the tiles on a GPU. `workgroups`: how many share them; 0: one per tile.
double contraction_seconds(const ContractionPlan& plan, const Target& target, double workgroups = 0);

// The cost of transposing a tile, in vector multiply-adds per element.
constexpr double kTranspose = 0.4;

// Returns whether the target has an instruction for int8 dot products.
bool has_dots(const Target& target);

}  // namespace quernel::schedule
