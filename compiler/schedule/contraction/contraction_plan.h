// The tiling of a contraction as data, and what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/index_map.h"
#include "graph/ir.h"
#include "schedule/contraction/tiling.h"
#include "targets/target.h"

namespace quernel::schedule {

// Depthwise sums of up to so many steps, 3x3, are unrolled whole.
constexpr int64_t kUnrolledSteps = 9;

// How windows slide over one dim of an image: position p of the output and position k of the window see element
// p * step + k * window_step, which lies `stride` after the one before. Elements outside of [begin, end) are
// zeros.
struct Slide {
  int position = -1, window = -1;  // axes of the plan; no window: one of one element
  int64_t step = 1, window_step = 0, stride = 0;
  int64_t begin = 0, end = 0;
};

// The contraction's axes, merged as far as the strides allow, with roles. Strides are in elements; roles are
// indices into `axes`. "b" is the operand that is read in vectors and shared by the rows of a tile. "a" is the
// other one: it is broadcast or, where elementwise, read in rows.
struct ContractionPlan {
  struct Axis {
    std::string name;
    Dim extent = 1;
    bool reduction = false;
    Dim a = 0, b = 0,
        out = 0;  // strides; b's means nothing where b is packed and the axis has several members
    std::vector<int> members;  // the contraction's axes merged into it, outermost first
  };
  std::vector<Axis> axes;
  std::vector<IndexExpr> axis_values;  // per axis of the contraction: its value over `axes`
  Dim a_offset = 0, b_offset = 0;
  bool swapped = false;      // "a" is the contraction's second operand
  int vector_axis = -1;      // output axis along which vectors run; -1: none can
  bool elementwise = false;  // a is read in vectors, too (depthwise); b may be the same along all of them
  // The im2row buffer, for windows that reach beyond the image or step over elements of its rows: a block of rows
  // first gathers in scratch what it needs of the operand that vectors slide over ("a" where elementwise, else
  // "b"). Each row lies in `columns.step` lines, so that vectors read contiguous elements.
  struct Image {
    Slide rows, columns;
    std::vector<int> planes;  // further reduction axes: images that a sum sees, each in separate lines
  };
  std::optional<Image> staged;
  // Where a is elementwise and contiguous along vectors: how windows slide along the one axis of rows and along
  // grid axes. Only what sees elements is summed. Rows share the elements that several of their windows see.
  std::vector<Slide> windows;
  bool integers = false;  // the accumulators are integers
  bool packed = false;    // "b" is a constant, packed to [grid axes][panel][reduction][panel_n]
  // 4: a step of the sum takes four bytes that are neighbours along the last reduction axis, as words of 32 bits;
  // packed to [grid axes][panel][reduction, its last axis / 4][panel_n][4]. 2: two bf16 likewise. Else 1.
  int dot = 1;
  // What is added to the bytes of "a", 128 or -128, where the target's dot product wants the other signedness. The
  // accumulators begin with what takes that away again: a row of words before each panel.
  int dot_shift = 0;
  // On a GPU with shared memory: how many steps along the sum's last axis the workgroup fetches of "a" at a time,
  // each element once. Tiles of few rows read theirs in place (shares_rows). 0: all tiles do.
  int shared_steps = 0;
  bool rows_in_workgroup = false;  // on a GPU: "a" is in shared memory already, an attention kernel's block
  int copy_operand = -1;       // operand (0, 1) to be copied first, to be contiguous along the vector axis
  std::vector<int> row_axes;   // output axes that "b" does not depend on: flattened into the rows of a tile
  std::vector<int> grid_axes;  // other output axes
  std::vector<int> reduction_axes;
  Shape member_extents, member_b_strides;  // per axis of the contraction
  int lanes = 1;                           // of one vector
  int tile_m = 1;                          // rows of a register tile
  int tile_v = 1;                          // vectors of a register tile
  int panel_v = 1;                         // vectors of a panel: a multiple of tile_v, or a divisor
  TileOrder order = TileOrder::kRows;
  int64_t group_work = Tiling::kGroupWork;  // multiply-adds of a workgroup, at least
  int64_t tile_n() const { return int64_t{lanes} * tile_v; }
  int64_t panel_n() const { return int64_t{lanes} * panel_v; }
  std::string reason;  // why this tile, for people
};

Dim product(const std::vector<ContractionPlan::Axis>& axes, const std::vector<int>& which);
Dim row_count(const ContractionPlan& plan);
Dim reduction_count(const ContractionPlan& plan);
Dim column_tile_count(const ContractionPlan& plan);
Dim panel_count(const ContractionPlan& plan);
// Rows of a panel, each of panel_n elements or words.
Dim panel_rows(const ContractionPlan& plan);
// Stride of grid axis `axis` in the packed operand, in elements; 0 where it does not depend on it.
Dim packed_stride(const ContractionPlan& plan, int axis);

Tiling tiling_of(const ContractionPlan& plan);
// Gives the plan another tiling: one of `tilings`, in any order and with any work of a group. Panels become as
// wide as the tile, unless panels of `panel_v` vectors fit.
void set_tiling(ContractionPlan& plan, const Tiling& tiling, int panel_v = 0);
// Whether tiles of `v` vectors walk panels of `panel_v`, for that many vectors in all, without leaving them.
bool fits_panels(int v, int panel_v, double vectors);

// Whether results are contiguous along the rows of tiles and not along their columns, so that tiles are
// transposed before they are stored.
bool transposes_tiles(const ContractionPlan& plan, const Target& target);
// The vectors of a row of a register tile: whole ones, then perhaps a short one.
struct TileVectors {
  int vectors = 0, short_lanes = 0;
  bool operator==(const TileVectors&) const = default;
};
// The last tile of columns, where it has fewer than the others and gets separate code.
std::optional<TileVectors> tail_columns(const ContractionPlan& plan, const Target& target);
// How windows slide along the rows of a tile, which share what they see of a; null where none do.
const Slide* windows_along_rows(const ContractionPlan& plan);
// Whether workgroups hold in shared memory what a tile needs of a, `shared_steps` at a time.
bool shares_rows(const ContractionPlan& plan);
// Elements from one step to the next in shared memory: the tile's rows, rounded up to whole fetches, and a gap so
// that steps begin in different banks.
int64_t shared_pitch(const ContractionPlan& plan);

// Dims as estimates take them.
inline bool is_zero(const Dim& d) { return d == Dim(0); }
inline bool is_one(const Dim& d) { return d == Dim(1); }
inline double size_of(const Dim& d) { return static_cast<double>(d.estimate()); }

}  // namespace quernel::schedule
