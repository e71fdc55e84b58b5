// What a register tile of a contraction costs, in cycles of one core.
#pragma once

#include <vector>

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

struct TileEstimate {
  Tiling tiling;
  double cycles;  // of a grid point
};
// All legal tiles: the chosen one first, then by estimated cycles. `panel_v`: as in `tilings`.
std::vector<TileEstimate> tile_estimates(ContractionPlan plan, const Target& target, int panel_v);
// The register tiles that the kernel may have, in that order. `panel_v`: only those that fit panels of so many
// vectors; 0: all.
std::vector<Tiling> tilings(const ContractionPlan& plan, const Target& target, int panel_v = 0);

// Seconds that the tiles take on a GPU, by estimate. `workgroups`: how many share them; 0: one for each tile.
double contraction_seconds(const ContractionPlan& plan, const Target& target, double workgroups = 0);

// Multiply-adds of vectors that transposing a tile takes for each of its elements.
constexpr double kTranspose = 0.4;

// Whether the target has an instruction for int8 dot products.
bool has_dots(const Target& target);

}  // namespace quernel::schedule
