#include "schedule/contraction/tile_loops.h"

#include <algorithm>
#include <utility>

namespace quernel::schedule {
namespace {

// Which of the loops over grid axes, columns and rows is the one over columns: the last of all, or the last
// before those that walk what a column is used for.
size_t place_of_columns(const ContractionPlan& plan) {
  size_t grid = plan.grid_axes.size();
  if (plan.gathers_rows || plan.pairs_rows) return grid + 1;
  if (plan.order == TileOrder::kColumns) return grid + 1;
  for (size_t i = 0; i < grid; ++i)
    for (const Slide& s : plan.windows)
      if (s.position == plan.grid_axes[i]) return i;
  return grid;
}

// Whether weights differ from one position to the next: they belong to channels, not to pixels or tokens.
bool has_own_weights(const ContractionPlan& plan, size_t place) {
  size_t grid = plan.grid_axes.size();
  return place == grid || (place < grid && !(packed_stride(plan, plan.grid_axes[place], 1) == Dim(0)));
}

// Blocks of equal size, as many as kBlocks where there are enough tiles; 1: such blocks would differ too
// much.
int64_t block_size(int64_t tiles, int64_t least) {
  constexpr int64_t kBlocks = 8, kFewestBlocks = 2, kMostMissing = 16;  // a 16th
  for (int64_t blocks = std::min(kBlocks, tiles / least); blocks >= kFewestBlocks; --blocks) {
    int64_t size = (tiles + blocks - 1) / blocks, missing = (tiles + size - 1) / size * size - tiles;
    if (missing * kMostMissing <= tiles) return size;
  }
  return tiles;
}

// Blocks of columns, of equal size, each of which has its own copies of a's rows in pairs: several threads find work, and
// a copy takes little next to what so many columns do with it.
int64_t column_blocks(const ContractionPlan& plan) {
  constexpr int64_t kMost = 8, kFewestColumns = 128;
  const Dim tiles = column_tile_count(plan);
  if (!tiles.is_const()) return 1;
  int64_t blocks = std::clamp<int64_t>(tiles.value() * plan.tile_n() / kFewestColumns, 1, kMost);
  while (tiles.value() % blocks != 0) --blocks;
  return blocks;
}

}  // namespace

Shape tile_extents(const ContractionPlan& plan) {
  Shape extents;
  for (int axis : plan.grid_axes) extents.push_back(plan.axes[axis].extent);
  extents.push_back(column_tile_count(plan));
  extents.push_back(ceildiv(row_count(plan), plan.tile_m));
  return extents;
}

std::vector<TileLoop> tile_loops(const ContractionPlan& plan, const Target& target) {
  Shape extents = tile_extents(plan);
  std::vector<TileLoop> loops;
  size_t grid = plan.grid_axes.size();
  for (size_t place = 0; place < extents.size(); ++place)
    if (place != grid) loops.push_back({place, extents[place]});
  const Dim line = plan.line_rows / plan.tile_m;  // of tiles
  auto at = [&](size_t i) { return loops.begin() + static_cast<std::ptrdiff_t>(i); };
  loops.insert(at(place_of_columns(plan)), {grid, extents[grid]});
  if (plan.pairs_rows) {
    const int64_t blocks = column_blocks(plan);
    if (blocks > 1) {
      loops.back().extent = floordiv(loops.back().extent, blocks);
      loops.insert(at(grid), {grid, blocks});
    }
    return loops;
  }
  if (plan.line_rows != 0) {
    auto first = std::find_if(loops.begin(), loops.end(), [&](const TileLoop& l) { return l.place >= grid; });
    auto rows = std::find_if(first, loops.end(), [&](const TileLoop& l) { return l.place > grid; });
    const TileLoop lines{grid + 1, floordiv(std::exchange(rows->extent, line), line)};
    loops.insert(first, lines);
  }

  // Packed weights that stay in L2 may pass once for each block.
  if (!target.has_caches() || !plan.packed) return loops;
  Dim weights = panel_rows(plan) * plan.axes[plan.vector_axis].extent;
  for (size_t i = 0; i < grid; ++i)
    if (has_own_weights(plan, i)) weights *= extents[i];
  int64_t element = target.vector_bytes / plan.lanes;
  if (!always_le(weights, target.l2_bytes / 2 / element)) return loops;

  auto is_several = [](const TileLoop& loop) { return !(loop.extent == Dim(1)); };
  size_t first = 0;
  while (first < loops.size() && !(is_several(loops[first]) && has_own_weights(plan, loops[first].place)))
    if (is_several(loops[first++])) return loops;  // pixels or images are outermost
  for (size_t i = first; i < loops.size(); ++i) {
    TileLoop& loop = loops[i];
    if (!is_several(loop) || has_own_weights(plan, loop.place)) continue;
    // A tile's panel should be used again while it is near; windows have no panels to speak of.
    const int64_t least = loop.place > grid ? 2 : 1;
    int64_t size = loop.extent.is_const() ? block_size(loop.extent.value(), least) : 0;
    if (size == 0 || size == loop.extent.value()) break;
    TileLoop blocks{loop.place, (loop.extent.value() + size - 1) / size};
    loop.extent = size;
    loops.insert(at(first), blocks);
    break;
  }
  return loops;
}

}  // namespace quernel::schedule
