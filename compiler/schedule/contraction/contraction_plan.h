// The tiling of a contraction as data, with what can be derived from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/index_map.h"
#include "graph/ir.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/contraction/tile_walk.h"
#include "schedule/contraction/tiling.h"
#include "targets/target.h"

namespace quernel::schedule {

// Depthwise sums of up to this many steps (3x3) are fully unrolled.
constexpr int64_t kUnrolledSteps = 9;
// Terms that one accumulator of f16 adds: 16 products of f16 are off by at most 16 * 2^-11 of the sum of their magnitudes.
constexpr int64_t kHalfTerms = 16;
constexpr int64_t kMostWordsAtOnce = 4;  // of a sum of words, unrolled where registers are few

// How windows slide over one dim of an image. At output position p and window position k, the element is p *
// step + k * window_step; consecutive elements are `stride` apart in memory. Elements outside [begin, end)
// are zero.
struct Slide {
  int position = -1, window = -1;  // axes of the plan; window -1: a window of one element
  int64_t step = 1, window_step = 0, stride = 0;
  int64_t begin = 0, end = 0;
};

// A constant of one word per column of the result. `read_as`: the constant, or the value that it is expanded to.
struct ColumnConstant {
  ValueId constant = kNoValue, read_as = kNoValue;
};

// The contraction's axes, merged as far as the strides allow, with roles. Strides are in elements; roles are
// indices into `axes`. "b" is the operand that is read in vectors and shared by the rows of a tile. "a" is
// the other one: it is broadcast, or, if elementwise, read in rows.
struct ContractionPlan {
  struct Axis {
    std::string name;
    Dim extent = 1;
    bool reduction = false;
    Dim a = 0, b = 0,
        out = 0;               // strides; b is unused if it is packed and the axis has several members
    std::vector<int> members;  // the contraction's axes merged into it, outermost first
  };
  std::vector<Axis> axes;
  std::vector<IndexExpr> axis_values;  // per axis of the contraction: its value over `axes`
  Dim a_offset = 0, b_offset = 0;
  bool swapped = false;      // "a" is the contraction's second operand
  int vector_axis = -1;      // output axis along which vectors run; -1: no axis can
  bool elementwise = false;  // a is read in vectors, too (depthwise); b may be constant along them
  // The im2row buffer, for windows that reach beyond the image or skip elements of its rows. A block of rows
  // first gathers the elements it needs of the operand that vectors slide over ("a" if elementwise, else
  // "b"). Each row is stored in `columns.step` lines, so that vectors read contiguous elements.
  struct Image {
    Slide rows, columns;
    std::vector<int> planes;  // further reduction axes: images that a sum reads, each in separate lines
  };
  std::optional<Image> staged;
  // If a is elementwise and contiguous along vectors: how windows slide along the one axis of rows and along
  // grid axes. Only elements inside the image are summed. Rows share the elements that several of their
  // windows contain.
  std::vector<Slide> windows;
  bool integers = false;  // the accumulators are integers
  bool packed = false;    // "b" is a constant, packed to [grid axes][panel][reduction][panel_n]
  // Elements per word. 4: a step of the sum takes four 8-bit neighbours along the last reduction axis as a
  // 32-bit word; "b" is packed to [grid axes][panel][reduction, its last axis / 4][panel_n][4]. 2: two bf16
  // likewise. Else 1.
  int dot = 1;
  // Elements past the end of "a" that the last word of a sum reads and multiplies by zero: the workspace has room for
  // them. 0: such a word is combined from the elements that exist.
  int slack = 0;
  // A step of the sum multiplies two vectors of `dot` 8-bit neighbours along the last reduction axis and adds all
  // products to one scalar sum; "b" is packed to [grid axes][panel][reduction, its last axis / dot][panel_n][dot].
  bool sums_lanes = false;
  // A tile's rows of "a" are first gathered in scratch: all reduction axes are one run of elements, there and in "b".
  bool gathers_rows = false;
  // Two rows of a tile meet two columns in a product (Target::has_dot_2x2): they are first copied to scratch in pairs.
  bool pairs_rows = false;
  // 128 or -128, added to the 8-bit elements of "a" if the target's int8 dot product needs the other
  // signedness; else 0. The accumulators start with the values that cancel this: a row of words before each
  // panel. For matrix units, the row has four bytes of each column's value, all columns' lowest ones first.
  int dot_shift = 0;
  // Constants that the epilogue reads, such as biases and multipliers: each panel of words ends with a row of each one,
  // so that the pointer to the panel leads to them.
  std::vector<ColumnConstant> column_constants;
  // On a GPU with matrix units: these sum tiles of products (Target::matrix_steps). Bytes of `dot` neighbours along the last
  // reduction axis, as many as a product has steps, lie together: "b" is packed as where lanes are summed.
  bool matrices = false;
  // Products of f16 are added in f16, kHalfTerms at a time (Target::adds_f16).
  bool half_sums = false;
  // On a GPU with shared memory: the number of steps along the sum's last axis for which the workgroup
  // fetches "a" at a time, each element once. Tiles of few rows read theirs in place (shares_rows). 0: all
  // tiles do.
  int shared_steps = 0;
  // On a GPU: "a" is already in shared memory, as an attention kernel's block.
  bool rows_in_workgroup = false;
  // Operand (0, 1) to be copied first, to be contiguous along the vector axis; -1: none.
  int copy_operand = -1;
  // Quantised b: words of `bits` bits a step, packed to [grid axes][panel][reduction, its last axis / steps of a
  // word][panel_n]. Byte i of a word holds the steps i, i + 4 ... from its lowest bits on, plus 2^(bits - 1) or as signed
  // numbers. Scales, and zero points if there are any, are packed to [grid axes][panel][reduction axes but the
  // last][block][panel_n].
  struct Blocks {
    QuantizedOperand format;
    int64_t steps = 0;  // of the last reduction axis, that share a scale
    // Of a, which dequantize_rows gives: the steps that share a scale, that is `steps`, or more where there is one block.
    // Words are then multiplied as integers. 0: a has floats.
    int64_t group_of_a = 0;
    int digits_of_a = 1;  // an element of a is that many bytes
    // Elements of a row of a, where it has one scale, and sums of its groups are integers; 0: each group has a scale.
    int64_t row_of_a = 0;
    // The most int8 dot products that accumulate in the 16-bit halves of words before these could overflow
    // (plan_contraction.h); 0: accumulators are whole words.
    int64_t words_in_halves = 0;
    // Whether words hold signed numbers, for dot products that take bytes of b as signed.
    bool signed_elements = false;
    // Bytes of a row of a that are loaded together: a word, or four where dot products take any word of a register.
    int64_t bytes_at_once = 4;
    // Words are in pairs of columns: of four columns (a vector) and eight steps, step 4 h + i of column 2 j + l is where
    // step 4 j + i of column 2 l + h would be, so that two neighbouring words have eight steps of a column.
    bool pairs = false;
    int64_t per_word() const { return 32 / format.bits; }
  };
  std::optional<Blocks> blocks;
  // Panels of a quantised b with odd numbers lie behind all others: a tile that reads two panels side by side then reads
  // two streams, each without gaps, which hardware prefetchers follow. A C program with such a loop read 226 MB at 42
  // GB/s, not 18 (Zen 5).
  bool odd_panels_apart = false;
  // On a GPU: the columns of a lane in neighbouring vectors of a panel lie together (columns_of_lane), so that an
  // invocation loads them at once.
  bool groups_columns = false;
  // The panel of a tile's columns is first widened in scratch, for a block of rows.
  bool widens_panels = false;
  std::vector<int> row_axes;   // output axes that "b" does not depend on: flattened into the rows of a tile
  std::vector<int> grid_axes;  // other output axes
  std::vector<int> reduction_axes;
  Shape member_extents, member_b_strides;  // per axis of the contraction
  int lanes = 1;                           // per vector
  int tile_m = 1;                          // rows of a register tile
  int tile_v = 1;                          // vectors of a register tile
  int panel_v = 1;                         // vectors per panel: a multiple or a divisor of tile_v
  // Panels that a tile reads side by side if it has all rows: each panel is then read once, which takes as long as memory
  // needs to give it, and hardware prefetchers follow two streams faster than one.
  int panels_at_once = 1;
  TileOrder order = TileOrder::kRows;
  int64_t line_rows = 0;   // rows on a line of an image, which loops count apart; 0: no lines
  bool backwards = false;  // the outermost loop over tiles begins at its end (overlap.h)
  int64_t group_work = Tiling::kGroupWork;  // least multiply-adds per workgroup
  int64_t tile_n() const { return int64_t{lanes} * tile_v; }
  int64_t panel_n() const { return int64_t{lanes} * panel_v; }
  std::string reason;  // why this tile, for people
  TileWalk walk;
};

Dim product(const std::vector<ContractionPlan::Axis>& axes, const std::vector<int>& which);
Dim row_count(const ContractionPlan& plan);
Dim reduction_count(const ContractionPlan& plan);
Dim column_tile_count(const ContractionPlan& plan);
Dim panel_count(const ContractionPlan& plan);
// Returns the rows of a panel, each of panel_n elements or words.
Dim panel_rows(const ContractionPlan& plan);
// Returns whether the words of a packed "b" are `dot` bytes, and not 32 bits.
inline bool packs_bytes(const ContractionPlan& plan) {
  return plan.sums_lanes || (plan.matrices && plan.dot > 1);
}
// Returns the rows of scales of a panel of a quantised b, each of panel_n elements.
Dim scale_rows(const ContractionPlan& plan);
// Returns the stride of grid axis `axis` in the packed operand, in elements, where panels have `rows` rows; 0 if the
// operand does not depend on it.
Dim packed_stride(const ContractionPlan& plan, int axis, const Dim& rows);

// Returns how many columns of a lane lie together in panels of `panel_v` vectors: 1, 2 or 4, a divisor of it. Column l of
// vector v is then at (v / n * lanes + l) * n + v % n of a panel's row.
int columns_of_lane(const ContractionPlan& plan, int panel_v);
inline int columns_of_lane(const ContractionPlan& plan) { return columns_of_lane(plan, plan.panel_v); }

Tiling tiling_of(const ContractionPlan& plan);
// Gives the plan another tiling: one of `tilings`, with any order and any group_work. Panels become as wide
// as the tile, or as its part (panels_at_once), unless the tile fits panels of `panel_v` vectors.
void set_tiling(ContractionPlan& plan, const Tiling& tiling, int panel_v = 0);
// Returns whether tiles of `v` vectors can cover `vectors` vectors in all without crossing panels of `panel_v`.
bool fits_panels(const ContractionPlan& plan, int v, int panel_v, double vectors);

// Returns the number of steps of a sum whose elements of a row of a are loaded as one vector, for products take any of its
// lanes; 1: each step loads its own element.
int64_t steps_at_once(const ContractionPlan& plan, const Target& target);
// Returns whether results are contiguous along the rows of tiles and not along their columns. Tiles are then
// transposed before they are stored.
bool transposes_tiles(const ContractionPlan& plan, const Target& target);
// Returns the last column tile if it is a tail tile with separate code.
std::optional<TileVectors> tail_columns(const ContractionPlan& plan, const Target& target);
// Returns how windows slide along the rows of a tile, which share elements of a; null if none do.
const Slide* windows_along_rows(const ContractionPlan& plan);
// Returns how the innermost reduction axis slides along the rows of a tile, by strides alone, where all that windows
// contain is in memory; nullopt if it does not.
std::optional<Slide> row_windows(const ContractionPlan& plan);
// Returns whether the rows of a tile of `m` rows lie at one distance from each other in a, wherever the tile lies
// (the last one aside).
bool rows_are_even(const ContractionPlan& plan, int m);
// Returns whether workgroups keep the part of a that a tile needs in shared memory, `shared_steps` at a time.
bool shares_rows(const ContractionPlan& plan);
// Returns whether the elements of a row lie together in shared memory, and not those of a step.
inline bool shares_by_rows(const ContractionPlan& plan) { return plan.matrices && plan.dot > 1; }
// Returns the elements from one step to the next in shared memory: the tile's rows, rounded up to whole
// fetches, plus a gap so that steps begin in different banks. From one row to the next if shares_by_rows.
int64_t shared_pitch(const ContractionPlan& plan);

// Dims in the form that estimates use.
inline bool is_zero(const Dim& d) { return d == Dim(0); }
inline bool is_one(const Dim& d) { return d == Dim(1); }
inline double size_of(const Dim& d) { return static_cast<double>(d.estimate()); }

}  // namespace quernel::schedule
