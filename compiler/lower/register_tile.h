// The loops over a register tile of a contraction, and the positions of its rows.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// A tile's accumulators: `rows` rows of `vectors`. Row m, column n is in slot m * tile_n + n.
class RegisterTile {
 public:
  RegisterTile(const schedule::ContractionPlan& plan, const schedule::TileVectors& vectors, int rows)
      : plan_(&plan), vectors_(vectors), rows_(rows) {}

  const schedule::TileVectors& vectors() const { return vectors_; }
  int rows() const { return rows_; }
  int64_t columns() const { return int64_t{vectors_.vectors} * plan_->lanes + vectors_.short_lanes; }
  loop::Expr slot(const loop::Expr& m, const loop::Expr& n) const { return m * index(plan_->tile_n()) + n; }

  loop::Stmt for_rows(const std::function<loop::Stmt(loop::Expr)>& body,
                      loop::AxisKind kind = loop::AxisKind::kUnrolled) const;
  loop::Stmt for_columns(const std::function<loop::Stmt(loop::Expr)>& body) const;
  // `body` gets the vector's number (null for vector 0 if it is not in a loop) and the lane.
  loop::Stmt for_vectors(const std::function<loop::Stmt(loop::Expr, loop::Expr)>& body) const;

 private:
  const schedule::ContractionPlan* plan_;
  schedule::TileVectors vectors_;
  int rows_;
};

// Sets the positions on the plan's row axes: the digits of the flattened row number.
void set_rows(Context& context, const schedule::ContractionPlan& plan, std::vector<loop::Expr>& positions,
              const loop::Expr& row);

}  // namespace quernel::lower
