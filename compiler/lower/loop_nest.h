// Pieces that the lowering of every group kind shares: a kernel under construction, vector loops with tails,
// and the split of outer axes into workgroups and loops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lower/evaluate.h"
#include "targets/target.h"

namespace quernel::lower {

// What lowering one item needs and builds.
struct Context {
  const schedule::Schedule& schedule;
  const schedule::Item& item;
  const schedule::Group& group;
  const Target& target;
  KernelBuffers buffers;
  loop::Kernel kernel;
  LaunchSymbols symbols, probed;  // of the kernel; of dry runs, whose expressions are thrown away
  Dim workgroups = 1;

  Evaluator evaluator() { return Evaluator(schedule, group, buffers, symbols); }
  Evaluator dry_evaluator() { return Evaluator(schedule, group, buffers, probed); }
  const Graph& graph() const { return schedule.graph; }
};

loop::Var index_var(const std::string& name);
inline loop::Expr index(int64_t value) { return loop::const_index(value); }

// A buffer of the kernel's own, still to be allocated; its name begins with `name`.
loop::Buffer local_buffer(const char* name, DType dtype, int64_t size, loop::Scope scope);

// `value` under a name of its own that begins with `name`: a let at the end of `body`.
loop::Expr named(std::vector<loop::Stmt>& body, const char* name, loop::Expr value);

// `body(i)` for i below `extent`, one after another.
loop::Stmt serial_loop(const char* name, loop::Expr extent,
                       const std::function<loop::Stmt(loop::Expr)>& body);

// Statements made by `body` for one position of an axis of `extent` (an index, constant or not), run in
// vectors of `lanes` with a predicated tail (a scalar tail where the target has no masks). `body(position)`
// returns the scalar statements of a position. `steps`: the loop over vectors, kUnrolled where each has
// registers of its own, which a scalar tail could not address.
loop::Stmt vector_loop(const std::string& name, const loop::Expr& extent, int lanes, const Target& target,
                       const std::function<loop::Stmt(loop::Expr)>& body,
                       loop::AxisKind steps = loop::AxisKind::kSerial);

// Splits `axes` (outermost first, extents) into workgroups and serial loops so that a workgroup does about
// `target_work` elements, given that the innermost work (not part of `axes`) is `inner_work`.
// `body(positions)` is called once. A target of kNoWorkgroups makes serial loops only.
inline constexpr int64_t kNoWorkgroups = INT64_MAX;
loop::Stmt outer_loops(Context& context, const Shape& extents, int64_t inner_work, int64_t target_work,
                       const std::function<loop::Stmt(const std::vector<loop::Expr>&)>& body);

// A loop nest with workgroups of its own.
struct GridPart {
  loop::Stmt body;
  std::vector<loop::GridAxis> grid;
  Dim workgroups = 1;
};
// Takes the grid that `body` has added to the kernel out of it.
GridPart take_grid(Context& context, loop::Stmt body);
// Gives the kernel one grid for all parts, whose workgroups are numbered one part after the other. A single
// part keeps its own grid; parts of one workgroup each run one after the other in one.
loop::Stmt join_grids(Context& context, std::vector<GridPart> parts);

// What the loads, stores and guards of a kernel are at the given indices over axes of these extents.
using AccessProbe = std::function<std::vector<IndexExpr>(const std::vector<std::vector<IndexExpr>>& indices,
                                                         const Shape& extents)>;

// Axes of known extent whose digits `accesses`, what `probe` gives for `indices`, walk become two, where
// fewer digits are left so; the inner ones have at least `least` elements. Rewrites `indices`; what `probe`
// is asked last is what is returned.
Shape split_axes(Shape extents, std::vector<std::vector<IndexExpr>>& indices, int64_t least,
                 std::vector<IndexExpr> accesses, const AccessProbe& probe);

// Adjacent axes that every access walks as one are merged. Returns the new extents, and rewrites `indices`
// (expressions over the old axes) to expressions over the new ones. `probe(indices, extents)` returns the
// accesses those indices lead to. Axes are merged only within [begin, end) ranges of `classes`.
Shape merge_axes(Shape extents, const std::vector<int>& classes, std::vector<std::vector<IndexExpr>>& indices,
                 std::vector<int>& merged_classes, const AccessProbe& probe);

// Stride of an access along an axis: its coefficient, or nullopt where it is not affine in it.
std::optional<Dim> stride_along(const IndexExpr& access, int axis, int axes);

// The widest dtype that the kernel loads, stores or computes with, 64-bit integers aside; at least 4 bytes.
DType widest_dtype(const Context& context);

// The dtype's lowest or highest value: infinities for floats.
loop::Expr extreme_value(DType dtype, bool lowest);

// Rows of a value, in blocks: those from `begin` on, `most` in all, of which only the ones before `end` exist
// (null: all do). `outer`: positions along the value's dims before the rows'.
struct RowBlock {
  std::vector<loop::Expr> outer;
  loop::Expr begin, end;
  int64_t most = 0;
};
// Column tiles from `first` on, `most` in all; null: all that there are.
struct TileRange {
  loop::Expr first;
  int64_t most = 0;
};
// The group's contraction or stages for one block of rows, as part of a kernel. `axes`: per dim of the value
// up to the rows', the contraction's axis that walks it, or -1.
loop::Stmt contract_rows(Context& context, const RowBlock& block, const std::vector<int>& axes,
                         const TileRange& columns = {});
// A contraction whose rows of a come in parts of `width` steps of its one reduction axis.
struct SumInParts {
  int64_t width = 0;
  // What puts part `part` into a's buffer, rows of `width`, in a context whose symbols are the kernel's.
  std::function<loop::Stmt(Context& context, const loop::Expr& part)> make;
  // What a row's sums so far are multiplied by before the part is added, and what they are divided by at
  // last.
  std::function<loop::Expr(const loop::Expr&row)> scale, divisor;
};
// The same for a block of one tile.
loop::Stmt contract_rows_in_parts(Context& context, const RowBlock& block, const std::vector<int>& axes,
                                  const SumInParts& parts);
loop::Stmt stages_of_rows(Context& context, const RowBlock& block);

// Each fills in the context's kernel.
void lower_map(Context& context);
void lower_reduce(Context& context);
void lower_contract(Context& context);
void lower_winograd(Context& context);
void lower_winograd_transform(Context& context);
void lower_cat(Context& context);
void lower_rows(Context& context);
void lower_attention(Context& context);
void lower_scan(Context& context);
void lower_sort(Context& context);
void lower_scatter(Context& context);

// What the group's elementwise nodes take for one element, in instructions, roughly.
int elementwise_weight(const Context& context);

}  // namespace quernel::lower
