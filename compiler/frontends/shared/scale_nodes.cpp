#include "frontends/shared/scale_nodes.h"

#include <unordered_set>

namespace quernel {

void add_scale_nodes(const std::vector<FoundScaleNode>& found, const Graph& graph, IoScales& scales) {
  std::unordered_set<ValueId> inputs(graph.inputs.begin(), graph.inputs.end()), outputs;
  for (const Graph::Output& output : graph.outputs) outputs.insert(moved_from(graph, output.value));
  auto name = [&](ValueId v) { return graph.values[static_cast<size_t>(v)].name; };
  for (const FoundScaleNode& node : found) {
    ValueId from = node.makes_integers ? node.real : node.integers,
            to = node.makes_integers ? node.integers : node.real;
    if (!inputs.count(moved_from(graph, from)) && !outputs.count(to)) continue;
    if (!is_scale_of(node.scale, graph.dtype(node.integers))) continue;
    scales.nodes.push_back({name(node.real), name(node.integers), node.makes_integers, node.scale});
  }
}

}  // namespace quernel
