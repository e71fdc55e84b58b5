// Values get producers that write them where the schedule wants them.
#include <map>
#include <set>
#include <utility>

#include "graph/control.h"
#include "graph/rewrite.h"
#include "schedule/custom_call.h"
#include "schedule/steps.h"
#include "schedule/storage.h"

namespace quernel::schedule {

namespace {

// A kernel or body may write it: not an input, a constant, or what has to stay in a loop's own place. What
// lies around a body need not be dense, so a custom op neither writes nor reads it.
bool is_writable(const Graph& graph, ValueId v, bool is_body) {
  const Node* node = graph.def(v);
  return node && node->op != OpKind::k_constant && !is_carried(graph, *node) &&
         !(is_body && is_custom_result(graph, *node));
}

bool is_view(const Node& node) { return is_movement(node.op) && node.op != OpKind::k_contiguous; }

// Rebuilds nodes that give tokens: each gets one node for every result. What a body or custom op reads stands
// in memory, and a value that is carried is first written to a place that nothing else is in. What symbols
// are read from gets a copy where it may lie in several places, or in none.
class Isolation {
 public:
  Isolation(const Graph& graph, bool is_body) : is_body_(is_body) {
    for (const Graph::SymbolSource& source : graph.symbol_sources) sources_.insert(source.value);
  }

  ValueId rule(Rewriter& r, const Node& node) {
    if (!std::exchange(begun_, true) && is_body_)
      for (ValueId v : r.old.inputs) copy_source(r, v, r(v));
    ValueId v = replace(r, node);
    if (v == kNoValue && sources_.contains(node.output)) v = r.copy(node);
    if (v != kNoValue && !is_writable(r.graph, v, is_body_)) copy_source(r, node.output, v);
    return v;
  }

  // What stands for the source of a symbol in the new graph, where it has a copy.
  std::map<ValueId, ValueId> copies;  // by old value

 private:
  void copy_source(Rewriter& r, ValueId old, ValueId v) {
    if (sources_.contains(old)) copies[old] = r.build.add(OpKind::k_contiguous, {v});
  }

  ValueId replace(Rewriter& r, const Node& node) {
    if (is_control(node.op)) return isolate(r, node);
    if (node.op == OpKind::k_custom) return make_dense(r, node);
    if (node.op != OpKind::k_result) return kNoValue;
    return results_.at(r(node.inputs[0]))[static_cast<size_t>(node.attributes.ints[0])];
  }

  ValueId isolate(Rewriter& r, const Node& node) {
    const Control& control = *node.attributes.control;
    std::vector<ValueId> inputs;
    for (ValueId old : node.inputs) {
      ValueId v = r(old);
      const Node* from = r.graph.def(v);
      bool carried = static_cast<int>(inputs.size()) < control.carried;
      bool elsewhere = from && (from->op == OpKind::k_constant || is_view(*from));
      inputs.push_back(carried || elsewhere ? r.build.add(OpKind::k_contiguous, {v}) : v);
    }
    return add_with_results(r, node, std::move(inputs));
  }

  // A custom op's operands: views are copied, and so is what lies where a loop or the graph around a body has
  // put it.
  ValueId make_dense(Rewriter& r, const Node& node) {
    std::vector<ValueId> inputs;
    for (ValueId old : node.inputs) {
      ValueId v = r(old);
      const Node* from = r.graph.def(v);
      bool elsewhere = from ? is_view(*from) || is_carried(r.graph, *from) : is_body_;
      if (elsewhere && !dense_.contains(v)) dense_[v] = r.build.add(OpKind::k_contiguous, {v});
      inputs.push_back(elsewhere ? dense_.at(v) : v);
    }
    return add_with_results(r, node, std::move(inputs));
  }

  ValueId add_with_results(Rewriter& r, const Node& node, std::vector<ValueId> inputs) {
    ValueId token = r.build.add(node.op, std::move(inputs), node.attributes);
    std::vector<ValueId>& results = results_[token];
    for (size_t k = 0; k < result_count(node); ++k)
      results.push_back(add_result(r.build, token, static_cast<int64_t>(k)));
    return token;
  }

  bool is_body_, begun_ = false;
  std::set<ValueId> sources_;
  std::map<ValueId, std::vector<ValueId>> results_;  // by token
  std::map<ValueId, ValueId> dense_;                 // copies for custom ops, of the new graph's values
};

}  // namespace

Status give_values_storage(Schedule& schedule) {
  const Graph& graph = schedule.graph;
  const bool is_body = schedule.is_body;
  Isolation isolation(graph, is_body);
  QUERNEL_TRY(Graph result,
              rewrite(graph, [&](Rewriter& r, const Node& node) { return isolation.rule(r, node); }));
  std::set<ValueId> taken;
  if (is_body)
    for (const Node& node : result.nodes)
      if (node.op == OpKind::k_custom) taken.insert(node.inputs.begin(), node.inputs.end());
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    Graph::Output& output = result.outputs[i];
    const Graph::State* state = result.state_of_output(i);
    if (state && result.inputs[state->input] == output.value) continue;  // keeps its value
    if (is_writable(result, output.value, is_body) && taken.insert(output.value).second) continue;
    QUERNEL_TRY(output.value, result.add(OpKind::k_contiguous, {output.value}, {}, {}, output.name));
    taken.insert(output.value);
  }
  for (size_t i = 0; i < result.symbol_sources.size(); ++i)
    if (auto it = isolation.copies.find(graph.symbol_sources[i].value); it != isolation.copies.end())
      result.symbol_sources[i].value = it->second;
    else if (ValueId& v = result.symbol_sources[i].value; is_body && !is_writable(result, v, true)) {
      QUERNEL_TRY(v, result.add(OpKind::k_contiguous, {v}));  // of a body without nodes
    }
  schedule.graph = std::move(result);
  return {};
}

}  // namespace quernel::schedule
