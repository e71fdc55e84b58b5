// Large windows of maxima and minima, one dim after the other: of 13 by 13 elements, 26 are compared in place
// of 169. Where the innermost dim slides, too, its kernel does so by itself (lower_reduce).
#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// A reduced axis of a view, and the operand's dim that it alone, with one result axis, walks.
struct Window {
  int axis = -1, dim = -1, result = -1;
};

std::optional<Window> window_of(const std::vector<IndexExpr>& indices, int axis, int results) {
  Window window{axis};
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!uses_axis(indices[d], axis)) continue;
    if (window.dim >= 0) return std::nullopt;
    window.dim = static_cast<int>(d);
  }
  if (window.dim < 0 || window.dim + 1 == static_cast<int>(indices.size())) return std::nullopt;
  for (int i = 0; i < results; ++i) {
    if (!uses_axis(indices[static_cast<size_t>(window.dim)], i)) continue;
    if (window.result >= 0) return std::nullopt;
    window.result = i;
  }
  if (window.result < 0) return std::nullopt;
  for (size_t d = 0; d < indices.size(); ++d)
    if (static_cast<int>(d) != window.dim && uses_axis(indices[d], window.result)) return std::nullopt;
  return window;
}

// Whether one dim after the other takes less than half of the comparisons.
bool pays(const Shape& extents, const Window& a, const Window& b) {
  const Dim &rows = extents[static_cast<size_t>(a.axis)], &columns = extents[static_cast<size_t>(b.axis)];
  return rows.is_const() && columns.is_const() &&
         rows.value() * columns.value() > 2 * (rows.value() + columns.value());
}

// What a window sees of an operand: without its padding along `dim`, which may as well follow the reduction
// along another dim, for the largest of equal elements is one of them.
struct Operand {
  ValueId value = kNoValue;  // of the new graph
  Dim size;                  // of dim `dim`
  const Node* pad = nullptr;
};
Operand without_padding(Rewriter& r, ValueId v, size_t dim) {
  const Node* pad = r.old.def(v);
  if (!pad || pad->op != OpKind::k_pad || pad->attributes.mode != PadMode::kConstant)
    return {r(v), r.old.shape(v)[dim]};
  Shape before = pad->attributes.starts, after = pad->attributes.stops;
  before[dim] = after[dim] = 0;
  ValueId x = r.build.pad(r(pad->inputs[0]), before, after, pad->attributes.mode, pad->attributes.fill);
  return {x, r.old.shape(pad->inputs[0])[dim], pad};
}

ValueId split(Rewriter& r, const Node& node) {
  if (node.op != OpKind::k_reduce_max && node.op != OpKind::k_reduce_min) return kNoValue;
  const Node* view = r.old.def(node.inputs[0]);
  if (!view || view->op != OpKind::k_view || !view->attributes.map.guards.empty() || node.attributes.keepdims)
    return kNoValue;
  const Shape& extents = r.old.shape(node.inputs[0]);
  const std::vector<IndexExpr>& indices = view->attributes.map.indices;
  int results = static_cast<int>(extents.size()) - 2;
  if (results < 0 || node.attributes.ints != std::vector<int64_t>{results, results + 1}) return kNoValue;
  std::optional<Window> rows = window_of(indices, results, results),
                        columns = window_of(indices, results + 1, results);
  if (!rows || !columns || rows->dim == columns->dim || !pays(extents, *rows, *columns)) return kNoValue;

  // All rows of the operand along the columns, then the rows of the results.
  auto whole = static_cast<size_t>(rows->result), dim = static_cast<size_t>(rows->dim);
  Operand x = without_padding(r, view->inputs[0], dim);
  Shape first(extents.begin(), extents.begin() + results), second = first;
  first[whole] = x.size;
  first.push_back(extents[static_cast<size_t>(columns->axis)]);
  second.push_back(extents[static_cast<size_t>(rows->axis)]);
  std::vector<IndexExpr> axes;
  for (int i = 0; i <= results; ++i) axes.push_back(IndexExpr::axis(i));
  std::vector<IndexExpr> along_columns = axes;
  along_columns.push_back(IndexExpr::axis(results));  // in place of the window's second axis
  IndexMap of_columns, of_rows;
  for (const IndexExpr& e : indices) of_columns.indices.push_back(substitute(e, along_columns));
  of_columns.indices[dim] = axes[whole];
  for (int i = 0; i < results; ++i) of_rows.indices.push_back(axes[static_cast<size_t>(i)]);
  std::vector<IndexExpr> along_rows = axes;
  along_rows.push_back(IndexExpr(0));  // the columns' axis, which rows do not see
  of_rows.indices[whole] = substitute(indices[dim], along_rows);
  ValueId reduced = r.build.view(x.value, first, std::move(of_columns));
  reduced = r.build.reduce(node.op, reduced, {results}, false);
  if (x.pad) {
    const Attributes& a = x.pad->attributes;
    Shape before(static_cast<size_t>(results), 0), after = before;
    before[whole] = a.starts[dim], after[whole] = a.stops[dim];
    reduced = r.build.pad(reduced, before, after, a.mode, a.fill);
  }
  return r.build.reduce(node.op, r.build.view(reduced, second, std::move(of_rows)), {results}, false);
}

}  // namespace

Expected<Graph> split_windows(const Graph& graph) { return rewrite(graph, split); }

}  // namespace quernel
