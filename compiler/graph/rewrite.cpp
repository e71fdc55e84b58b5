#include "graph/rewrite.h"

#include <map>

#include "graph/control.h"

namespace quernel {

ValueId Rewriter::copy(const Node& node) {
  std::vector<ValueId> inputs;
  inputs.reserve(node.inputs.size());
  for (ValueId v : node.inputs) inputs.push_back(mapped[v]);
  build.set_name(old.values[node.output].name);
  return build.add(node.op, std::move(inputs), node.attributes);
}

Expected<Graph> rewrite(const Graph& graph, const std::function<ValueId(Rewriter&, const Node&)>& rule) {
  Rewriter rewriter(graph);
  rewriter.graph.name = graph.name;
  rewriter.graph.symbols = graph.symbols;
  rewriter.graph.continue_names(graph);
  rewriter.mapped.assign(graph.values.size(), kNoValue);

  std::vector<char> live(graph.values.size(), 0);
  for (const Graph::Output& output : graph.outputs) live[output.value] = 1;
  for (const Graph::SymbolSource& source : graph.symbol_sources) live[source.value] = 1;
  std::map<int32_t, std::vector<ValueId>> loops;  // whose symbols a node uses
  for (const auto& [token, user] : uses_of_loop_symbols(graph)) loops[user].push_back(token);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!live[graph.nodes[i].output]) continue;
    for (ValueId v : graph.nodes[i].inputs) live[v] = 1;
    if (auto it = loops.find(static_cast<int32_t>(i)); it != loops.end())
      for (ValueId v : it->second) live[v] = 1;
  }

  for (ValueId v : graph.inputs)
    rewriter.mapped[v] = rewriter.graph.add_input(graph.values[v].name, graph.values[v].type);
  for (const Node& node : graph.nodes) {
    if (!live[node.output]) continue;
    rewriter.build.set_location(node.location);
    size_t first = rewriter.graph.values.size();
    ValueId result = rule(rewriter, node);
    if (result == kNoValue && rewriter.build.ok()) result = rewriter.copy(node);
    QUERNEL_CHECK(rewriter.build.take_status());
    if (result >= static_cast<ValueId>(first)) rewriter.graph.rename(result, graph.values[node.output].name);
    rewriter.mapped[node.output] = result;
  }
  for (const Graph::Output& output : graph.outputs)
    rewriter.graph.outputs.push_back({output.name, rewriter.mapped[output.value]});
  for (const Graph::SymbolSource& source : graph.symbol_sources)
    rewriter.graph.symbol_sources.push_back({source.symbol, rewriter.mapped[source.value]});
  rewriter.graph.states = graph.states;
  return std::move(rewriter.graph);
}

}  // namespace quernel
