// Writing in place: which groups may write a result over an operand, and the states, which live in one place
// from run to run.
#include <algorithm>
#include <unordered_set>

#include "schedule/in_place.h"
#include "schedule/storage.h"

namespace quernel::schedule {
namespace {

bool contains(const std::vector<int>& list, int x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

// Whether evaluating `values` at the group's own indices reads `v` at those indices only: not through any
// movement op or prologue.
bool read_at_own_indices(const Schedule& s, const Group& group, ValueId v, std::vector<ValueId> values) {
  const Graph& g = s.graph;
  std::unordered_set<ValueId> seen;
  while (!values.empty()) {
    ValueId x = values.back();
    values.pop_back();
    if (!seen.insert(x).second || s.storage[x].valid()) continue;
    const Node* node = g.def(x);
    if (!node || contains(group.nodes, g.values[x].node)) continue;
    for (ValueId y : node->inputs) {
      if (y == v) return false;
      values.push_back(y);
    }
  }
  return true;
}

// A scatter that reads its template nowhere else: what it does not update stays as it is.
bool is_scatter_into(const Schedule& s, const Group& group, ValueId v) {
  const Node& node = s.graph.nodes[group.anchor];
  if (!is_scatter(node.op) || node.inputs[0] != v || node.inputs[1] == v || node.inputs[2] == v) return false;
  return read_at_own_indices(s, group, v, {node.inputs[1], node.inputs[2]});
}

bool reads_elementwise(const Schedule& s, const Group& group, ValueId v) {
  if (group.kind != GroupKind::kMap && group.kind != GroupKind::kContract) return false;
  const Graph& g = s.graph;
  std::vector<ValueId> operands;
  for (int n : group.nodes) {
    const std::vector<ValueId>& inputs = g.nodes[n].inputs;
    bool uses = std::find(inputs.begin(), inputs.end(), v) != inputs.end();
    if (uses && !is_elementwise(g.nodes[n].op)) return false;
    operands.insert(operands.end(), inputs.begin(), inputs.end());
  }
  return read_at_own_indices(s, group, v, std::move(operands));
}

}  // namespace

bool may_write_over(const Schedule& s, const Group& group, ValueId operand, ValueId result) {
  const Graph& g = s.graph;
  if (group.outputs.size() != 1 || group.outputs[0] != result) return false;
  if (g.shape(operand) != g.shape(result) ||
      element_size(g.dtype(operand)) != element_size(g.dtype(result)) ||
      s.storage[operand].strides != s.storage[result].strides)
    return false;
  return is_scatter_into(s, group, operand) || reads_elementwise(s, group, operand);
}

}  // namespace quernel::schedule
