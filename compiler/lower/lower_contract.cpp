// The walk of a contraction's kernel over its tiles.
#include <algorithm>

#include "lower/contract_lowering.h"
#include "schedule/contraction/operand_access.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;
using schedule::ContractionPlan;

ContractLowering::ContractLowering(Context& context)
    : c_(context),
      g_(context.graph()),
      node_(g_.nodes[context.group.anchor]),
      plan_(context.group.contraction),
      whole_tile_{.vectors = plan_.tile_v},
      tile_(plan_, whole_tile_, plan_.tile_m) {
  for (int i = 0; i < 2; ++i) {
    bool is_a = (i == 0) != plan_.swapped;
    schedule::OperandAccess access = schedule::resolve_operand(g_, node_, i);
    (is_a ? a_ : b_) = access.base;
  }
  accumulator_dtype_ = node_.attributes.contraction.accumulator;
  term_dtype_ = plan_.half_sums ? DType::kF16 : accumulator_dtype_;
  lanes_ = plan_.lanes;
  if (std::optional<schedule::RowsOfBytes> rows = schedule::rows_of_bytes(g_, a_)) {
    a_ = rows->digits.front();
    for (ValueId digit : rows->digits) digits_.push_back(c_.buffers.reads.at(digit));
    base_ = rows->base, factor_ = rows->factor;
    row_scales_ = c_.buffers.reads.at(rows->scales);
    group_sums_ = c_.buffers.reads.at(rows->sums);
  }
  a_buffer_ = c_.buffers.reads.at(a_);
  b_buffer_ = plan_.packed ? c_.buffers.packed[0] : c_.buffers.reads.at(b_);
  if (plan_.blocks) scales_ = c_.buffers.packed[1];
  if (plan_.blocks && plan_.blocks->format.zeros) zeros_ = c_.buffers.packed[2];
  rows_ = schedule::row_count(plan_);
  columns_ = plan_.axes[plan_.vector_axis].extent;
  partial_rows_ = !(floormod(rows_, plan_.tile_m) == Dim(0));
  end_row_ = at(rows_);
  along_ = schedule::windows_along_rows(plan_);
  if (plan_.walk.shares_elements) along_ = &row_windows_.emplace(*schedule::row_windows(plan_));
  in_blocks_ = rounds_sums(BinaryOp::k_add, accumulator_dtype_) &&
               most(schedule::reduction_count(plan_)) > kLongestContraction;
}

Expr ContractLowering::is_short() const {
  return loop::binary(BinaryOp::k_le, at(schedule::reduction_count(plan_)), index(kLongestContraction));
}

void ContractLowering::run_short() {
  in_blocks_ = false;
  run();
}

void ContractLowering::run() {
  Shape outer;
  for (int axis : plan_.grid_axes) outer.push_back(plan_.axes[axis].extent);
  if (plan_.staged) return plan_.elementwise ? staged_rows(outer) : staged_columns(outer);
  outer.push_back(schedule::column_tile_count(plan_));
  if (plan_.walk.gathers_columns) return gathered_rows(outer);
  const std::vector<schedule::TileLoop>& loops = plan_.walk.loops;
  Shape tiles = schedule::tile_extents(plan_), extents;
  for (const schedule::TileLoop& loop : loops) extents.push_back(loop.extent);
  int64_t tile_work = schedule::reduction_count(plan_).estimate() * plan_.tile_m * plan_.tile_n();
  const bool gathers = plan_.gathers_rows || plan_.pairs_rows;
  if (gathers) {  // columns are the last loop
    tile_work *= extents.back().estimate();
    extents.pop_back();
  }
  c_.kernel.body =
      outer_loops(c_, extents, tile_work, plan_.walk.group_work, [&](const std::vector<Expr>& at_loop) {
        std::vector<Expr> place(tiles.size());
        Shape counted(tiles.size(), 1);
        std::optional<size_t> backwards;  // the outermost of several, with all its loops
        for (size_t i = 0; i < at_loop.size(); ++i) {
          Expr& p = place[loops[i].place];
          Expr position = at_loop[i];
          if (plan_.backwards && !(loops[i].extent == Dim(1)) && !backwards) backwards = loops[i].place;
          if (backwards == loops[i].place) position = at(loops[i].extent - 1) - position;
          p = p ? p * at(loops[i].extent) + position : position;
          counted[loops[i].place] *= loops[i].extent;
        }
        if (gathers) return tiles_of_gathered_rows(place, loops.back().extent);
        Expr exists;
        for (size_t i = 0; i < tiles.size(); ++i)
          if (!(counted[i] == tiles[i])) exists = loop::binary(BinaryOp::k_lt, place[i], at(tiles[i]));
        return exists ? loop::if_then(exists, tile(place)) : tile(place);
      });
}

Stmt ContractLowering::rows(const RowBlock& block, const std::vector<int>& axes, const TileRange& columns) {
  std::vector<Expr> place = grid_place(block, axes);
  loop::Var column = index_var("column");
  place.push_back(loop::var_ref(column));
  Dim tiles = schedule::column_tile_count(plan_);
  Expr count = at(tiles);
  if (columns.first) {
    place.back() = columns.first + place.back();
    bool whole = floormod(tiles, columns.most) == Dim(0);
    count = whole ? index(columns.most)
                  : loop::binary(BinaryOp::k_min, index(columns.most), count - columns.first);
  }
  return loop::for_loop(column, count, AxisKind::kSerial, row_tiles(place, block));
}

Stmt ContractLowering::in_parts(const RowBlock& block, const std::vector<int>& axes,
                                const SumInParts& parts) {
  begin_row_ = block.begin;
  partial_rows_ = block.end != nullptr;
  end_row_ = block.end ? block.end : block.begin + index(block.most);
  parts_ = &parts;
  std::vector<Expr> place = grid_place(block, axes);
  place.insert(place.end(), {index(0), index(0)});
  return present_tile(place);
}

std::vector<Expr> ContractLowering::grid_place(const RowBlock& block, const std::vector<int>& axes) const {
  std::vector<Expr> place;
  for (int grid : plan_.grid_axes) {
    Expr position = index(0);
    for (int member : plan_.axes[grid].members) {
      size_t d = std::find(axes.begin(), axes.end(), member) - axes.begin();
      position = position * at(plan_.member_extents[member]) + block.outer[d];
    }
    place.push_back(position);
  }
  return place;
}

bool ContractLowering::whole_columns() const {
  return floormod(columns_, plan_.tile_n()) == Dim(0) ||
         (plan_.walk.tail_columns && tile_.vectors() == whole_tile_);
}

Expr ContractLowering::place_of_panel(const Expr& panel) const {
  return loop::binary(BinaryOp::k_fmod, panel, index(2)) * at(ceildiv(schedule::panel_count(plan_), 2)) +
         loop::binary(BinaryOp::k_idiv, panel, index(2));
}

Expr ContractLowering::place_of_lane(const Expr& v, const Expr& l) const {
  const int64_t together = schedule::columns_of_lane(plan_);
  if (together == 1) return v * index(lanes_) + l;
  return loop::binary(BinaryOp::k_idiv, v, index(together)) * index(lanes_ * together) +
         (l * index(together) + loop::binary(BinaryOp::k_fmod, v, index(together)));
}

Expr ContractLowering::packed_tile(const Expr& tile, const Dim& panel) const {
  int64_t tiles = plan_.panel_v / plan_.tile_v;  // of a panel
  auto first_vector = [&] {
    Expr of_panel = loop::binary(BinaryOp::k_fmod, tile, index(tiles));
    return place_of_lane(of_panel * index(plan_.tile_v), index(0));
  };
  if (plan_.odd_panels_apart) {
    if (tiles == 0) return tile * at(panel * (plan_.tile_v / plan_.panel_v / 2));
    Expr number = loop::binary(BinaryOp::k_idiv, tile, index(tiles));
    return place_of_panel(number) * at(panel) + first_vector();
  }
  if (tiles < 2) return tile * at(panel * std::max(1, plan_.tile_v / plan_.panel_v));
  return loop::binary(BinaryOp::k_idiv, tile, index(tiles)) * at(panel) + first_vector();
}

Expr ContractLowering::packed_column(const Expr& v, const Expr& l, const Dim& panel) const {
  if (!v) return plan_.groups_columns ? place_of_lane(index(0), l) : l;
  if (plan_.tile_v <= plan_.panel_v) return place_of_lane(v, l);
  Expr of_panel = loop::binary(BinaryOp::k_idiv, v, index(plan_.panel_v));
  Expr vector = loop::binary(BinaryOp::k_fmod, v, index(plan_.panel_v));
  if (plan_.odd_panels_apart) of_panel = place_of_panel(of_panel);
  return of_panel * at(panel) + place_of_lane(vector, l);
}

Stmt ContractLowering::tiles_of_gathered_rows(std::vector<Expr> place, const Dim& column_tiles) {
  std::vector<Expr> base(plan_.axes.size(), index(0));
  for (size_t i = 0; i < plan_.grid_axes.size(); ++i) base[plan_.grid_axes[i]] = place[i];
  std::vector<Stmt> body = plan_.pairs_rows ? pair_rows(base, place.back()) : gather_rows(base, place.back());
  loop::Var column = index_var("column");
  Expr& number = place[place.size() - 2];
  number = number ? number * at(column_tiles) + loop::var_ref(column) : loop::var_ref(column);
  body.push_back(loop::for_loop(column, at(column_tiles), AxisKind::kSerial, tile(place)));
  return loop::block(std::move(body));
}

std::vector<Stmt> ContractLowering::gather_rows(const std::vector<Expr>& base, const Expr& row_tile) {
  constexpr int64_t kUnrolledCopies = 16;
  const int64_t lanes = plan_.dot, steps = schedule::reduction_count(plan_).value();
  const int64_t run = plan_.axes[plan_.reduction_axes.back()].extent.value(), row = gathered_row();
  own_rows_ = local_buffer("gathered", a_buffer_->dtype, plan_.tile_m * row, loop::Scope::kShared);
  const bool unrolls = steps / run * (run / lanes + 1) <= kUnrolledCopies;
  auto copy_row = [&](const Expr& m) {
    std::vector<std::pair<loop::Var, Dim>> outer;
    Expr from = row_offset(base, row_tile * index(plan_.tile_m) + m, partial_rows_), number = index(0);
    loop::Var begin = index_var("from");
    Expr moved = loop::var_ref(begin);
    for (size_t i = 0; i + 1 < plan_.reduction_axes.size(); ++i) {
      const ContractionPlan::Axis& k = plan_.axes[plan_.reduction_axes[i]];
      outer.emplace_back(index_var("k"), k.extent);
      Expr position = loop::var_ref(outer.back().first);
      moved = moved + position * at(k.a);
      number = number * at(k.extent) + position;
    }
    Expr to = m * index(row) + number * index(run);
    std::vector<Stmt> copies;
    for (int64_t k = 0, width = lanes; k < run; k += width) {
      while (width > run - k) width /= 2;
      const int count = static_cast<int>(width);
      copies.push_back(loop::store(own_rows_, loop::ramp(to + index(k), 1, count),
                                   loop::load(a_buffer_, loop::ramp(moved + index(k), 1, count), count)));
    }
    Stmt stmt = loop::block(std::move(copies));
    for (size_t i = outer.size(); i-- > 0;)
      stmt = loop::for_loop(outer[i].first, at(outer[i].second),
                            unrolls ? AxisKind::kUnrolled : AxisKind::kSerial, stmt);
    std::vector<Stmt> body{loop::let(begin, from)};
    if (steps % lanes != 0)  // what no element fills
      body.push_back(loop::store(own_rows_, loop::ramp(m * index(row) + index(row - lanes), 1, plan_.dot),
                                 loop::const_int(a_buffer_->dtype, 0, plan_.dot)));
    body.push_back(stmt);
    return loop::block(std::move(body));
  };
  return {loop::alloc(own_rows_), for_rows(copy_row)};
}

void ContractLowering::gathered_rows(Shape outer) {
  RowBlock block;
  block.most = plan_.walk.block_rows;
  outer.push_back(ceildiv(rows_, block.most));
  c_.kernel.body = outer_loops(c_, outer, 1, 1, [&](std::vector<Expr> at_grid) {
    block.begin = at_grid.back() * index(block.most);
    if (!(floormod(rows_, block.most) == Dim(0)))
      block.end = loop::binary(BinaryOp::k_min, block.begin + index(block.most), at(rows_));
    at_grid.pop_back();
    return row_tiles(std::move(at_grid), block);
  });
}

Stmt ContractLowering::row_tiles(std::vector<Expr> place, const RowBlock& block) {
  begin_row_ = block.begin;
  partial_rows_ = block.end || block.most % plan_.tile_m != 0;
  end_row_ = block.end ? block.end : block.begin + index(block.most);
  std::vector<Stmt> body;
  if (plan_.walk.gathers_columns) {
    gathered_ = local_buffer("column", accumulator_dtype_,
                             schedule::reduction_count(plan_).value() * plan_.tile_n(), loop::Scope::kShared);
    body = {loop::alloc(gathered_), gather_column(place)};
  }
  loop::Var row = index_var("row");
  Expr count = index((block.most + plan_.tile_m - 1) / plan_.tile_m);
  if (block.end)
    count = loop::binary(BinaryOp::k_min, count,
                         loop::binary(BinaryOp::k_idiv, block.end - block.begin + index(plan_.tile_m - 1),
                                      index(plan_.tile_m)));
  place.push_back(loop::var_ref(row));
  body.push_back(loop::for_loop(row, count, AxisKind::kSerial, tile(place)));
  return loop::block(std::move(body));
}

void ContractLowering::staged_rows(Shape outer) {
  const int64_t rows = rows_.value(), most = plan_.walk.block_rows;
  staged_.emplace(plan_, a_buffer_->dtype);
  outer.push_back((rows + most - 1) / most);
  int64_t work = std::min(most, rows) * columns_.value() * schedule::reduction_count(plan_).value();
  Stmt clear = staged_->allocate(most);
  Stmt blocks_of_rows = outer_loops(c_, outer, work, plan_.walk.group_work, [&](std::vector<Expr> place) {
    RowBlock block;
    block.most = most;
    block.begin = place.back() * index(most);
    if (rows % most != 0) block.end = loop::binary(BinaryOp::k_min, block.begin + index(most), at(rows_));
    place.pop_back();
    Expr image = base_of_a();
    for (size_t i = 0; i < plan_.grid_axes.size(); ++i)
      image = image + place[i] * at(plan_.axes[plan_.grid_axes[i]].a);
    Stmt copy = staged_->copy(a_buffer_, image, block.begin);
    loop::Var column = index_var("column");
    place.push_back(loop::var_ref(column));
    Stmt tiles = loop::for_loop(column, at(schedule::column_tile_count(plan_)), AxisKind::kSerial,
                                row_tiles(place, block));
    return loop::block({copy, tiles});
  });
  c_.kernel.body = loop::block({loop::alloc(staged_->buffer()), clear, blocks_of_rows});
}

void ContractLowering::staged_columns(Shape outer) {
  int y_axis = plan_.staged->rows.position;
  size_t y = std::find(plan_.grid_axes.begin(), plan_.grid_axes.end(), y_axis) - plan_.grid_axes.begin();
  const int64_t lines = plan_.axes[y_axis].extent.value(), most = plan_.walk.block_rows;
  staged_.emplace(plan_, b_buffer_->dtype);
  outer[y] = (lines + most - 1) / most;
  int64_t work = most * rows_.estimate() * columns_.value() * schedule::reduction_count(plan_).estimate();
  Stmt clear = staged_->allocate(most);
  Stmt all = outer_loops(c_, outer, work, plan_.walk.group_work, [&](std::vector<Expr> place) {
    Expr first = place[y] * index(most), count = index(most);
    if (lines % most != 0) count = loop::binary(BinaryOp::k_min, count, index(lines) - first);
    Expr image = at(plan_.b_offset);
    for (size_t i = 0; i < plan_.grid_axes.size(); ++i)
      if (i != y) image = image + place[i] * at(plan_.axes[plan_.grid_axes[i]].b);
    loop::Var row = index_var("row"), line = index_var("line"), column = index_var("column");
    staged_line_ = loop::var_ref(line);
    place[y] = first + staged_line_;
    place.push_back(loop::var_ref(column));
    place.push_back(loop::var_ref(row));
    Stmt tiles =
        loop::for_loop(column, at(schedule::column_tile_count(plan_)), AxisKind::kSerial, tile(place));
    tiles = loop::for_loop(line, count, AxisKind::kSerial, tiles);
    tiles = loop::for_loop(row, at(ceildiv(rows_, plan_.tile_m)), AxisKind::kSerial, tiles);
    return loop::block({staged_->copy(b_buffer_, image, first), tiles});
  });
  c_.kernel.body = loop::block({loop::alloc(staged_->buffer()), clear, all});
}

void lower_contract(Context& context) {
  ContractLowering lowering(context);
  if (!lowering.may_be_short()) return lowering.run();
  ContractLowering(context).run_short();
  const std::vector<loop::GridAxis> grid = std::exchange(context.kernel.grid, {});
  const Dim workgroups = std::exchange(context.workgroups, 1);
  Stmt of_few = std::move(context.kernel.body);
  lowering.run();
  std::vector<Stmt> of_many;
  for (size_t i = 0; i < grid.size(); ++i)  // in the same workgroups
    of_many.push_back(loop::let(context.kernel.grid[i].var, loop::var_ref(grid[i].var)));
  of_many.push_back(std::move(context.kernel.body));
  context.kernel.body = loop::if_then(lowering.is_short(), of_few, loop::block(std::move(of_many)));
  context.kernel.grid = grid;
  context.workgroups = workgroups;
}

Stmt contract_rows(Context& context, const RowBlock& block, const std::vector<int>& axes,
                   const TileRange& columns) {
  return ContractLowering(context).rows(block, axes, columns);
}

Stmt contract_rows_in_parts(Context& context, const RowBlock& block, const std::vector<int>& axes,
                            const SumInParts& parts) {
  return ContractLowering(context).in_parts(block, axes, parts);
}

}  // namespace quernel::lower
