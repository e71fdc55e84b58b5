// What a register tile of a contraction costs, in cycles of one core.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace quernel::schedule {

struct TileEstimate {
  Tiling tiling;
  double cycles;  // of a grid point
};
// All legal tiles, the chosen one first, then by estimated cycles. `panel_v`: as `tilings` has it.
std::vector<TileEstimate> tile_estimates(ContractionPlan plan, const Target& target, int panel_v);

// Whether tiles of `v` vectors walk panels of `panel_v`, for that many vectors in all, without leaving them.
bool fits_panels(int v, int panel_v, double vectors);

// Multiply-adds of vectors that turning a tile round takes, for each of its elements.
constexpr double kTurned = 0.4;

// Whether the target has an instruction for sums of four products of bytes.
bool has_dots(const Target& target);

// Dims as the estimates take them.
inline bool is_zero(const Dim& d) { return d == Dim(0); }
inline bool is_one(const Dim& d) { return d == Dim(1); }
inline double size_of(const Dim& d) { return static_cast<double>(d.estimate()); }
Dim product(const std::vector<ContractionPlan::Axis>& axes, const std::vector<int>& which);

}  // namespace quernel::schedule
