#include "graph/multiply_adds.h"

#include "graph/control.h"

namespace quernel {
namespace {

std::vector<char> needed_values(const Graph& graph) {
  std::vector<char> needed(graph.values.size(), 0);
  for (const Graph::Output& output : graph.outputs) needed[output.value] = 1;
  for (const auto& [token, user] : uses_of_loop_symbols(graph)) needed[token] = 1;
  for (size_t n = graph.nodes.size(); n-- > 0;)
    if (needed[graph.nodes[n].output])
      for (ValueId v : graph.nodes[n].inputs) needed[v] = 1;
  return needed;
}

}  // namespace

Dim multiply_adds(const Node& node) {
  if (is_control(node.op)) {
    const Control& control = *node.attributes.control;
    return multiply_adds(control.bodies[0]) * (node.op == OpKind::k_loop ? iterations(control) : Dim(1));
  }
  if (node.op != OpKind::k_contract) return 0;
  Dim points = 1;
  for (const Contraction::Axis& axis : node.attributes.contraction.axes) points *= axis.extent;
  return points;
}

Dim multiply_adds(const Graph& graph) {
  std::vector<char> needed = needed_values(graph);
  Dim sum = 0;
  for (const Node& node : graph.nodes)
    if (needed[node.output]) sum += multiply_adds(node);
  return sum;
}

}  // namespace quernel
