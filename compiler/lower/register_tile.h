// The loops over a register tile of a contraction, and where its rows lie.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// A tile's accumulators: `rows` of `vectors`, row m's column n in slot m * tile_n + n.
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
  // `body` gets the vector's number, null where it is the first of all, and the lane.
  loop::Stmt for_vectors(const std::function<loop::Stmt(loop::Expr, loop::Expr)>& body) const;

 private:
  const schedule::ContractionPlan* plan_;
  schedule::TileVectors vectors_;
  int rows_;
};

// Digits of the flattened row number: positions on the plan's row axes.
void set_rows(Context& context, const schedule::ContractionPlan& plan, std::vector<loop::Expr>& positions,
              const loop::Expr& row);

}  // namespace quernel::lower
