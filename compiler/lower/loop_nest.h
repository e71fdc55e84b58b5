// What the lowering of every group kind shares: a kernel under construction, vector loops with tails, and the
// split of outer axes into workgroups and loops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lower/evaluate.h"
#include "targets/target.h"

namespace quernel::lower {

// Inputs and results of lowering one item.
struct Context {
  const schedule::Schedule& schedule;
  const schedule::Item& item;
  const schedule::Group& group;
  const Target& target;
  KernelBuffers buffers;
  loop::Kernel kernel;
  LaunchSymbols symbols, probed;  // of the kernel; of dry runs, whose expressions are discarded
  Dim workgroups = 1;
  // The most iterations of one invocation's loops, where count_iterations would find too many.
  std::optional<Dim> iterations;

  Evaluator evaluator() { return Evaluator(schedule, group, buffers, symbols); }
  Evaluator dry_evaluator() { return Evaluator(schedule, group, buffers, probed); }
  const Graph& graph() const { return schedule.graph; }
};

loop::Var index_var(const std::string& name);
inline loop::Expr index(int64_t value) { return loop::const_index(value); }

// Returns a local buffer, which the caller still has to allocate. Its name begins with `name`.
loop::Buffer local_buffer(const char* name, DType dtype, int64_t size, loop::Scope scope);

// Appends a let of `value` to `body` and returns a reference to it. Its name begins with `name`.
loop::Expr named(std::vector<loop::Stmt>& body, const char* name, loop::Expr value);

// Runs `body(i)` for each i below `extent`, in order.
loop::Stmt serial_loop(const char* name, loop::Expr extent,
                       const std::function<loop::Stmt(loop::Expr)>& body);

// Runs an axis of `extent` (constant or not) in vectors of `lanes`. `body(position)` returns the scalar
// statements of one position. The tail is predicated, or scalar if the target has no masks. `steps`: kind of
// the loop over vectors; kUnrolled if each vector has separate registers, which a scalar tail could not
// address.
loop::Stmt vector_loop(const std::string& name, const loop::Expr& extent, int lanes, const Target& target,
                       const std::function<loop::Stmt(loop::Expr)>& body,
                       loop::AxisKind steps = loop::AxisKind::kSerial);

// Splits axes of `extents` (outermost first) into workgroups and serial loops, so that a workgroup does about
// `target_work` elements. `inner_work`: elements of the work inside of these axes. Calls `body(positions)`
// once. With a `target_work` of Target::kAllWork all loops are serial.
loop::Stmt outer_loops(Context& context, const Shape& extents, int64_t inner_work, int64_t target_work,
                       const std::function<loop::Stmt(const std::vector<loop::Expr>&)>& body);

// A loop nest with its own workgroups.
struct GridPart {
  loop::Stmt body;
  std::vector<loop::GridAxis> grid;
  Dim workgroups = 1;
};
// Moves the grid that `body` has added to the kernel into the result.
GridPart take_grid(Context& context, loop::Stmt body);
// Gives the kernel one grid for all parts; workgroups are numbered part by part. A single part keeps its
// grid. Parts of one workgroup each run in sequence in one workgroup.
loop::Stmt join_grids(Context& context, std::vector<GridPart> parts);

// Returns the dtype's lowest or highest value: infinities for floats.
loop::Expr extreme_value(DType dtype, bool lowest);

// A block of `most` rows of a value, from row `begin` on. Rows from `end` on do not exist; null: all exist.
// `outer`: positions along the value's dims before the rows' dim.
struct RowBlock {
  std::vector<loop::Expr> outer;
  loop::Expr begin, end;
  int64_t most = 0;
};
// `most` column tiles from `first` on. `first` null: all column tiles.
struct TileRange {
  loop::Expr first;
  int64_t most = 0;
};
// Returns the group's contraction for one block of rows, as part of a kernel. `axes`: for each dim of the
// value up to the rows' dim, the contraction's axis that walks it, or -1.
loop::Stmt contract_rows(Context& context, const RowBlock& block, const std::vector<int>& axes,
                         const TileRange& columns = {});
// A contraction whose operand a is computed in parts of `width` steps of its only reduction axis.
struct SumInParts {
  int64_t width = 0;
  // Returns the statements that fill a's buffer, rows of `width`, with part `part`. The context's symbols are
  // the kernel's.
  std::function<loop::Stmt(Context& context, const loop::Expr& part)> make;
  // `scale`: the factor for a row's accumulators before a part is added. `divisor`: the final divisor of the
  // row.
  std::function<loop::Expr(const loop::Expr&row)> scale, divisor;
};
// Returns the same for a block of one tile, part by part.
loop::Stmt contract_rows_in_parts(Context& context, const RowBlock& block, const std::vector<int>& axes,
                                  const SumInParts& parts);
// Returns the group's stages for one block of rows.
loop::Stmt stages_of_rows(Context& context, const RowBlock& block);

// Each lowers one kind of group into the context's kernel.
void lower_map(Context& context);
void lower_reduce(Context& context);
void lower_contract(Context& context);
void lower_winograd(Context& context);
void lower_winograd_transform(Context& context);
void lower_cat(Context& context);
void lower_rows(Context& context);
void lower_attention(Context& context);
void lower_streamed_attention(Context& context);
void lower_scan(Context& context);
void lower_sort(Context& context);
void lower_scatter(Context& context);

// Estimates the instructions that the group's elementwise nodes take for one element.
int elementwise_weight(const Context& context);

}  // namespace quernel::lower
