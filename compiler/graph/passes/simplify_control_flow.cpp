#include <algorithm>
#include <map>
#include <set>

#include "graph/control.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int kMaxMovedViews = 64;  // in a chain

// A constant, or views of one.
bool is_constant_view(const Graph& graph, ValueId v) {
  for (int depth = 0; depth < kMaxMovedViews; ++depth) {
    const Node* node = graph.def(v);
    if (!node) return false;
    if (node->op == OpKind::k_constant) return true;
    if (!is_movement(node->op) || node->op == OpKind::k_contiguous) return false;
    v = node->inputs[0];
  }
  return false;
}

// What stays of a loop or branch, and what stands for each of its results.
struct Reduced {
  std::vector<char> inputs;   // per operand: read
  std::vector<char> outputs;  // per result: given
};

class Simplify {
 public:
  explicit Simplify(const Graph& graph) {
    std::vector<int32_t> uses = graph.use_counts();
    for (const Node& node : graph.nodes)
      if (node.op == OpKind::k_result && uses[node.output] > 0)
        wanted_[node.inputs[0]].insert(node.attributes.ints[0]);
  }

  ValueId rule(Rewriter& r, const Node& node) {
    if (is_control(node.op)) return reduce(r, node);
    if (node.op != OpKind::k_result || !results_.contains(node.inputs[0])) return kNoValue;
    const auto& [passed, number] =
        results_.at(node.inputs[0]).at(static_cast<size_t>(node.attributes.ints[0]));
    if (passed != kNoValue) return passed;
    Attributes attributes = node.attributes;
    attributes.ints = {number};
    return r.build.add(node.op, {r(node.inputs[0])}, std::move(attributes));
  }

 private:
  // Values that the given outputs and the body's symbols need.
  static std::vector<char> live_in(const Graph& body, const std::vector<char>& outputs) {
    std::vector<char> live(body.values.size(), 0);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) live[body.outputs[i].value] = 1;
    for (const Graph::SymbolSource& source : body.symbol_sources) live[source.value] = 1;
    std::map<int32_t, std::vector<ValueId>> loops;
    for (const auto& [token, user] : uses_of_loop_symbols(body)) loops[user].push_back(token);
    for (size_t i = body.nodes.size(); i-- > 0;) {
      if (!live[body.nodes[i].output]) continue;
      for (ValueId v : body.nodes[i].inputs) live[v] = 1;
      for (ValueId v : loops[static_cast<int32_t>(i)]) live[v] = 1;
    }
    return live;
  }

  Reduced needs(const Node& node) const {
    const Control& control = *node.attributes.control;
    Reduced result{std::vector<char>(node.inputs.size(), 0),
                   std::vector<char>(control.bodies[0].outputs.size(), 0)};
    if (auto it = wanted_.find(node.output); it != wanted_.end())
      for (int64_t k : it->second) result.outputs[static_cast<size_t>(k)] = 1;
    for (bool grown = true; grown;) {
      grown = false;
      for (const Graph& body : control.bodies) {
        std::vector<char> live = live_in(body, result.outputs);
        for (size_t i = 0; i < body.inputs.size(); ++i) {
          if (!live[body.inputs[i]]) continue;
          result.inputs[i] = 1;
          // A carried value that is read is given, too; one that is given is read, at first.
          if (static_cast<int>(i) < control.carried && !result.outputs[i]) result.outputs[i] = grown = true;
        }
      }
    }
    for (int i = 0; i < control.carried; ++i)
      if (result.outputs[static_cast<size_t>(i)]) result.inputs[static_cast<size_t>(i)] = 1;
    return result;
  }

  static bool is_passed(const Control& control, size_t i) {
    const Graph& body = control.bodies[0];
    return static_cast<int>(i) < control.carried && body.outputs[i].value == body.inputs[i];
  }

  ValueId reduce(Rewriter& r, const Node& node) {
    const Control& control = *node.attributes.control;
    Reduced keep = needs(node);
    auto reduced = std::make_shared<Control>(control);
    reduced->carried = 0;
    std::vector<size_t> inputs, moved;  // operands that stay, and that the bodies make themselves
    for (bool carried : {true, false})
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        bool is_carried = static_cast<int>(i) < control.carried && !is_passed(control, i);
        if (!keep.inputs[i] || is_carried != carried) continue;
        bool moves = !carried && is_constant_view(r.graph, r(node.inputs[i]));
        (moves ? moved : inputs).push_back(i);
        reduced->carried += carried;
      }
    std::vector<std::pair<ValueId, int64_t>>& results = results_[node.output];
    std::vector<size_t> outputs;
    for (size_t k = 0; k < keep.outputs.size(); ++k) {
      bool passed = is_passed(control, k);
      results.emplace_back(passed ? r(node.inputs[k]) : kNoValue, static_cast<int64_t>(outputs.size()));
      if (keep.outputs[k] && !passed) outputs.push_back(k);
    }
    for (Graph& body : reduced->bodies) {
      Expected<Graph> made = rebuild(r, node, body, inputs, moved, outputs);
      if (!made) return r.build.fail(made.take_errors().front());
      body = std::move(*made);
    }
    std::vector<ValueId> operands;
    for (size_t i : inputs) operands.push_back(r(node.inputs[i]));
    Attributes attributes = node.attributes;
    attributes.control = std::move(reduced);
    return r.build.add(node.op, std::move(operands), std::move(attributes));
  }

  static Expected<Graph> rebuild(const Rewriter& r, const Node& node, const Graph& old,
                                 const std::vector<size_t>& inputs, const std::vector<size_t>& moved,
                                 const std::vector<size_t>& outputs) {
    Graph body;
    body.name = old.name;
    body.symbols = old.symbols;
    body.continue_names(old);
    std::vector<ValueId> mapped(old.values.size(), kNoValue);
    auto input = [&](size_t i) -> const Value& { return old.values[old.inputs[i]]; };
    for (size_t i : inputs) mapped[old.inputs[i]] = body.add_input(input(i).name, input(i).type);
    for (size_t i : moved) {
      QUERNEL_TRY(mapped[old.inputs[i]], copy_view(r.graph, r(node.inputs[i]), body));
      body.rename(mapped[old.inputs[i]], input(i).name);
    }
    std::vector<char> given(old.outputs.size(), 0);
    for (size_t k : outputs) given[k] = 1;
    std::vector<char> live = live_in(old, given);
    for (const Node& inner : old.nodes) {
      if (!live[inner.output]) continue;
      std::vector<ValueId> operands;
      for (ValueId v : inner.inputs) operands.push_back(mapped[v]);
      QUERNEL_TRY(mapped[inner.output], body.add(inner.op, std::move(operands), inner.attributes,
                                                 inner.location, old.values[inner.output].name));
    }
    for (size_t k : outputs) body.outputs.push_back({old.outputs[k].name, mapped[old.outputs[k].value]});
    for (const Graph::SymbolSource& source : old.symbol_sources)
      body.symbol_sources.push_back({source.symbol, mapped[source.value]});
    return body;
  }

  static Expected<ValueId> copy_view(const Graph& from, ValueId v, Graph& to) {
    const Node& node = *from.def(v);
    std::vector<ValueId> operands;
    for (ValueId operand : node.inputs) {
      QUERNEL_TRY(ValueId copied, copy_view(from, operand, to));
      operands.push_back(copied);
    }
    return to.add(node.op, std::move(operands), node.attributes, node.location, from.values[v].name);
  }

  std::map<ValueId, std::set<int64_t>> wanted_;  // results that are read, by token
  // By token, per result: the value that stands for it, or its new number.
  std::map<ValueId, std::vector<std::pair<ValueId, int64_t>>> results_;
};

}  // namespace

Expected<Graph> simplify_control_flow(const Graph& graph) {
  bool any =
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return is_control(n.op); });
  if (!any) return graph;
  QUERNEL_TRY(Graph live, rewrite(graph, [](Rewriter&, const Node&) { return kNoValue; }));
  Simplify simplify(live);
  QUERNEL_TRY(Graph result,
              rewrite(live, [&](Rewriter& r, const Node& node) { return simplify.rule(r, node); }));
  return rewrite(result, [](Rewriter&, const Node&) { return kNoValue; });  // what bodies no longer read
}

}  // namespace quernel
