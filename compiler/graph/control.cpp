#include "graph/control.h"

#include <algorithm>

namespace quernel {

TensorType token_type() { return {DType::kBool, {0}}; }

Dim iterations(const Control& control) {
  if (!control.condition) return max(*control.count, 0);
  const Symbol* symbol = control.bodies[0].find_symbol(control.symbol);
  QUERNEL_ASSERT(symbol);
  return Dim::symbol(*symbol);
}

size_t result_count(const Node& node) {
  return node.op == OpKind::k_custom ? node.attributes.custom->results.size()
                                     : node.attributes.control->bodies[0].outputs.size();
}

TensorType result_type(const Node& node, size_t k) {
  if (node.op == OpKind::k_custom) return node.attributes.custom->results[k];
  const Control& control = *node.attributes.control;
  TensorType type = control.bodies[0].type(control.bodies[0].outputs[k].value);
  if (node.op == OpKind::k_loop && k >= static_cast<size_t>(control.carried))
    type.shape.insert(type.shape.begin(), iterations(control));
  return type;
}

bool fills_bytes(const TensorType& type) {
  if (!is_packed(type.dtype)) return true;
  Dim count = 1;
  for (const Dim& d : type.shape) count = count * d;
  return floormod(count, 2) == Dim(0);
}

ValueId add_result(GraphBuilder& build, ValueId token, int64_t k) {
  if (token == kNoValue) return kNoValue;
  TensorType type = result_type(*build.graph().def(token), static_cast<size_t>(k));
  Attributes attributes;
  attributes.ints = {k};
  attributes.dtype = type.dtype;
  attributes.shape = std::move(type.shape);
  return build.add(OpKind::k_result, {token}, std::move(attributes));
}

std::map<std::string, ValueId> symbol_definers(const Graph& graph) {
  std::map<std::string, ValueId> definers;
  for (const Graph::SymbolSource& source : graph.symbol_sources) definers[source.symbol] = source.value;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_loop) definers[node.attributes.control->symbol] = node.output;
  return definers;
}

std::vector<std::pair<ValueId, int32_t>> uses_of_loop_symbols(const Graph& graph) {
  std::map<std::string, ValueId> tokens;
  std::vector<std::pair<ValueId, int32_t>> uses;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!tokens.empty() && node.op != OpKind::k_constant && node.op != OpKind::k_result)
      for (const Symbol& s : symbols_of(graph, node))
        if (auto it = tokens.find(s.name); it != tokens.end())
          uses.emplace_back(it->second, static_cast<int32_t>(i));
    if (node.op == OpKind::k_loop) tokens[node.attributes.control->symbol] = node.output;
  }
  return uses;
}

Expected<Graph> transform_bodies(
    Graph graph, const std::function<Expected<Graph>(const Node& node, const Graph& body)>& transform) {
  for (Node& node : graph.nodes) {
    if (!is_control(node.op)) continue;
    auto control = std::make_shared<Control>(*node.attributes.control);
    for (Graph& body : control->bodies) {
      QUERNEL_TRY(body, transform(node, body));
    }
    node.attributes.control = std::move(control);
  }
  return graph;
}

bool any_node(const Graph& graph, const std::function<bool(const Node&)>& holds) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (holds(node)) return true;
    if (!is_control(node.op)) return false;
    const std::vector<Graph>& bodies = node.attributes.control->bodies;
    return std::any_of(bodies.begin(), bodies.end(),
                       [&](const Graph& body) { return any_node(body, holds); });
  });
}

}  // namespace quernel
