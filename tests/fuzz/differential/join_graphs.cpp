#include "join_graphs.h"

namespace quernel::testing {

void join(Graph& into, const Graph& graph, const std::string& prefix) {
  for (const Symbol& symbol : graph.symbols)
    if (!into.find_symbol(symbol.name)) into.add_symbol(symbol);
  std::vector<ValueId> joined(graph.values.size(), kNoValue);
  for (ValueId v : graph.inputs) {
    const Value& value = graph.values[static_cast<size_t>(v)];
    joined[static_cast<size_t>(v)] = into.add_input(prefix + value.name, value.type);
  }
  for (const Node& node : graph.nodes) {
    std::vector<ValueId> operands;
    for (ValueId v : node.inputs) operands.push_back(joined[static_cast<size_t>(v)]);
    Expected<ValueId> v = into.add(node.op, std::move(operands), node.attributes, node.location);
    if (!v) fatal(__FILE__, __LINE__, to_string(v.errors()));
    joined[static_cast<size_t>(node.output)] = *v;
  }
  for (const Graph::Output& output : graph.outputs)
    into.outputs.push_back({prefix + output.name, joined[static_cast<size_t>(output.value)]});
}

}  // namespace quernel::testing
