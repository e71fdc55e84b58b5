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

  Evaluator evaluator() const { return Evaluator(schedule, group, buffers); }
  const Graph& graph() const { return schedule.graph; }
};

loop::Var index_var(const std::string& name);
inline loop::Expr index(int64_t value) { return loop::const_index(value); }

// Statements made by `body` for one position of an axis of `extent`, run in vectors of `lanes` with a
// predicated tail (a scalar tail where the target has no masks). `body(position)` returns the scalar
// statements of a position.
loop::Stmt vector_loop(const std::string& name, int64_t extent, int lanes, const Target& target,
                       const std::function<loop::Stmt(loop::Expr)>& body);

// Splits `axes` (outermost first, extents) into workgroups and serial loops so that a workgroup does about
// `target_work` elements, given that the innermost work (not part of `axes`) is `inner_work`.
// `body(positions)` is called once.
loop::Stmt outer_loops(loop::Kernel& kernel, const std::vector<int64_t>& extents, int64_t inner_work,
                       int64_t target_work,
                       const std::function<loop::Stmt(const std::vector<loop::Expr>&)>& body);

// Adjacent axes that every access walks as one are merged. Returns the new extents, and rewrites `indices`
// (expressions over the old axes) to expressions over the new ones. `probe(indices, extents)` returns the
// accesses those indices lead to. Axes are merged only within [begin, end) ranges of `classes`.
std::vector<int64_t> merge_axes(
    std::vector<int64_t> extents, const std::vector<int>& classes,
    std::vector<std::vector<IndexExpr>>& indices, std::vector<int>& merged_classes,
    const std::function<std::vector<IndexExpr>(const std::vector<std::vector<IndexExpr>>&,
                                               const std::vector<int64_t>&)>& probe);

// Stride of an access along an axis: its coefficient, or nullopt where it is not affine in it.
std::optional<int64_t> stride_along(const IndexExpr& access, int axis, int axes);

// The dtype's lowest or highest value: infinities for floats.
loop::Expr extreme_value(DType dtype, bool lowest);

loop::Kernel lower_map(Context context);
loop::Kernel lower_reduce(Context context);
loop::Kernel lower_contract(Context context);
loop::Kernel lower_cat(Context context);
loop::Kernel lower_scan(Context context);
loop::Kernel lower_sort(Context context);
loop::Kernel lower_scatter(Context context);

}  // namespace quernel::lower
