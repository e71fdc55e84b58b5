#include <map>
#include <set>

#include "graph/control.h"
#include "graph/passes/passes.h"

namespace quernel {
namespace {

bool is_free(const Node& node) { return node.op == OpKind::k_constant || node.op == OpKind::k_dims; }

// Nodes that share a processor, as many as can follow one another.
struct Stretch {
  bool on_companion = false;
  std::vector<int32_t> nodes;
};

class Mover {
 public:
  Mover(const Graph& graph, const std::vector<char>& on_companion)
      : old_(graph), on_companion_(on_companion) {}

  Expected<Graph> run() {
    graph_.name = old_.name;
    graph_.symbols = old_.symbols;
    graph_.continue_names(old_);
    graph_.states = old_.states;
    mapped_.assign(old_.values.size(), kNoValue);
    for (ValueId v : old_.inputs) mapped_[v] = graph_.add_input(old_.values[v].name, old_.values[v].type);
    find_stretches();
    for (const Node& node : old_.nodes)
      if (is_free(node)) QUERNEL_CHECK(copy(node, graph_, mapped_));
    for (const Stretch& stretch : stretches_) {
      if (stretch.on_companion) {
        QUERNEL_CHECK(outline(stretch));
        continue;
      }
      for (int32_t n : stretch.nodes) QUERNEL_CHECK(copy(old_.nodes[n], graph_, mapped_));
    }
    for (const Graph::Output& output : old_.outputs)
      graph_.outputs.push_back({output.name, mapped_[output.value]});
    for (const Graph::SymbolSource& source : old_.symbol_sources)
      graph_.symbol_sources.push_back({source.symbol, mapped_[source.value]});
    return std::move(graph_);
  }

 private:
  // Of one processor whatever can be computed, then of the other, until nothing is left.
  void find_stretches() {
    std::map<std::string, ValueId> definers = symbol_definers(old_);
    std::vector<std::vector<ValueId>> needs(old_.nodes.size());
    std::vector<char> done(old_.values.size(), 0);
    for (ValueId v : old_.inputs) done[v] = 1;
    size_t left = 0;
    for (size_t n = 0; n < old_.nodes.size(); ++n) {
      const Node& node = old_.nodes[n];
      if (is_free(node)) {
        done[node.output] = 1;
        continue;
      }
      ++left;
      needs[n] = node.inputs;
      for (const Symbol& s : symbols_of(old_, node))
        if (auto it = definers.find(s.name); it != definers.end() && it->second != node.output)
          needs[n].push_back(it->second);
    }
    for (bool on_companion = false; left != 0; on_companion = !on_companion) {
      Stretch stretch{on_companion, {}};
      for (size_t n = 0; n < old_.nodes.size(); ++n) {
        ValueId v = old_.nodes[n].output;
        if (done[v] || static_cast<bool>(on_companion_[n]) != on_companion) continue;
        bool ready = true;
        for (ValueId need : needs[n]) ready = ready && done[need];
        if (!ready) continue;
        done[v] = 1;
        --left;
        stretch.nodes.push_back(static_cast<int32_t>(n));
      }
      if (!stretch.nodes.empty()) stretches_.push_back(std::move(stretch));
    }
  }

  Status copy(const Node& node, Graph& to, std::vector<ValueId>& mapped) const {
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) inputs.push_back(mapped[v]);
    QUERNEL_TRY(mapped[node.output], to.add(node.op, std::move(inputs), node.attributes, node.location,
                                            old_.values[node.output].name));
    return {};
  }

  // What others read of the stretch's values, in order.
  std::vector<ValueId> results(const Stretch& stretch) const {
    std::set<int32_t> inside(stretch.nodes.begin(), stretch.nodes.end());
    std::vector<char> read(old_.values.size(), 0);
    for (size_t n = 0; n < old_.nodes.size(); ++n)
      if (!inside.contains(static_cast<int32_t>(n)))
        for (ValueId v : old_.nodes[n].inputs) read[v] = 1;
    for (const Graph::Output& output : old_.outputs) read[output.value] = 1;
    std::vector<ValueId> values;
    for (int32_t n : stretch.nodes)
      if (read[old_.nodes[n].output]) values.push_back(old_.nodes[n].output);
    return values;
  }

  Status outline(const Stretch& stretch) {
    auto control = std::make_shared<Control>();
    Graph& body = control->bodies.emplace_back();
    body.name = "on_companion";
    body.symbols = old_.symbols;
    body.continue_names(old_);
    std::vector<ValueId> inner(old_.values.size(), kNoValue), operands;
    std::set<int32_t> inside(stretch.nodes.begin(), stretch.nodes.end());
    for (int32_t n : stretch.nodes) {
      for (ValueId v : old_.nodes[n].inputs) {
        const Node* from = old_.def(v);
        if (inner[v] != kNoValue || inside.contains(old_.values[v].node)) continue;
        if (from && is_free(*from)) {
          QUERNEL_CHECK(copy(*from, body, inner));
        } else {
          inner[v] = body.add_input(old_.values[v].name, old_.values[v].type);
          operands.push_back(mapped_[v]);
        }
      }
      QUERNEL_CHECK(copy(old_.nodes[n], body, inner));
    }
    std::vector<ValueId> given = results(stretch);
    for (ValueId v : given) body.outputs.push_back({old_.values[v].name, inner[v]});
    Location location = old_.nodes[stretch.nodes[0]].location;
    Attributes attributes;
    attributes.control = std::move(control);
    QUERNEL_TRY(ValueId token, graph_.add(OpKind::k_on_companion, std::move(operands), std::move(attributes),
                                          location, "on_companion"));
    for (size_t k = 0; k < given.size(); ++k) {
      const Value& value = old_.values[given[k]];
      Attributes result;
      result.ints = {static_cast<int64_t>(k)};
      result.dtype = value.type.dtype;
      result.shape = value.type.shape;
      QUERNEL_TRY(mapped_[given[k]],
                  graph_.add(OpKind::k_result, {token}, std::move(result), location, value.name));
    }
    return {};
  }

  const Graph& old_;
  const std::vector<char>& on_companion_;
  Graph graph_;
  std::vector<ValueId> mapped_;
  std::vector<Stretch> stretches_;
};

}  // namespace

Expected<Graph> move_to_companion(const Graph& graph, const std::vector<char>& on_companion) {
  return Mover(graph, on_companion).run();
}

}  // namespace quernel
