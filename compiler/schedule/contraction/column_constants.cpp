#include "schedule/contraction/column_constants.h"

#include <algorithm>

namespace quernel::schedule {
namespace {

// Whether the constant has one word per column of the result.
bool is_per_column(const Graph& graph, ValueId v, const Node& contract, const ContractionPlan& plan) {
  const Tensor* constant = graph.constant(v);
  const Shape& shape = graph.shape(v);
  const std::vector<IndexExpr>& out = contract.attributes.contraction.out;
  const Dim& columns = plan.axes[plan.vector_axis].extent;
  if (!constant || constant->dtype != DType::kI32 || shape.size() != out.size() ||
      !(columns == Dim(constant->count())) || constant->count() < 2)
    return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!(shape[i] == Dim(1)) && !(substitute(out[i], plan.axis_values) == IndexExpr::axis(plan.vector_axis)))
      return false;
  return true;
}

// Whether only nodes that compute read it: they do so at the indices of their results.
bool moves_nowhere(const Graph& graph, ValueId v) {
  return std::none_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return is_movement(node.op) && std::find(node.inputs.begin(), node.inputs.end(), v) != node.inputs.end();
  });
}

}  // namespace

std::vector<ColumnConstant> column_constants(const Graph& graph, const Group& group) {
  const Node& contract = graph.nodes[group.anchor];
  std::vector<ColumnConstant> result;
  for (int n : group.nodes) {
    if (n == group.anchor) continue;
    for (ValueId v : graph.nodes[n].inputs) {
      const Node* expand = graph.def(v);
      const bool expanded = expand && expand->op == OpKind::k_expand;
      const ValueId constant = expanded ? expand->inputs[0] : v;
      const bool known =
          std::any_of(result.begin(), result.end(), [&](const ColumnConstant& c) { return c.read_as == v; });
      if (!known && graph.shape(v) == graph.shape(contract.output) &&
          is_per_column(graph, constant, contract, group.contraction) && moves_nowhere(graph, v))
        result.push_back({constant, v});
    }
  }
  return result;
}

}  // namespace quernel::schedule
