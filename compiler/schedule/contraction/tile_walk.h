// The walk of a contraction's kernel over its tiles, as data: the order of tiles, blocks of rows, and which
// tiles have separate code. The step plan-kernels chooses it, once tiles and storage are final.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/dim.h"

namespace quernel::schedule {

// The vectors of a row of a register tile: whole ones, then possibly a short one.
struct TileVectors {
  int vectors = 0, short_lanes = 0;
  bool operator==(const TileVectors&) const = default;
};

// A tile's place: its position along each of the grid axes, then its number among the column tiles, then
// among the row tiles.
struct TileLoop {
  size_t place;  // the component of the place that it counts
  Dim extent;
};

struct TileWalk {
  // Outermost first. Empty if the kernel walks over blocks, or if another kernel (attention) contains it.
  std::vector<TileLoop> loops;
  int64_t group_work = 0;  // least multiply-adds of a workgroup, or Target::kAllWork
  // Rows of results that a block has, in whole tiles if they are rows of tiles. 0: no blocks. A block has an
  // im2row buffer, or shares a gathered column.
  int64_t block_rows = 0;
  // A block of rows first gathers the columns of b that a tile reads, because their steps would evict one
  // another from a cache, or because they are quantised and have to be widened.
  bool gathers_columns = false;
  // How far ahead of what they read tiles ask for lines of packed b; 0: they do not.
  int64_t prefetch_bytes = 0;
  // Quantised b: meanwhile so many passes over a tile's words, for tiles of rows one after the other or to widen them, ask for
  // the words of the next column tile, each for its part; 0: none do.
  int64_t prefetch_passes = 0;
  std::optional<TileVectors> tail_columns;  // the last column tile, if it has separate code
  bool tail_rows = false;  // the last row tile, or tiles with boundary-clipped windows, have separate code
  // Each row of a whole tile is read at the same distance from the one before, so that one place is enough for
  // all.
  bool even_rows = false;
  // Rows of a tile share the elements that several of their windows contain, as row_windows() says.
  bool shares_elements = false;
  // The node of the group that adds constant integers to the sums, which accumulators then begin with; -1: with
  // zero.
  int first_addend = -1;
  // Steps of the sum whose elements of a row of a are loaded as one vector (steps_at_once).
  int64_t steps_at_once = 1;
  bool transposes = false;  // tiles are transposed before they are stored
  // Steps of a sum, or words (ContractionPlan::dot), that are unrolled, per reduction axis: divisors of their
  // number, all of it where an axis further out has more than one. Empty: none are.
  std::vector<int64_t> unrolled;
  bool rest_by_elements = false;  // elements after a sum's last whole word are multiplied one by one
  bool single_bytes = false;      // int8 dot products multiply one 8-bit element per word (depthwise)
};

}  // namespace quernel::schedule
