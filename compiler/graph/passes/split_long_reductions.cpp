// Long reductions in two steps, or more: parts of the reduced elements, each a result of its own, which
// workgroups share, then the parts' results. A part is short enough for one workgroup, and the loops of a
// kernel stay short.
#include <algorithm>
#include <limits>
#include <optional>

#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// What one reduction has its kernel do.
struct Work {
  int64_t terms = 1;     // of each result
  int64_t together = 1;  // results that a workgroup computes side by side, along the innermost dim
  int64_t workgroups = 1;
};

bool contains(const std::vector<int64_t>& axes, size_t d) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
}

std::optional<Work> work_of(const Shape& shape, const std::vector<int64_t>& axes,
                            const ReductionLimits& limits) {
  Work work;
  Dim terms = 1, results = 1;
  for (size_t d = 0; d < shape.size(); ++d) (contains(axes, d) ? terms : results) *= shape[d];
  if (!terms.is_const() || terms.value() < 2 * limits.fewest_terms) return std::nullopt;
  work.terms = terms.value();
  for (size_t d = shape.size(); d-- > 0 && !contains(axes, d) && work.together == 1;)
    work.together = std::clamp<int64_t>(shape[d].estimate(), 1, limits.most_together);
  work.workgroups = std::max<int64_t>(results.estimate() / work.together, 1);
  return work;
}

// The value that changes nothing, where the op has one for floats.
std::optional<double> identity(OpKind op, DType dtype) {
  const double inf = std::numeric_limits<double>::infinity();
  if (op == OpKind::k_reduce_sum) return 0;
  if (op == OpKind::k_reduce_prod) return 1;
  if (op == OpKind::k_reduce_max && is_float(dtype)) return -inf;
  if (op == OpKind::k_reduce_min && is_float(dtype)) return inf;
  return std::nullopt;
}

// The part's size that divides `extent`, near `wanted`; 0: none.
int64_t divisor_near(int64_t extent, int64_t wanted) {
  for (int64_t d = wanted; d <= 2 * wanted && d < extent; ++d)
    if (extent % d == 0) return d;
  for (int64_t d = wanted - 1; d >= wanted / 2 && d > 1; --d)
    if (extent % d == 0) return d;
  return 0;
}

class Splitter {
 public:
  Splitter(GraphBuilder& build, OpKind op, const ReductionLimits& limits)
      : build_(build), op_(op), limits_(limits) {}

  bool splits(const Shape& shape, const std::vector<int64_t>& axes) const {
    std::optional<Work> work = work_of(shape, axes, limits_);
    if (!work) return false;
    bool row = axes == std::vector<int64_t>{static_cast<int64_t>(shape.size()) - 1};
    if (row && work->terms <= limits_.longest_row)
      return false;  // which may share a kernel with other stages
    int64_t of_group = work->terms * work->together;
    bool alone =
        of_group >= limits_.least_shared / work->workgroups && work->workgroups < limits_.enough_workgroups;
    return alone || work->terms > limits_.most_terms || of_group > limits_.most_work;
  }

  // `x` reduced along the axes, which disappear.
  ValueId reduce(ValueId x, std::vector<int64_t> axes) {
    const Shape shape = build_.graph().shape(x);
    if (!splits(shape, axes)) return build_.reduce(op_, x, std::move(axes), false);
    const Work work = *work_of(shape, axes, limits_);
    const int64_t terms = std::max(limits_.fewest_terms, limits_.part_work / work.together);
    // The innermost axes belong to a part whole, one in pieces, the others not at all.
    int64_t inner = 1;
    std::vector<int64_t> first, second;
    size_t at = axes.size();
    while (at > 0 && inner * shape[axes[at - 1]].value() <= terms) inner *= shape[axes[--at]].value();
    Shape pieces = shape;
    int64_t piece = 0;
    auto split_axis = at > 0 ? static_cast<size_t>(axes[at - 1]) : 0;
    if (at > 0 && terms / inner >= 2) {
      const int64_t extent = shape[split_axis].value();
      piece = divisor_near(extent, terms / inner);
      if (piece == 0) {
        std::optional<double> fill = identity(op_, build_.graph().dtype(x));
        if (!fill) return build_.reduce(op_, x, std::move(axes), false);
        piece = terms / inner;
        Shape none(shape.size(), 0), after = none;
        after[split_axis] = (extent + piece - 1) / piece * piece - extent;
        x = build_.pad(x, none, after, PadMode::kConstant, *fill);
      }
      pieces[split_axis] = (extent + piece - 1) / piece;
      pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(split_axis) + 1, Dim(piece));
      x = build_.reshape(x, pieces);
      first.push_back(static_cast<int64_t>(split_axis) + 1);
    }
    for (size_t i = at; i < axes.size(); ++i) first.push_back(axes[i] + (piece != 0 ? 1 : 0));
    if (first.empty()) return build_.reduce(op_, x, std::move(axes), false);
    for (size_t i = 0; i < at; ++i) second.push_back(axes[i]);  // nothing before them has disappeared
    ValueId parts = build_.reduce(op_, x, std::move(first), false);
    return second.empty() ? parts : reduce(parts, std::move(second));
  }

 private:
  GraphBuilder& build_;
  OpKind op_;
  const ReductionLimits& limits_;
};

ValueId split(Rewriter& r, const Node& node, const ReductionLimits& limits) {
  if (!is_reduce(node.op) || node.op == OpKind::k_reduce_argmax || node.op == OpKind::k_reduce_argmin)
    return kNoValue;
  const std::vector<int64_t>& axes = node.attributes.ints;
  Splitter splitter(r.build, node.op, limits);
  if (!splitter.splits(r.old.shape(node.inputs[0]), axes)) return kNoValue;
  const DType dtype = r.old.dtype(node.output);
  bool accumulates = node.op == OpKind::k_reduce_sum || node.op == OpKind::k_reduce_prod;
  ValueId x = r(node.inputs[0]);
  if (accumulates) x = r.build.cast(x, node.attributes.accumulator);
  ValueId result = splitter.reduce(x, axes);
  if (accumulates) result = r.build.cast(result, dtype);
  return r.build.reshape(result, r.old.shape(node.output));
}

}  // namespace

Expected<Graph> split_long_reductions(const Graph& graph, const ReductionLimits& limits) {
  return rewrite(graph, [&](Rewriter& r, const Node& node) { return split(r, node, limits); });
}

}  // namespace quernel
