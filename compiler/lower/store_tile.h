// What becomes of a register tile when its sums are complete: the epilogue, and stores.
#pragma once

#include "lower/register_tile.h"

namespace quernel::lower {

struct TilePlace {
  std::vector<loop::Expr> base;  // positions on the plan's axes; those of rows and columns are not read
  loop::Expr first_row, first_column;
  loop::Expr end_row;        // null: all rows exist
  bool all_columns = false;  // all columns exist
};

// Evaluates the group's outputs for the tile in `acc` and stores them. Where they lie contiguous along rows
// and not along columns, the tile is turned round first.
loop::Stmt store_tile(Context& context, const Node& node, const RegisterTile& tile, const loop::Buffer& acc,
                      const TilePlace& place);

}  // namespace quernel::lower
