// Contractions as register tiles: tile_m rows by tile_v vectors of accumulators stay in registers over the whole
// reduction. "b" is read in vectors (packed where it is constant). "a" is broadcast, or read in vectors too, for depthwise
// kernels, whose rows share what their windows see. Tail tiles have fewer rows or vectors; the last vector may be a short
// one. Without tail tiles, rows past the end read the last one's data and are not stored; columns past the end are zero in
// packed operands and masked else. A staged operand is gathered in scratch for a block of rows.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "lower/block_sums.h"
#include "lower/loop_nest.h"
#include "lower/register_tile.h"
#include "lower/shared_rows.h"
#include "lower/staged_image.h"
#include "schedule/contraction/tile_loops.h"

namespace quernel::lower {

// Builds the kernel of a contraction, or the part of an attention kernel that is one. lower_contract.cpp walks over tiles,
// contract_sums.cpp computes the current one.
class ContractLowering {
 public:
  explicit ContractLowering(Context& context);

  // Where only a run tells whether the sum is long, the kernel has code for both, apart from one another, so
  // that none needs the other's registers.
  bool may_be_short() const { return in_blocks_ && !schedule::reduction_count(plan_).is_const(); }
  loop::Expr is_short() const;
  void run_short();

  void run();

  // The tiles of a block of rows, column by column.
  loop::Stmt rows(const RowBlock& block, const std::vector<int>& axes, const TileRange& columns);

  // The one tile of a block of rows.
  loop::Stmt in_parts(const RowBlock& block, const std::vector<int>& axes, const SumInParts& parts);

 private:
  // Positions on the grid axes where the block lies.
  std::vector<loop::Expr> grid_place(const RowBlock& block, const std::vector<int>& axes) const;

  loop::Expr at(const Dim& dim) const { return c_.symbols(dim); }
  // Whether all columns of the current tile exist, wherever it lies.
  bool whole_columns() const;

  // The loops over the current tile.
  loop::Stmt for_rows(const std::function<loop::Stmt(loop::Expr)>& body) const {
    return tile_.for_rows(body);
  }
  loop::Stmt for_columns(const std::function<loop::Stmt(loop::Expr)>& body) const {
    return tile_.for_columns(body);
  }
  loop::Stmt for_vectors(const std::function<loop::Stmt(loop::Expr, loop::Expr)>& body) const {
    return tile_.for_vectors(body);
  }

  // Elements of a panel of b.
  Dim panel_size() const { return schedule::panel_rows(plan_) * plan_.panel_n(); }
  // Where the tile's columns begin in packed b.
  loop::Expr packed_tile(const loop::Expr& tile) const;
  // A column of the tile from there: vector v, lane l.
  loop::Expr packed_column(const loop::Expr& v, const loop::Expr& l) const;

  // Whether a column of b that lies scattered is gathered first: many rows read it, it would stay in a
  // cache, but its steps are at such distances that they fall into few of the cache's sets and push one
  // another out.
  bool gathers_columns(const Dim& rows) const;

  // `outer`: grid axes, column tiles.
  void gathered_rows(Shape outer);

  // The row tiles of one column. `place`: grid axes, column tile.
  loop::Stmt row_tiles(std::vector<loop::Expr> place, const RowBlock& block);

  // `outer`: grid axes. "a" is staged, whose rows are those of tiles.
  void staged_rows(Shape outer);

  // `outer`: grid axes. "b" is staged, whose rows are those of one of them.
  void staged_columns(Shape outer);

  bool staged_a() const { return staged_ && plan_.elementwise; }
  bool staged_b() const { return staged_ && !plan_.elementwise; }

  // The steps of the sum: positions on the reduction axes, and the loops over them, the outermost first.
  struct Steps {
    std::vector<std::pair<loop::Var, Dim>> loops;
    loop::Expr a = index(0), b = index(0);  // offsets in the operands
  };
  // `columns`: elements of b from one step to the next where those of a tile lie together, 0 where they do
  // not.
  Steps steps(int64_t columns) const;

  // What a position on a reduction axis adds to the place in a.
  loop::Expr offset_in_a(int axis, const loop::Expr& position) const;

  // Where b's columns begin, but for the tile's own number in packed b.
  loop::Expr grid_of_b(const std::vector<loop::Expr>& positions) const;

  loop::Expr read(const loop::Buffer& buffer, loop::Expr offset, loop::Expr inside) const;
  // Whether b has one element for all columns, as a window has that slides over an image by itself.
  bool one_column() const { return plan_.elementwise && plan_.axes[plan_.vector_axis].b == Dim(0); }
  // Whether a column exists; null where all do.
  loop::Expr exists(const loop::Expr& column) const;

  loop::Stmt gather_column(const std::vector<loop::Expr>& place);

  // The first element of a, as its buffer counts.
  loop::Expr base_of_a() const;

  // The tile at that place; grid axes, column tile, row tile.
  loop::Stmt tile(std::vector<loop::Expr> place);

  // The last tile, where it has fewer rows than others, and tiles some of whose windows reach beyond the
  // image have code of their own: their number is known there, and with it which rows there are, and which
  // steps of theirs see elements.
  loop::Stmt tile_of_rows(std::vector<loop::Expr> place);

  // The same where only a run tells how many rows there are.
  loop::Stmt tile_of_symbolic_rows(const std::vector<loop::Expr>& place);

  int64_t window_of(const schedule::Slide& s) const { return plan_.axes[s.window].extent.value(); }
  // Whether step k of a window sees an element for row m of the current tile.
  bool sees(int64_t m, int64_t k) const;
  // The windows along grid axes that reach beyond the image, which slide over reduction axis `axis`; null:
  // none.
  const schedule::Slide* clipped(int axis) const;
  // A loop over the steps of a window, those that see elements from `position` on.
  loop::Stmt clipped_loop(const schedule::Slide& s, const loop::Var& k, const loop::Expr& position,
                          const loop::Stmt& body) const;

  loop::Stmt present_tile(const std::vector<loop::Expr>& place);

  // The sum in words of neighbours. What is left of the last axis is a step of its own.
  loop::Stmt reduce_words(const loop::Buffer& acc, const loop::Buffer& row_offsets, const loop::Expr& b_base);

  BlockSums block_sums() const;

  // The loops around `body`, the outermost first, which add up to `acc`: in blocks where the sum is long.
  loop::Stmt sum_loops(const std::vector<TermLoop>& loops, int64_t inner_terms, const loop::Buffer& acc,
                       const std::function<loop::Stmt(const loop::Buffer& acc)>& body) const;

  // The columns of b that begin at `from`, to `columns` from `first` on.
  loop::Stmt read_columns(const loop::Buffer& columns, const loop::Expr& first, const loop::Expr& from,
                          const loop::Expr& first_column) const;
  loop::Expr sum_with(const loop::Expr& a, const loop::Expr& b, const loop::Expr& sum) const;

  // The sums of windows that slide along the rows of tiles. Each element of a is read once, and goes to all
  // rows whose windows see it: the columns of b for a window's steps are in registers.
  loop::Stmt reduce_windows(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                            const loop::Expr& b_base, const loop::Expr& first_column);

  // One step of the sum. `element_of_a`: of a row, and of a column of the tile where a is read in vectors.
  loop::Stmt step(const Steps& k, const loop::Buffer& acc,
                  const std::function<loop::Expr(loop::Expr, loop::Expr)>& element_of_a,
                  const loop::Expr& b_base, const loop::Expr& first_column);

  // The sum in blocks of steps along the last axis, whose rows of a the workgroup fetches first.
  loop::Stmt reduce_shared(const loop::Buffer& acc, const loop::Expr& b_base, const loop::Expr& first_column);

  loop::Stmt each_sum(const loop::Buffer& acc, BinaryOp op,
                      const std::function<loop::Expr(const loop::Expr&)>& of_row);

  // The sum in parts, each of which makes its rows of a first.
  loop::Stmt reduce_parts(const loop::Buffer& acc, const loop::Buffer& row_offsets, const loop::Expr& b_base,
                          const loop::Expr& first_column);

  loop::Stmt reduce(const loop::Buffer& acc, const loop::Buffer& row_offsets, const loop::Expr& b_base,
                    const loop::Expr& first_column);

  Context& c_;
  const Graph& g_;
  const Node& node_;
  const schedule::ContractionPlan& plan_;
  schedule::TileVectors whole_tile_;
  RegisterTile tile_;  // the current one
  ValueId a_ = kNoValue, b_ = kNoValue;
  loop::Buffer a_buffer_, b_buffer_;
  DType accumulator_dtype_ = DType::kF32;
  bool in_blocks_ = false;     // long sums of floats are
  bool single_bytes_ = false;  // a depthwise kernel multiplies bytes, one in each word, by dot products
  int lanes_ = 1;
  std::optional<schedule::TileVectors> rest_;  // of the last tile of columns, where it has fewer
  Dim rows_ = 1, columns_ = 1;
  loop::Expr begin_row_, end_row_;  // of the current block of rows; no beginning: the first
  bool partial_rows_ = false;
  const schedule::Slide* along_ = nullptr;  // windows along the rows of tiles, which share elements of a
  bool rows_apart_ = false;                 // tiles of fewer rows have code of their own
  std::optional<int64_t> tile_number_;      // of the current tile's rows, where it is known
  std::vector<loop::Expr> positions_;       // of the current tile on the plan's axes
  loop::Buffer gathered_;                   // the current column of b where it has been gathered
  std::optional<SharedRows> shared_;        // of the current tile
  std::optional<StagedImage> staged_;       // the current rows of a or b where they have been
  const SumInParts* parts_ = nullptr;       // in which the current sum is made
  loop::Expr staged_line_;  // of b: the current row of results, counted from the block's first
};

}  // namespace quernel::lower
