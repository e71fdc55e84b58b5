#include "schedule/contraction/first_addend.h"

#include <algorithm>

namespace quernel::schedule {
namespace {

// Whether the value is a constant, or elements of one in other places.
bool is_constant(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  while (node && is_movement(node->op)) node = graph.def(v = node->inputs[0]);
  return graph.constant(v) != nullptr;
}

// Whether all tiles are whole: no row or column is past the end.
bool tiles_are_whole(const ContractionPlan& plan) {
  return floormod(plan.axes[plan.vector_axis].extent, plan.tile_n()) == Dim(0) &&
         (plan.walk.tail_rows || floormod(row_count(plan), plan.tile_m) == Dim(0));
}

}  // namespace

int first_addend(const Graph& graph, const Group& group) {
  const Node& contract = graph.nodes[group.anchor];
  const ContractionPlan& plan = group.contraction;
  const ValueId sums = contract.output;
  if (!plan.integers || plan.sums_lanes || plan.vector_axis < 0 || plan.walk.transposes ||
      graph.dtype(sums) != contract.attributes.contraction.accumulator || !tiles_are_whole(plan) ||
      std::find(group.outputs.begin(), group.outputs.end(), sums) != group.outputs.end())
    return -1;
  int found = -1, readers = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    readers += static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), sums));
    if (node.op != OpKind::k_add || !(node.inputs[0] == sums || node.inputs[1] == sums)) continue;
    const ValueId addend = node.inputs[node.inputs[0] == sums ? 1 : 0];
    if (is_constant(graph, addend) && graph.shape(node.output) == graph.shape(sums))
      found = static_cast<int>(i);
  }
  const bool computes = std::find(group.nodes.begin(), group.nodes.end(), found) != group.nodes.end();
  return readers == 1 && computes ? found : -1;
}

}  // namespace quernel::schedule
