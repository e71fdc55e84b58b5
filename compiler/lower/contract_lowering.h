// Contractions as register tiles: tile_m rows by tile_v vectors of accumulators stay in registers over the
// whole reduction. "b" is read in vectors (packed if it is constant). "a" is broadcast; depthwise kernels
// read it in vectors, too, and the rows of a tile share the elements that their windows have in common. Tail
// tiles have fewer rows or vectors; the last vector may be short. Without tail tiles, rows past the end read
// the last row's data and are not stored. Columns past the end are zero in packed operands, else masked. A
// staged operand is gathered in an im2row buffer for a block of rows.
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

// Builds the kernel of a contraction, or a contraction inside another kernel such as attention.
// lower_contract.cpp walks over tiles; contract_sums.cpp computes the current tile, contract_words.cpp its
// dot products of several elements at a step, contract_blocks.cpp its products with a quantised constant,
// contract_bytes.cpp those of bytes with one, contract_pairs.cpp those with one in pairs of columns,
// contract_shared.cpp those of rows that a workgroup shares, contract_matrices.cpp those of matrix units.
class ContractLowering {
 public:
  explicit ContractLowering(Context& context);

  // If the sum's length is known only at run time, the kernel has separate code for short and for long sums,
  // so that neither needs the other's registers. is_short is the condition; run_short builds the code for
  // short sums.
  bool may_be_short() const { return in_blocks_ && !schedule::reduction_count(plan_).is_const(); }
  loop::Expr is_short() const;
  void run_short();

  void run();

  // Returns the tiles of a block of rows, column by column.
  loop::Stmt rows(const RowBlock& block, const std::vector<int>& axes, const TileRange& columns);

  // Returns the single tile of a block of rows, summed in parts.
  loop::Stmt in_parts(const RowBlock& block, const std::vector<int>& axes, const SumInParts& parts);

 private:
  // Returns the block's positions on the grid axes.
  std::vector<loop::Expr> grid_place(const RowBlock& block, const std::vector<int>& axes) const;

  loop::Expr at(const Dim& dim) const { return c_.symbols(dim); }
  // Returns whether all columns of the current tile exist at every position of the tile.
  bool whole_columns() const;

  // Loops over the current tile.
  loop::Stmt for_rows(const std::function<loop::Stmt(loop::Expr)>& body) const {
    return tile_.for_rows(body);
  }
  loop::Stmt for_columns(const std::function<loop::Stmt(loop::Expr)>& body) const {
    return tile_.for_columns(body);
  }
  loop::Stmt for_vectors(const std::function<loop::Stmt(loop::Expr, loop::Expr)>& body) const {
    return tile_.for_vectors(body);
  }

  // Returns the number of elements in a panel of b.
  Dim panel_size() const { return schedule::panel_rows(plan_) * plan_.panel_n(); }
  // The same of a panel's scales.
  Dim scales_size() const { return schedule::scale_rows(plan_) * plan_.panel_n(); }
  // Returns the place of a panel among all, where those with odd numbers are apart.
  loop::Expr place_of_panel(const loop::Expr& panel) const;
  // Returns the offset of the tile's columns in packed b, or in another operand whose panels have `panel` elements.
  loop::Expr packed_tile(const loop::Expr& tile, const Dim& panel) const;
  // Returns the place of lane l of vector v in a row of a panel.
  loop::Expr place_of_lane(const loop::Expr& v, const loop::Expr& l) const;
  // Returns the offset of a column from packed_tile: vector v, lane l.
  loop::Expr packed_column(const loop::Expr& v, const loop::Expr& l, const Dim& panel) const;

  // Returns the tiles of all columns, or of a block of them, of a tile's rows, whose elements are first gathered in scratch.
  // `place`: of the tile, but for its column; that of the block if there are several.
  loop::Stmt tiles_of_gathered_rows(std::vector<loop::Expr> place, const Dim& column_tiles);
  // Returns the copies of the rows of such a tile.
  std::vector<loop::Stmt> gather_rows(const std::vector<loop::Expr>& base, const loop::Expr& row_tile);
  // Returns the number of elements of such a row, with what fills its last vector.
  int64_t gathered_row() const { return schedule::panel_rows(plan_).value() * plan_.dot; }
  // Returns the offset in a of a row at a place on the grid axes.
  loop::Expr row_offset(const std::vector<loop::Expr>& base, loop::Expr row, bool may_pass_end) const;

  // Builds the kernel with gathered columns. `outer`: extents of grid axes and column tiles.
  void gathered_rows(Shape outer);

  // Returns the row tiles of one column tile. `place`: grid axes, column tile.
  loop::Stmt row_tiles(std::vector<loop::Expr> place, const RowBlock& block);

  // Builds the kernel with a staged "a", whose rows are the rows of tiles. `outer`: extents of grid axes.
  void staged_rows(Shape outer);

  // Builds the kernel with a staged "b", whose rows are one of the grid axes. `outer`: extents of grid axes.
  void staged_columns(Shape outer);

  bool staged_a() const { return staged_ && plan_.elementwise; }
  bool staged_b() const { return staged_ && !plan_.elementwise; }

  // The steps of the sum: loops over positions on the reduction axes, outermost first.
  struct Steps {
    std::vector<std::pair<loop::Var, Dim>> loops;
    loop::Expr a = index(0), b = index(0);  // offsets of the step in the operands
  };
  // `columns`: elements of b from one step to the next if a tile's columns are stored together; 0 if not.
  Steps steps(int64_t columns) const;

  // Returns the offset in a for a position on a reduction axis.
  loop::Expr offset_in_a(int axis, const loop::Expr& position) const;

  // Returns the offset of the grid position in b, without the tile's own column. `rows`: of a panel, if b is packed.
  loop::Expr grid_of_b(const std::vector<loop::Expr>& positions, const Dim& rows) const;

  loop::Expr read(const loop::Buffer& buffer, loop::Expr offset, loop::Expr inside) const;
  // Returns whether b has one element for all columns, like a window that slides over an image on its own.
  bool one_column() const { return plan_.elementwise && plan_.axes[plan_.vector_axis].b == Dim(0); }
  // Returns whether a column exists; null if all do.
  loop::Expr exists(const loop::Expr& column) const;

  loop::Stmt gather_column(const std::vector<loop::Expr>& place);

  // Returns the offset of a's first element in its buffer.
  loop::Expr base_of_a() const;

  // Returns the tile at that place: grid axes, column tile, row tile.
  loop::Stmt tile(std::vector<loop::Expr> place);

  // Returns the tile, with separate code for the tail tile and for tiles with windows that reach beyond the
  // image. In that code the tile's number is known, and so are its rows and the steps in which they have
  // elements.
  loop::Stmt tile_of_rows(std::vector<loop::Expr> place);

  // The same if the number of rows is known only at run time.
  loop::Stmt tile_of_symbolic_rows(const std::vector<loop::Expr>& place);

  int64_t window_of(const schedule::Slide& s) const { return plan_.axes[s.window].extent.value(); }
  // Returns whether step k of a window has an element for row m of the current tile.
  bool sees(int64_t m, int64_t k) const;
  // Returns the windows along a grid axis that reach beyond the image and slide over reduction axis `axis`;
  // null if there are none.
  const schedule::Slide* clipped(int axis) const;
  // Returns a loop over the steps of a window at `position` that have elements.
  loop::Stmt clipped_loop(const schedule::Slide& s, const loop::Var& k, const loop::Expr& position,
                          const loop::Stmt& body) const;

  loop::Stmt present_tile(const std::vector<loop::Expr>& place);

  // Returns whether the current tile's rows are at equal distances, of which only the first has a place.
  bool even_rows() const;
  // Returns the place of row m of the current tile in a.
  loop::Expr place_of_row(const loop::Buffer& row_offsets, const loop::Expr& m) const;

  // Appends the loops over a number of steps, of which so many are unrolled, and returns the current step.
  loop::Expr add_steps(std::vector<TermLoop>& loops, const Dim& steps, int64_t unrolled) const;
  // Adds the products of the first `count` elements of a word of b, and of a's from `a_step` on.
  loop::Stmt elements_of_word(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                              const loop::Expr& a_step, const loop::Expr& b_word, int64_t count);
  // Sums words of neighbouring elements. The remainder of the last axis is one more step, or single elements.
  loop::Stmt reduce_words(const loop::Buffer& acc, const loop::Buffer& row_offsets, const loop::Expr& b_base);

  // Adds the products of all lanes of vectors of neighbouring elements to scalar sums, which become vectors of
  // columns in the end. The last vector of an axis may have unused lanes.
  loop::Stmt reduce_vectors(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                            const loop::Expr& b_base);

  // Steps of the sum of a quantised b that share a scale: the number of the first one, its offset in a, and those of its
  // words in b and of its scale.
  struct BlockPlace {
    loop::Expr step, a, word, scale;
    loop::Expr next_word, next_scale;  // of the next column tile; behind the last one, of nothing
  };
  // Returns loops over the blocks of the sum, and what follows the last whole one, around `body(place, steps)`.
  loop::Stmt for_blocks(const std::function<loop::Stmt(const BlockPlace& place, int64_t steps)>& body) const;
  // Returns loops over the words of a block, and what follows the last whole one, around `body(word, steps)`. `word`: its
  // number.
  loop::Stmt for_words(int64_t steps,
                       const std::function<loop::Stmt(const loop::Expr& word, int64_t steps)>& body) const;
  // Returns step `step` of words of b as floats.
  loop::Expr step_of_word(const loop::Expr& words, int64_t step) const;
  // The same times a power of two (factor_of_lane), with the middle of elements added.
  loop::Expr step_in_place(const loop::Expr& words, int64_t step) const;
  // Stores a block's elements of the tile's rows of a, times the powers of two of their steps, in `scaled` [m][steps], and
  // their sums in `row_sums`.
  loop::Stmt scale_rows(const loop::Buffer& scaled, const loop::Buffer& row_sums,
                        const loop::Buffer& row_offsets, const BlockPlace& place, int64_t steps) const;
  // Returns the scale of a column, and its zero point times the scale if there are zero points, else null.
  loop::Expr scale_of_column(const BlockPlace& place, const loop::Expr& v, const loop::Expr& l) const;
  loop::Expr zero_of_column(const BlockPlace& place, const loop::Expr& v, const loop::Expr& l) const;
  // Asks for the lines of packed b that are walk.prefetch_bytes behind the tile's columns at offset `from`.
  loop::Stmt prefetch_columns(const loop::Expr& from) const;
  // Asks for the lines of the scales of a block of `steps` steps of the next column tile, and for the current tile's part of
  // its words (TileWalk::prefetch_passes).
  loop::Stmt prefetch_block(const BlockPlace& place, int64_t steps) const;
  // Asks for the lines of a tile's columns at offset `from` in a packed buffer, whose panels have `panel` elements.
  loop::Stmt prefetch(const loop::Buffer& buffer, const loop::Expr& from, const Dim& panel) const;
  // Reads the words of a tile's columns into `words`. Floats are made of elements plus their middle, whichever b has.
  loop::Stmt read_words(const loop::Buffer& words, const BlockPlace& place, const loop::Expr& word) const;
  // Sums products with elements of b block by block: the scale is applied to the sums of a block.
  loop::Stmt reduce_blocks(const loop::Buffer& acc, const loop::Buffer& row_offsets);
  // The same where a has bytes: integers are multiplied.
  loop::Stmt reduce_bytes(const loop::Buffer& acc, const loop::Buffer& row_offsets);
  // The same where words of b are in pairs of columns.
  loop::Stmt reduce_pairs(const loop::Buffer& acc, const loop::Buffer& row_offsets);
  // Returns the number of pairs of rows of a whole tile.
  int64_t pairs_of_rows() const { return (plan_.tile_m + 1) / 2; }
  // Returns copies of the bytes of a tile's rows into `own_rows_`, of their scales and of the sums of their groups, all in
  // pairs: [step / 8][pair][row][8], [group][pair][row][2].
  std::vector<loop::Stmt> pair_rows(const std::vector<loop::Expr>& base, const loop::Expr& row_tile);
  // Returns the steps `first` to `first` + 3 of words of b, each in a byte: in its highest bits where words hold signed
  // numbers, else plus the middle of elements.
  loop::Expr bytes_of_word(const loop::Expr& words, int64_t first) const;
  // Returns `times` the sum of group `group` of all rows' groups.
  loop::Expr sum_of_group(const loop::Expr& group, double times) const;
  // Returns the number of the row of a that has group `group` of all rows' groups. Requires Blocks::row_of_a.
  loop::Expr number_of_row(const loop::Expr& group) const;
  // Stores the columns of a tile as floats in `gathered_`.
  loop::Stmt widen_columns();
  // Sets the offsets of a tile's columns in b and its scales.
  void place_blocks(const loop::Expr& column_tile, const std::vector<loop::Expr>& positions);

  BlockSums block_sums() const;

  // Returns the loops around `body`, outermost first, which add to `acc`: in blocks if the sum is long.
  loop::Stmt sum_loops(const std::vector<TermLoop>& loops, int64_t inner_terms, const loop::Buffer& acc,
                       const std::function<loop::Stmt(const loop::Buffer& acc)>& body) const;
  // The same of products of f16: `body` adds to accumulators of f16, kHalfTerms terms at a time.
  loop::Stmt sum_halves(const std::vector<TermLoop>& loops, int64_t inner_terms, const loop::Buffer& acc,
                        const std::function<loop::Stmt(const loop::Buffer& acc)>& body) const;

  // Reads the columns of b at offset `from` into `columns`, from index `first` on.
  loop::Stmt read_columns(const loop::Buffer& columns, const loop::Expr& first, const loop::Expr& from,
                          const loop::Expr& first_column) const;
  loop::Expr sum_with(const loop::Expr& a, const loop::Expr& b, const loop::Expr& sum) const;

  // Sums windows that slide along the rows of tiles. The columns of b for a window's steps are in registers.
  // Each element of a is read once and used for all rows whose windows contain it.
  loop::Stmt reduce_windows(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                            const loop::Expr& b_base, const loop::Expr& first_column);

  // Returns one step of the sum. `element_of_a`: the element for a row, and for a column of the tile if a is
  // read in vectors.
  loop::Stmt step(const Steps& k, const loop::Buffer& acc,
                  const std::function<loop::Expr(loop::Expr, loop::Expr)>& element_of_a,
                  const loop::Expr& b_base, const loop::Expr& first_column);

  // Sums walk.steps_at_once steps along the last axis at a time, whose elements of a row of a are one vector.
  loop::Stmt reduce_steps_at_once(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                                  const loop::Expr& b_base, const loop::Expr& first_column);

  // Sums in blocks of steps along the last axis; the workgroup first fetches the block's rows of a into
  // shared memory.
  loop::Stmt reduce_shared(const loop::Buffer& acc, const loop::Expr& b_base, const loop::Expr& first_column);

  // Returns whether matrix units read the rows of a where they are: all tiles have all rows, at equal distances and aligned
  // as matrices have to be, for whole fetches of steps of b's dtype. Else workgroups fetch them to shared memory.
  bool loads_matrices_in_place() const;
  // Sums a whole tile by matrix units and stores it in `acc`. `first_row`: offset in a, of rows that are read in place.
  loop::Stmt reduce_matrices(const loop::Buffer& acc, const loop::Expr& b_base, const loop::Expr& first_row);
  // Returns an element of a as matrix units take it: of b's dtype, with the top bit of a byte flipped if the other sign.
  loop::Expr element_of_matrix(const loop::Expr& a) const;
  // Appends the loads of what is added to such sums of shifted elements of a (ContractionPlan::dot_shift), and returns where
  // each column has it.
  loop::Buffer cancel_shift(const loop::Expr& b_base, std::vector<loop::Stmt>& body) const;

  loop::Stmt each_sum(const loop::Buffer& acc, BinaryOp op,
                      const std::function<loop::Expr(const loop::Expr&)>& of_row);

  // Sums in parts; each part first computes its rows of a.
  loop::Stmt reduce_parts(const loop::Buffer& acc, const loop::Buffer& row_offsets, const loop::Expr& b_base,
                          const loop::Expr& first_column);

  loop::Stmt reduce(const loop::Buffer& acc, const loop::Buffer& row_offsets, const loop::Expr& b_base,
                    const loop::Expr& first_column);

  Context& c_;
  const Graph& g_;
  const Node& node_;
  const schedule::ContractionPlan& plan_;
  schedule::TileVectors whole_tile_;
  RegisterTile tile_;  // the current tile
  ValueId a_ = kNoValue, b_ = kNoValue;
  loop::Buffer a_buffer_, b_buffer_;
  DType accumulator_dtype_ = DType::kF32;
  DType term_dtype_ = DType::kF32;  // in which products are computed
  bool in_blocks_ = false;          // whether long float sums are added in blocks
  int lanes_ = 1;
  Dim rows_ = 1, columns_ = 1;
  loop::Expr begin_row_, end_row_;  // of the current block of rows; begin_row_ null: the first block
  bool partial_rows_ = false;
  std::optional<schedule::Slide> row_windows_;
  loop::Buffer scales_, zeros_;             // of a quantised b; zeros_ null: none
  std::vector<loop::Buffer> digits_;        // of a, where a has bytes, the most significant first
  int64_t base_ = 0;                        // of the digits
  int64_t factor_ = 1;                      // of group_sums_
  loop::Buffer row_scales_, group_sums_;    // of a's groups, where a has bytes; of rows, if Blocks::row_of_a
  loop::Expr row_tile_;                     // the number of the current tile of rows
  loop::Buffer row_groups_;                 // the first group of each of the current tile's rows of bytes
  loop::Buffer pair_scales_, pair_sums_;    // of the current tile's rows in pairs
  loop::Expr words_base_, scales_base_;     // offsets of the current tile's columns in b and in scales
  loop::Expr next_words_, next_scales_;     // the same of the next column tile
  const schedule::Slide* along_ = nullptr;  // windows along the rows of tiles, which share elements of a
  std::optional<int64_t> tile_number_;      // number of the current row tile, if it is known
  std::vector<loop::Expr> positions_;       // of the current tile on the plan's axes
  loop::Buffer own_rows_;                   // the current rows of a, if they are gathered
  loop::Buffer gathered_;                   // the current column of b, if it was gathered
  std::optional<SharedRows> shared_;        // of the current tile
  std::optional<StagedImage> staged_;       // the current im2row buffer of a or b, if it is staged
  const SumInParts* parts_ = nullptr;       // the parts of the current sum
  loop::Expr staged_line_;                  // staged b: the current row of results, from the block's first
};

}  // namespace quernel::lower
