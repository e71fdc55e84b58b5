// The end of a register tile: the epilogue on complete accumulators, and stores.
#pragma once

#include "lower/register_tile.h"

namespace quernel::lower {

struct TilePlace {
  std::vector<loop::Expr> base;  // positions on the plan's axes; row and column positions are unused
  loop::Expr first_row, first_column;
  loop::Expr end_row;        // null: all rows exist
  bool all_columns = false;  // all columns exist
  loop::Buffer packed;       // with column constants: the packed operand, and
  loop::Expr constants;      // the place there of the first one's word for the tile's first column
  loop::Buffer added;        // for each column what is added to its sums; null: nothing
};

// Returns what the accumulator of row m and column n of the tile begins with: the addend of the walk's first_addend.
// Appends the statements that compute it. Requires such an addend.
loop::Expr first_addend(Context& context, const Node& node, const TilePlace& place, const loop::Expr& m,
                        const loop::Expr& n, std::vector<loop::Stmt>& statements);

// Evaluates the group's outputs for the tile in `acc` and stores them. If outputs are contiguous along rows
// and not along columns, the tile is transposed first.
loop::Stmt store_tile(Context& context, const Node& node, const RegisterTile& tile, const loop::Buffer& acc,
                      const TilePlace& place);

}  // namespace quernel::lower
