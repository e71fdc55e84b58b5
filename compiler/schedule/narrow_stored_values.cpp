// Where a chain of elementwise nodes is cut between the group that begins it and the group that reads its end:
// at the narrowest value. Each element is computed once either way; only what is stored in between differs.
#include <algorithm>
#include <set>

#include "schedule/kernel_limits.h"
#include "schedule/steps.h"

namespace quernel::schedule {
namespace {

class Narrower {
 public:
  Narrower(Schedule& schedule, const Target& target)
      : s_(schedule),
        g_(schedule.graph),
        target_(target),
        readers_(g_.values.size()),
        is_output_(g_.values.size(), 0),
        group_of_(g_.nodes.size(), -1),
        is_member_(g_.nodes.size(), 0) {
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      for (ValueId v : g_.nodes[i].inputs) readers_[v].push_back(static_cast<int>(i));
    for (const Graph::Output& output : g_.outputs) is_output_[output.value] = 1;
    for (const Graph::SymbolSource& source : g_.symbol_sources) is_output_[source.value] = 1;
    for (size_t i = 0; i < s_.groups.size(); ++i) {
      for (int n : s_.groups[i].nodes) group_of_[n] = static_cast<int>(i), is_member_[n] = 1;
      for (int n : s_.groups[i].inlined) group_of_[n] = static_cast<int>(i);
    }
  }

  void run() {
    for (size_t i = 0; i < s_.groups.size(); ++i) {
      const std::vector<ValueId> stored = s_.groups[i].outputs;
      for (ValueId v : stored) narrow(static_cast<int>(i), v);
    }
  }

 private:
  // A group that reads a value, and how it would evaluate the value itself.
  struct Reader {
    int group = -1;
    bool at_own_indices = false;  // with the group's nodes; else as a prologue
  };

  int bits(ValueId v) const { return bit_width(g_.dtype(v)); }

  bool is_view(const Node& node) const {
    return is_movement(node.op) && group_of_[g_.values[node.output].node] < 0;
  }

  double size(ValueId v) const { return static_cast<double>(element_count(g_.shape(v)).estimate()); }

  // The one group that reads the value, directly or through movement, and each element about once; -1: none.
  Reader reader_of(ValueId v) const {
    Reader reader;
    double read = 0;
    std::vector<ValueId> seen_as{v};  // through movement
    while (!seen_as.empty()) {
      const ValueId x = seen_as.back();
      seen_as.pop_back();
      for (int n : readers_[x]) {
        const Node& node = g_.nodes[n];
        if (is_view(node)) {
          if (is_output_[node.output]) return {};
          seen_as.push_back(node.output);
          continue;
        }
        const int group = group_of_[n];
        if (!is_member_[n] || (reader.group >= 0 && group != reader.group)) return {};
        const Group& into = s_.groups[group];
        const bool reduces = into.kind == GroupKind::kReduce && n == into.anchor;
        const bool own = x == v && !reduces && g_.shape(v) == g_.shape(g_.nodes[into.anchor].output);
        const bool takes_prologues = into.kind == GroupKind::kMap || into.kind == GroupKind::kContract ||
                                     into.kind == GroupKind::kReduce;
        if (!takes_prologues || !(reduces || is_elementwise(node.op))) return {};
        if (reader.group >= 0 && reader.at_own_indices != own) return {};
        reader = {group, own};
        read += own ? 0 : size(x);
      }
    }
    return read > kMostRepeats * size(v) ? Reader{} : reader;
  }

  // A constant, or one seen through movement.
  bool is_constant(ValueId v) const {
    const Node* node = g_.def(v);
    while (node && is_view(*node)) node = g_.def(node->inputs[0]);
    return node && node->op == OpKind::k_constant;
  }

  bool is_member_of(ValueId v, int group) const {
    const int n = g_.values[v].node;
    return n >= 0 && is_member_[n] && group_of_[n] == group;
  }

  // Whether another group may compute the node: from values of this group and constants.
  bool may_move(int n, int from) const {
    const Node& node = g_.nodes[n];
    return is_elementwise(node.op) && n != s_.groups[from].anchor && !is_packed(g_.dtype(node.output)) &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return is_member_of(v, from) || is_constant(v); });
  }

  bool is_stored(ValueId v, int group) const {
    const std::vector<ValueId>& outputs = s_.groups[group].outputs;
    return std::find(outputs.begin(), outputs.end(), v) != outputs.end();
  }

  // What the nodes read of the other values of their group.
  std::set<ValueId> operands(const std::vector<int>& nodes, int group) const {
    std::set<ValueId> values;
    for (int n : nodes)
      for (ValueId v : g_.nodes[n].inputs)
        if (is_member_of(v, group) && std::find(nodes.begin(), nodes.end(), g_.values[v].node) == nodes.end())
          values.insert(v);
    return values;
  }

  // The end of the chain that computes `v` for which the group stores the fewest bits per element, and only
  // values narrower than `v`; none where `v` itself is the narrowest.
  std::vector<int> chain_to_move(ValueId v, int from, size_t most) const {
    std::vector<int> chain, best;
    int fewest = bits(v);
    const std::vector<int>& nodes = s_.groups[from].nodes;
    for (size_t i = nodes.size(); i-- > 0 && chain.size() < most;) {
      const ValueId x = g_.nodes[nodes[i]].output;
      const bool is_end = x == v;
      if (chain.empty() != is_end || (!is_end && is_stored(x, from)) || !may_move(nodes[i], from)) continue;
      const bool only_here = std::all_of(readers_[x].begin(), readers_[x].end(), [&](int n) {
        return std::find(chain.begin(), chain.end(), n) != chain.end();
      });
      if (!is_end && !only_here) continue;
      chain.push_back(nodes[i]);
      int stored = 0, widest = 0;
      for (ValueId operand : operands(chain, from)) {
        stored += is_stored(operand, from) ? 0 : bits(operand);
        widest = std::max(widest, is_packed(g_.dtype(operand)) ? bits(v) : bits(operand));
      }
      if (stored >= fewest || widest >= bits(v)) continue;
      fewest = stored;
      best = chain;
    }
    return best;
  }

  // Stored values that a kernel of these nodes binds.
  size_t bindings(const std::vector<int>& nodes) const {
    std::set<ValueId> seen, bound;
    std::vector<ValueId> stack;
    for (int n : nodes) seen.insert(g_.nodes[n].output);
    for (int n : nodes) stack.insert(stack.end(), g_.nodes[n].inputs.begin(), g_.nodes[n].inputs.end());
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second) continue;
      const Node* node = g_.def(v);
      if (!node || node->op == OpKind::k_constant || group_of_[g_.values[v].node] >= 0)
        bound.insert(v);
      else
        stack.insert(stack.end(), node->inputs.begin(), node->inputs.end());
    }
    return bound.size();
  }

  void narrow(int from, ValueId v) {
    if (is_output_[v] || is_packed(g_.dtype(v))) return;
    const Reader reader = reader_of(v);
    if (reader.group < 0 || reader.group == from) return;
    Group& into = s_.groups[reader.group];
    const size_t held = into.nodes.size() + into.inlined.size();
    if (held >= kMostGroupNodes) return;
    const std::vector<int> chain = chain_to_move(v, from, kMostGroupNodes - held);
    if (chain.empty()) return;
    if (target_.bindings_are_few()) {
      std::vector<int> all = into.nodes;
      all.insert(all.end(), into.inlined.begin(), into.inlined.end());
      all.insert(all.end(), chain.begin(), chain.end());
      if (bindings(all) + into.outputs.size() > kMostBindingsOfGpu - 2) return;
    }
    move(chain, from, reader);
  }

  void move(const std::vector<int>& chain, int from, const Reader& reader) {
    Group &group = s_.groups[from], &into = s_.groups[reader.group];
    const std::set<ValueId> operands_of_chain = operands(chain, from);
    for (int n : chain) {
      std::erase(group.nodes, n);
      std::erase(group.outputs, g_.nodes[n].output);
      group_of_[n] = reader.group;
      is_member_[n] = reader.at_own_indices;
      (reader.at_own_indices ? into.nodes : into.inlined).push_back(n);
    }
    for (ValueId v : operands_of_chain)
      if (!is_stored(v, from)) group.outputs.push_back(v);
    std::sort(group.outputs.begin(), group.outputs.end(),
              [&](ValueId a, ValueId b) { return g_.values[a].node < g_.values[b].node; });
    std::sort(into.inlined.begin(), into.inlined.end());
    std::sort(into.nodes.begin(), into.nodes.end());
    if (into.kind == GroupKind::kMap) into.anchor = into.nodes.front();
  }

  Schedule& s_;
  const Graph& g_;
  const Target& target_;
  std::vector<std::vector<int>> readers_;  // per value: nodes
  std::vector<char> is_output_;            // per value: of the graph, or the source of a symbol
  std::vector<int> group_of_;              // per node: the group that evaluates it; -1: whoever reads it
  std::vector<char> is_member_;            // per node: at the group's own indices
};

}  // namespace

void narrow_stored_values(Schedule& schedule, const Target& target) { Narrower(schedule, target).run(); }

}  // namespace quernel::schedule
