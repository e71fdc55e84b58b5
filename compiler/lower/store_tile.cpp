#include "lower/store_tile.h"

#include <algorithm>
#include <bit>

#include "lower/transpose_tiles.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

// An evaluator for row m and column n of the tile; `indices`: of the result there.
Evaluator evaluator_at(Context& context, const Node& node, const TilePlace& place, const Expr& m,
                       const Expr& n, std::vector<IndexExpr>& indices) {
  const schedule::ContractionPlan& plan = context.group.contraction;
  std::vector<Expr> positions = place.base;
  set_rows(context, plan, positions, place.first_row + m);
  positions[plan.vector_axis] = place.first_column + n;
  Evaluator e = context.evaluator();
  for (size_t i = 0; i < plan.axes.size(); ++i) e.axes.push_back({positions[i], max(plan.axes[i].extent, 1)});
  for (const IndexExpr& out : node.attributes.contraction.out)
    indices.push_back(simplify(substitute(out, plan.axis_values), e.extents()));
  for (size_t i = 0; i < plan.column_constants.size(); ++i) {
    const schedule::ColumnConstant& c = plan.column_constants[i];
    Expr word =
        loop::load(place.packed, place.constants + index(static_cast<int64_t>(i) * plan.panel_n()) + n);
    e.provide(c.read_as, place.packed->dtype == DType::kI32 ? word : loop::bitcast({DType::kI32, 1}, word));
  }
  return e;
}

class Storing {
 public:
  Storing(Context& context, const Node& node, const RegisterTile& tile, const TilePlace& place)
      : c_(context),
        g_(context.graph()),
        node_(node),
        plan_(context.group.contraction),
        tile_(tile),
        place_(place),
        columns_(context.symbols(plan_.axes[plan_.vector_axis].extent)) {}

  Stmt by_rows(loop::Buffer acc) {
    std::vector<Stmt> body;
    const bool in_memory = acc->scope == loop::Scope::kShared;
    AxisKind rows = in_memory ? AxisKind::kSerial : AxisKind::kUnrolled;
    if (!in_memory && heavy_epilogue() && tile_.rows() > 1) {
      loop::Buffer copy = local_buffer("tile", acc->dtype, acc->size, loop::Scope::kShared);
      body.push_back(loop::alloc(copy));
      body.push_back(tile_.for_rows([&](Expr m) {
        return tile_.for_columns([&](Expr n) {
          Expr slot = tile_.slot(m, n);
          return loop::store(copy, slot, loop::load(acc, slot));
        });
      }));
      acc = copy;
      rows = AxisKind::kSerial;
    }
    body.push_back(tile_.for_rows(
        [&](Expr m) {
          Expr row = place_.first_row + m;
          Stmt stmt = tile_.for_columns([&](Expr n) {
            Expr column = place_.first_column + n;
            Expr sum = loop::load(acc, tile_.slot(m, n));
            Stmt point = store_point(m, n, place_.added ? sum + loop::load(place_.added, n) : sum);
            if (place_.all_columns) return point;
            return loop::if_then(loop::binary(BinaryOp::k_lt, column, columns_), point);
          });
          if (!place_.end_row) return stmt;
          return loop::if_then(loop::binary(BinaryOp::k_lt, row, place_.end_row), stmt);
        },
        rows));
    return loop::block(std::move(body));
  }

  // Column by column, in vectors of rows.
  Stmt turned(const loop::Buffer& acc) {
    int64_t m = tile_.rows();
    rows_at_once_ = std::min<int64_t>(plan_.lanes, std::bit_ceil(static_cast<uint64_t>(m)));
    int64_t blocks = (m + rows_at_once_ - 1) / rows_at_once_;
    turned_ =
        local_buffer("turned", acc->dtype, blocks * rows_at_once_ * plan_.tile_n(), loop::Scope::kShared);
    std::vector<Stmt> body{loop::alloc(turned_)};
    const schedule::TileVectors& vectors = tile_.vectors();
    for (int64_t block = 0; block < blocks; ++block) {
      for (int v = 0; v < vectors.vectors; ++v) turn(body, acc, block, int64_t{v} * plan_.lanes, plan_.lanes);
      if (vectors.short_lanes != 0)
        turn(body, acc, block, int64_t{vectors.vectors} * plan_.lanes, vectors.short_lanes);
    }
    Stmt stores = turned_stores(blocks, nullptr);
    if (place_.end_row)
      stores = loop::if_then(loop::binary(BinaryOp::k_le, place_.first_row + index(m), place_.end_row),
                             stores, turned_stores(blocks, place_.end_row));
    body.push_back(stores);
    return loop::block(std::move(body));
  }

 private:
  // Whether the epilogue is heavy: then it is written once, over a copy of the tile in memory, instead of
  // once per vector.
  bool heavy_epilogue() const { return elementwise_weight(c_) * tile_.rows() * plan_.tile_v > 256; }

  // Column n of a block of rows lies at ((block * tile_n) + n) * rows_at_once_ of what is turned round.
  Expr turned_column(int64_t block, const Expr& n) const {
    return (index(block * plan_.tile_n()) + n) * index(rows_at_once_);
  }
  void turn(std::vector<Stmt>& body, const loop::Buffer& acc, int64_t block, int64_t column,
            int lanes) const {
    std::vector<Expr> vectors;
    for (int64_t i = 0; i < rows_at_once_; ++i) {
      int64_t row = std::min<int64_t>(block * rows_at_once_ + i, tile_.rows() - 1);
      vectors.push_back(loop::load(acc, loop::ramp(tile_.slot(index(row), index(column)), 1, lanes), lanes));
    }
    vectors = turned_round(body, vectors);
    for (int64_t i = 0; i < rows_at_once_; ++i) {
      Expr first = turned_column(block, index(column)) + index(i * lanes);
      body.push_back(loop::store(turned_, loop::ramp(first, 1, lanes), vectors[i]));
    }
  }
  // `end_row`: null where all of the tile's rows exist.
  Stmt turned_stores(int64_t blocks, const Expr& end_row) {
    loop::Var n = index_var("n");
    std::vector<Stmt> parts;
    for (int64_t block = 0; block < blocks; ++block) {
      loop::Var l = index_var("l");
      int64_t rows = std::min(rows_at_once_, tile_.rows() - block * rows_at_once_);
      Expr of_tile = index(block * rows_at_once_) + loop::var_ref(l), row = place_.first_row + of_tile;
      Expr value = loop::load(turned_, turned_column(block, loop::var_ref(n)) + loop::var_ref(l));
      Stmt point = store_point(of_tile, loop::var_ref(n), value);
      if (rows < rows_at_once_)
        point = loop::if_then(loop::binary(BinaryOp::k_lt, loop::var_ref(l), index(rows)), point);
      if (end_row) point = loop::if_then(loop::binary(BinaryOp::k_lt, row, end_row), point);
      parts.push_back(loop::for_loop(l, index(rows_at_once_), AxisKind::kVector, point));
    }
    Expr count = index(tile_.columns());
    if (!place_.all_columns) count = loop::binary(BinaryOp::k_min, count, columns_ - place_.first_column);
    return loop::for_loop(n, count, AxisKind::kSerial, loop::block(std::move(parts)));
  }

  Stmt store_point(const Expr& m, const Expr& n, Expr value) {
    std::vector<IndexExpr> indices;
    Evaluator e = evaluator_at(c_, node_, place_, m, n, indices);
    const int added = plan_.walk.first_addend;
    const ValueId sum = added < 0 ? node_.output : g_.nodes[added].output;
    e.provide(sum, e.name_value("sum", loop::cast(g_.dtype(sum), value)));
    std::vector<Expr> values;
    for (ValueId v : c_.group.outputs) values.push_back(e.evaluate(v, indices));
    for (size_t i = 0; i < values.size(); ++i) e.store(c_.group.outputs[i], indices, values[i]);
    return loop::block(std::move(e.statements));
  }

  Context& c_;
  const Graph& g_;
  const Node& node_;
  const schedule::ContractionPlan& plan_;
  const RegisterTile& tile_;
  const TilePlace& place_;
  Expr columns_;
  loop::Buffer turned_;
  int64_t rows_at_once_ = 1;  // that are turned round
};

}  // namespace

Expr first_addend(Context& context, const Node& node, const TilePlace& place, const Expr& m, const Expr& n,
                  std::vector<Stmt>& statements) {
  const Graph& g = context.graph();
  const Node& add = g.nodes[context.group.contraction.walk.first_addend];
  std::vector<IndexExpr> indices;
  Evaluator e = evaluator_at(context, node, place, m, n, indices);
  Expr value = e.evaluate(add.inputs[add.inputs[0] == node.output ? 1 : 0], indices);
  statements.insert(statements.end(), e.statements.begin(), e.statements.end());
  return value;
}

Stmt store_tile(Context& context, const Node& node, const RegisterTile& tile, const loop::Buffer& acc,
                const TilePlace& place) {
  Storing storing(context, node, tile, place);
  return context.group.contraction.walk.transposes ? storing.turned(acc) : storing.by_rows(acc);
}

}  // namespace quernel::lower
