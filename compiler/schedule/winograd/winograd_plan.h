// Winograd's minimal filtering for 3x3 windows (support/winograd_matrices.h names the source): its view of a
// convolution, and its tiling as data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ir.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/contraction/tiling.h"
#include "targets/target.h"

namespace quernel::schedule {

// A 3x3 convolution of stride 1 in the roles of the algorithm. Members are indices into the contraction's
// axes; axes of extent 1 are ignored.
struct WinogradForm {
  int batch = -1;                                   // -1: one image
  int group = -1;                                   // of a grouped convolution; -1: one group
  int y = -1, x = -1;                               // output positions, along which the window slides
  int window_y = -1, window_x = -1, channels = -1;  // reduced
  int columns = -1;                                 // output channels (of a group)
  // The range of y + window_y and x + window_x in which the operand has elements; it is zero elsewhere.
  int64_t y_begin = 0, y_end = 0, x_begin = 0, x_end = 0;
};
// Returns nullopt if the algorithm does not apply. `any_order`: also accepts channels that are not
// contiguous, which no kernel reads.
std::optional<WinogradForm> winograd_form(const Graph& graph, const Node& contract, bool any_order = false);

// The output in tiles of side `tile`. Each tile needs (tile + 2)^2 products of transformed inputs and
// transformed weights, summed over the channels. This gives (tile + 2)^2 matrix products, each for `block`
// tiles at a time.
struct WinogradPlan {
  WinogradForm form;
  int tile = 0;  // 0: the direct convolution is used
  int64_t tiles_y = 0, tiles_x = 0, groups = 1, channels = 0, columns = 0;
  // Operand a: elements per step; channels are contiguous.
  Dim offset = 0, batch_stride = 0, group_stride = 0, y_stride = 0, x_stride = 0;
  int lanes = 1, tile_m = 1, tile_v = 1;  // of the register tile: tiles times vectors of output channels
  int64_t block = 1;                      // tiles that a workgroup transforms at once, a multiple of tile_m
  int64_t panels_per_group = 1;           // panels of output channels that a workgroup computes
  double cycles = 0;                      // estimated, of one core for one group of one image
  int64_t points() const { return int64_t{tile + 2} * (tile + 2); }
  int64_t panel_n() const { return int64_t{lanes} * tile_v; }
  int64_t panels() const { return (columns + panel_n() - 1) / panel_n(); }
};

// `a`: strides of the first operand. `tile`: 2 or 4. `panel_v`: vectors of a panel of the weights; 0: free.
WinogradPlan plan_winograd(const Contraction& contraction, const WinogradForm& form, int tile,
                           const OperandStrides& a, const Target& target, int panel_v = 0);
// Returns the tilings with the plan's output tiles, by estimated cycles, each with its best block.
std::vector<Tiling> tilings(const WinogradPlan& plan, const Target& target);
Tiling tiling_of(const WinogradPlan& plan);
// Returns whether the tile and the block are possible.
bool is_legal(const WinogradPlan& plan, const Target& target, const Tiling& tiling);
void set_tiling(WinogradPlan& plan, const Tiling& tiling);

// The run time of a kernel relative to its multiply-adds.
constexpr double kWinogradOtherCycles = 1.08;

}  // namespace quernel::schedule
