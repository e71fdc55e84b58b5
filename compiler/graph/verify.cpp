#include "graph/verify.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "graph/control.h"

namespace quernel {
namespace {

template <class Fail>
Status verify_states(const Graph& graph, Fail fail) {
  std::unordered_set<size_t> inputs, outputs;
  for (const Graph::State& state : graph.states) {
    if (state.input >= graph.inputs.size() || state.output >= graph.outputs.size())
      return fail("expected a state to have an input and an output");
    const Value& now = graph.values[graph.inputs[state.input]];
    if (!inputs.insert(state.input).second || !outputs.insert(state.output).second)
      return fail("expected state '" + now.name + "' to have an input and an output of its own");
    const TensorType& next = graph.type(graph.outputs[state.output].value);
    if (!(next == now.type))
      return fail("expected state '" + now.name + "' to stay " + to_string(now.type) + ", found " +
                  to_string(next));
    if (!is_static(now.type.shape))
      return fail("expected state '" + now.name + "' to have a shape without symbols, found " +
                  to_string(now.type));
    if (state.initial.bytes.size() != 0 &&
        !(TensorType{state.initial.dtype, make_shape(state.initial.dims)} == now.type))
      return fail("expected the initial value of state '" + now.name + "' to be " + to_string(now.type));
  }
  return {};
}

// What a body's graph is verified within.
struct Surroundings {
  std::set<std::string> defined;  // run-time symbols of all graphs, each defined once
  std::vector<Symbol> rebound;    // but for those that a loop around goes on by
};

Status verify_graph(const Graph& graph, const std::string& after, Surroundings& around);

// A loop's or branch's bodies; the op's own rules have been checked.
Status verify_bodies(const Graph& graph, const Node& node, const std::string& after, Surroundings& around) {
  const Control& control = *node.attributes.control;
  auto fail = [&](std::string message) {
    return internal_error("invalid graph: " + std::move(message), node.location, after);
  };
  if (node.op == OpKind::k_loop && !around.defined.insert(control.symbol).second)
    return fail("expected symbol '" + control.symbol + "' to be defined once");
  std::vector<Symbol> outer = around.rebound;
  if (node.op == OpKind::k_loop && control.condition) control.condition->collect_symbols(around.rebound);
  for (const Graph& body : control.bodies) {
    for (const Symbol& s : body.symbols)
      if (!graph.find_symbol(s.name))
        return fail("expected symbol '" + s.name + "' of a body to be declared around it, too");
    QUERNEL_CHECK(verify_graph(body, after, around));
    std::map<std::string, ValueId> definers = symbol_definers(body);
    for (const Graph::Output& output : body.outputs) {
      std::vector<Symbol> symbols;
      for (const Dim& d : body.shape(output.value)) d.collect_symbols(symbols);
      for (const Symbol& s : symbols)
        if (definers.contains(s.name) || s.name == control.symbol)
          return fail("expected the size of output '" + output.name +
                      "' to be known outside of the body, found symbol '" + s.name + "'");
    }
  }
  around.rebound = std::move(outer);
  return {};
}

Status verify_result(const Graph& graph, const Node& node, const std::string& after) {
  const Node* from = graph.def(node.inputs[0]);
  auto fail = [&](std::string message) {
    return internal_error("invalid graph: result: " + std::move(message), node.location, after);
  };
  if (!from || !gives_token(from->op)) return fail("expected the token of a loop, branch or custom op");
  size_t k = static_cast<size_t>(node.attributes.ints[0]), count = result_count(*from);
  if (k >= count)
    return fail("expected one of " + std::to_string(count) + " results, found " +
                std::to_string(node.attributes.ints[0]));
  if (TensorType type = result_type(*from, k); type != graph.type(node.output))
    return fail("expected " + to_string(type) + ", found " + to_string(graph.type(node.output)));
  return {};
}

Status verify_graph(const Graph& graph, const std::string& after, Surroundings& around) {
  auto fail = [&](std::string message, const Location& place = {}) {
    return internal_error("invalid graph: " + std::move(message), place, after);
  };
  std::unordered_set<std::string> names;
  std::vector<Symbol> symbols;
  for (const Value& value : graph.values) {
    if (!names.insert(value.name).second)
      return fail("expected unique value names, found '" + value.name + "' twice");
    for (const Dim& d : value.type.shape) d.collect_symbols(symbols);
  }
  for (const Node& node : graph.nodes)
    for (const Symbol& s : symbols_of(graph, node)) Dim::symbol(s).collect_symbols(symbols);
  for (const Symbol& s : symbols) {
    const Symbol* declared = graph.find_symbol(s.name);
    if (!declared) return fail("expected symbol '" + s.name + "' to be declared");
    if (declared->min != s.min || declared->max != s.max || declared->multiple_of != s.multiple_of ||
        declared->runtime != s.runtime)
      return fail("expected symbol '" + s.name + "' to be used as it is declared");
  }
  std::vector<char> defined(graph.values.size(), 0);
  std::map<std::string, ValueId> definers = symbol_definers(graph);
  for (const Graph::SymbolSource& source : graph.symbol_sources) {
    bool again = std::any_of(around.rebound.begin(), around.rebound.end(),
                             [&](const Symbol& s) { return s.name == source.symbol; });
    if (!again && !around.defined.insert(source.symbol).second)
      return fail("expected symbol '" + source.symbol + "' to be defined once");
  }
  auto source_defined = [&](const Symbol& s) {
    auto it = definers.find(s.name);
    bool again = std::any_of(around.rebound.begin(), around.rebound.end(),
                             [&](const Symbol& r) { return r.name == s.name; });
    return it == definers.end() || again || defined[it->second];
  };
  for (ValueId v : graph.inputs) {
    if (v < 0 || v >= static_cast<ValueId>(graph.values.size()) || graph.values[v].node != -1)
      return fail("expected inputs without a defining node");
    defined[v] = 1;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::vector<TensorType> types;
    for (ValueId v : node.inputs) {
      if (v < 0 || v >= static_cast<ValueId>(graph.values.size()) || !defined[v])
        return fail("expected operands of " + std::string(to_string(node.op)) + " to be defined before it",
                    node.location);
      types.push_back(graph.values[v].type);
    }
    for (const Symbol& s : symbols_of(graph, node))
      if (!source_defined(s))
        return fail("expected the value of symbol '" + s.name + "' to be defined before it is used",
                    node.location);
    const OpInfo& info = op_info(node.op);
    int count = static_cast<int>(types.size());
    if (count < info.min_inputs || count > info.max_inputs)
      return fail("expected " + std::to_string(info.min_inputs) + " operands of " + std::string(info.name) +
                      ", found " + std::to_string(count),
                  node.location);
    Expected<TensorType> type = info.infer(node.op, types, node.attributes);
    if (!type) return fail(std::string(info.name) + ": " + type.errors().front().message, node.location);
    if (node.output < 0 || node.output >= static_cast<ValueId>(graph.values.size()) ||
        graph.values[node.output].node != static_cast<int32_t>(i) || defined[node.output])
      return fail("expected " + std::string(info.name) + " to define one value of its own", node.location);
    if (!(*type == graph.values[node.output].type))
      return fail("expected '" + graph.values[node.output].name + "' of type " + to_string(*type) +
                      ", found " + to_string(graph.values[node.output].type),
                  node.location);
    if (is_control(node.op)) QUERNEL_CHECK(verify_bodies(graph, node, after, around));
    if (node.op == OpKind::k_result) QUERNEL_CHECK(verify_result(graph, node, after));
    defined[node.output] = 1;
  }
  for (const Graph::Output& output : graph.outputs)
    if (output.value < 0 || output.value >= static_cast<ValueId>(graph.values.size()) ||
        !defined[output.value])
      return fail("expected output '" + output.name + "' to be produced by a node or an input");
  return verify_states(graph, fail);
}

}  // namespace

Status verify(const Graph& graph, const std::string& after) {
  Surroundings around;
  return verify_graph(graph, after, around);
}

}  // namespace quernel
