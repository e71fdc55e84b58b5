#include "graph/random_outputs.h"

#include "graph/control.h"

namespace quernel {

std::vector<std::string> random_outputs(const Graph& graph) {
  std::vector<char> random(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    auto draws = [](const Node& n) { return n.op == OpKind::k_threefry2x32; };
    random[node.output] = draws(node);
    if (is_control(node.op))
      for (const Graph& body : node.attributes.control->bodies) random[node.output] |= any_node(body, draws);
    for (ValueId v : node.inputs) random[node.output] |= random[v];
  }
  std::vector<std::string> names;
  for (const Graph::Output& output : graph.outputs)
    if (random[output.value]) names.push_back(output.name);
  return names;
}

}  // namespace quernel
