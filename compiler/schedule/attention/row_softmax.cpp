#include "schedule/attention/row_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedule/attention/defining_nodes.h"

namespace quernel::schedule {
namespace {

bool is_number(const Graph& graph, ValueId v, double number) {
  const Tensor* c = graph.constant(without_expands(graph, v));
  return c && c->count() == 1 && element_as_f64(*c, 0) == number;
}

// A reduction over the last axis, whose results are spread over rows.
struct SpreadReduction {
  const Node* node = nullptr;
  bool replaced = false;  // a result of `from` by `to`
};
SpreadReduction spread_reduction(const Graph& graph, ValueId v, OpKind op, double from, double to) {
  SpreadReduction result;
  v = without_expands(graph, v);
  if (const Node* where = node_of(graph, v, OpKind::k_where)) {
    const Node* eq = node_of(graph, without_expands(graph, where->inputs[0]), OpKind::k_eq);
    v = without_expands(graph, where->inputs[2]);
    if (!eq || without_expands(graph, eq->inputs[0]) != v || !is_number(graph, eq->inputs[1], from) ||
        !is_number(graph, where->inputs[1], to))
      return {};
    result.replaced = true;
  }
  const Node* node = node_of(graph, v, op);
  if (!node || node->attributes.ints != std::vector<int64_t>{graph.rank(node->inputs[0]) - 1} ||
      graph.rank(v) != graph.rank(node->inputs[0]))
    return {};
  result.node = node;
  return result;
}

// Whether the rows compute `v` of one element of each operand.
bool for_itself(const Graph& graph, const Group& rows, ValueId v) {
  const Node* node = graph.def(v);
  if (!node) return true;
  auto n = static_cast<int>(node - graph.nodes.data());
  bool within = false;
  for (const std::vector<int>* nodes : {&rows.nodes, &rows.inlined})
    within = within || std::find(nodes->begin(), nodes->end(), n) != nodes->end();
  if (!within) return true;
  return !is_reduce(node->op) && std::all_of(node->inputs.begin(), node->inputs.end(),
                                             [&](ValueId input) { return for_itself(graph, rows, input); });
}

}  // namespace

std::optional<RowSoftmax> row_softmax(const Graph& graph, const Group& rows, ValueId scores) {
  ValueId weights = rows.outputs[0];
  const Node* last = node_of(graph, weights, OpKind::k_div);
  ValueId divisor = last ? last->inputs[1] : kNoValue;
  if (!last && (last = node_of(graph, weights, OpKind::k_mul)))
    if (const Node* recip = node_of(graph, without_expands(graph, last->inputs[1]), OpKind::k_recip))
      divisor = recip->inputs[0];
  if (divisor == kNoValue) return std::nullopt;
  const Node* exp = node_of(graph, last->inputs[0], OpKind::k_exp);
  SpreadReduction sum = spread_reduction(graph, divisor, OpKind::k_reduce_sum, 0, 1);
  if (!exp || !sum.node || sum.node->inputs[0] != exp->output ||
      sum.node->attributes.accumulator != DType::kF32)
    return std::nullopt;
  const Node* sub = node_of(graph, exp->inputs[0], OpKind::k_sub);
  if (!sub) return std::nullopt;
  SpreadReduction max = spread_reduction(graph, sub->inputs[1], OpKind::k_reduce_max, -INFINITY, 0);
  if (!max.node || max.node->inputs[0] != sub->inputs[0] || (sum.replaced && !max.replaced))
    return std::nullopt;
  ValueId x = sub->inputs[0];
  bool f32 = graph.dtype(x) == DType::kF32 && graph.dtype(weights) == DType::kF32;
  if (!f32 || !(graph.shape(x) == graph.shape(scores)) || !for_itself(graph, rows, x)) return std::nullopt;
  return RowSoftmax{x, sum.replaced};
}

}  // namespace quernel::schedule
