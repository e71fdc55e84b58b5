// Fusion. Groups are numbered in execution order and a group depends on lower numbers only: a node may join
// the latest group among its operands' if it reads that group's values at its own indices, so no cycle can
// arise and the walk is linear.
#include <algorithm>
#include <limits>
#include <set>

#include "graph/control.h"
#include "schedule/byte_lookup.h"
#include "schedule/kernel_limits.h"
#include "schedule/steps.h"

namespace quernel::schedule {
namespace {

// A contraction's packed operand with its scales and zero points, or a sort's scratch, are bound, too.
size_t most_bindings(const Target& target) {
  return target.bindings_are_few() ? kMostBindingsOfGpu - 3 : std::numeric_limits<size_t>::max();
}

bool is_ordered(OpKind op) { return is_scan(op) || is_scatter(op) || op == OpKind::k_argsort; }

class Former {
 public:
  Former(Schedule& schedule, const Target& target)
      : s_(schedule),
        g_(schedule.graph),
        most_bindings_(most_bindings(target)),
        joins_lookups_(!target.has_caches()),
        definers_(symbol_definers(schedule.graph)),
        group_of_(g_.values.size(), -1),
        member_(g_.values.size(), 0),
        stored_(g_.values.size(), 1) {}

  void run() {
    for (const Graph::Output& output : g_.outputs) is_output_.insert(output.value);
    for (const Graph::SymbolSource& source : g_.symbol_sources) is_output_.insert(source.value);
    find_derived_constants();
    for (size_t i = 0; i < g_.nodes.size(); ++i) place(static_cast<int>(i));
    leave_to_readers();
    fuse_prologues();
    find_outputs();
    compact();
  }

 private:
  // Elements of a value, for typical values of the symbols.
  double size(ValueId v) const { return static_cast<double>(element_count(g_.shape(v)).estimate()); }

  int start(GroupKind kind, int node) {
    Group group;
    group.kind = kind;
    group.anchor = node;
    group.nodes = {node};
    s_.groups.push_back(std::move(group));
    ValueId v = g_.nodes[node].output;
    member_[v] = 1;
    group_of_[v] = static_cast<int>(s_.groups.size()) - 1;
    bindings_.emplace_back();
    bind(group_of_[v], g_.nodes[node]);
    return group_of_[v];
  }

  // What is computed of constants, and read by elementwise nodes alone, joins the group of its first reader.
  void find_derived_constants() {
    derived_.assign(g_.values.size(), 0);
    for (const Node& node : g_.nodes) {
      if (!is_elementwise(node.op))
        for (ValueId v : node.inputs) derived_[v] = 0;
      if (!is_elementwise(node.op) || node.inputs.empty() || is_output_.count(node.output)) continue;
      derived_[node.output] = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
        const Node* operand = g_.def(v);
        if (operand && operand->op == OpKind::k_expand) operand = g_.def(operand->inputs[0]);
        return derived_[v] || (operand && operand->op == OpKind::k_constant && !is_packed(g_.dtype(v)));
      });
    }
  }

  // `group` computes what the node at `index` reads of them, before its node `reader`.
  void adopt_derived_constants(int index, int group, int reader) {
    for (ValueId v : g_.nodes[index].inputs) {
      if (!derived_[v] || member_[v]) continue;
      adopt_derived_constants(g_.values[v].node, group, reader);
      std::vector<int>& nodes = s_.groups[group].nodes;
      nodes.insert(std::find(nodes.begin(), nodes.end(), reader), g_.values[v].node);
      bind(group, *g_.def(v));
      group_of_[v] = group;
      member_[v] = 1;
    }
  }

  // What a group binds at most: its members, all of which may be stored, and what they read.
  struct Bindings {
    size_t count = 0;
    std::set<ValueId> operands;
  };
  size_t bindings_with(int group, const Node& node) const {
    const Bindings& known = bindings_[static_cast<size_t>(group)];
    size_t count = known.count + 1;
    for (ValueId v : node.inputs)
      if (!known.operands.contains(v) && !(member_[v] && group_of_[v] == group)) count += stored_[v];
    return count;
  }
  void bind(int group, const Node& node) {
    Bindings& known = bindings_[static_cast<size_t>(group)];
    known.count += 1;
    for (ValueId v : node.inputs)
      if (!(member_[v] && group_of_[v] == group) && known.operands.insert(v).second)
        known.count += stored_[v];
  }

  int latest_operand_group(const Node& node) const {
    int latest = -1;
    for (ValueId v : node.inputs) latest = std::max(latest, group_of_[v]);
    for (ValueId v : sources_of(node)) latest = std::max(latest, group_of_[v]);
    return latest;
  }

  // The values from which the run-time symbols that the node mentions are read, and the loops that set them.
  std::vector<ValueId> sources_of(const Node& node) const {
    std::vector<ValueId> sources;
    if (definers_.empty()) return sources;
    for (const Symbol& s : symbols_of(g_, node))
      if (auto it = definers_.find(s.name); it != definers_.end()) sources.push_back(it->second);
    return sources;
  }

  void place(int index) {
    const Node& node = g_.nodes[index];
    ValueId v = node.output;
    if (node.op == OpKind::k_constant) {
      stored_[v] = g_.constant(v)->count() == 1 ? 0 : 1;
      return;
    }
    if (node.op == OpKind::k_contract) return void(start(GroupKind::kContract, index));
    if (is_winograd(node.op)) return void(start(GroupKind::kWinograd, index));
    if (is_reduce(node.op)) return void(start(GroupKind::kReduce, index));
    if (node.op == OpKind::k_cat) return void(start(GroupKind::kCat, index));
    if (is_ordered(node.op)) return void(start(GroupKind::kOrdered, index));
    if (is_control(node.op)) return void(start(GroupKind::kControl, index));
    if (node.op == OpKind::k_custom) return void(start(GroupKind::kCustom, index));
    if (node.op == OpKind::k_result) {
      group_of_[v] = group_of_[node.inputs[0]];
      member_[v] = 1;
      s_.groups[group_of_[v]].nodes.push_back(index);
      return;
    }
    if (derived_[v] || node.op == OpKind::k_dequantize)
      return;  // a quantised constant is packed for its readers
    int latest = latest_operand_group(node);
    if (node.op == OpKind::k_dequantize_rows) {  // read as bytes by contractions
      group_of_[v] = latest;
      stored_[v] = static_cast<int>(node.inputs.size());
      return;
    }
    if (has_index_map(node) && node.op != OpKind::k_contiguous && !is_output_.count(v)) {
      group_of_[v] = latest;  // read through its index map by whoever needs it
      stored_[v] = 0;
      for (ValueId x : node.inputs) stored_[v] = std::min(stored_[v] + stored_[x], kMostBindingsOfGpu);
      return;
    }
    if ((is_elementwise(node.op) || joins_as_lookup(node)) && latest >= 0 && can_join(node, latest)) {
      s_.groups[latest].nodes.push_back(index);
      bind(latest, node);
      group_of_[v] = latest;
      member_[v] = 1;
      adopt_derived_constants(index, latest, index);
      return;
    }
    adopt_derived_constants(index, start(GroupKind::kMap, index), index);
  }

  // Whether a lookup in a table of 256 elements joins the kernel that computes its indices. On a processor with
  // caches it is a map of its own, whose vectors hold more bytes than those of kernels of wider types.
  bool joins_as_lookup(const Node& node) const { return joins_lookups_ && is_byte_lookup(g_, node); }

  bool can_join(const Node& node, int group) const {
    const Group& target = s_.groups[group];
    // Packed values are written two at a time, by a kernel of their own.
    if (is_packed(g_.dtype(node.output)) || is_packed(g_.dtype(g_.nodes[target.anchor].output))) return false;
    bool alone = target.kind == GroupKind::kCat || target.kind == GroupKind::kOrdered ||
                 target.kind == GroupKind::kControl || target.kind == GroupKind::kCustom;
    if (alone || target.nodes.size() >= kMostGroupNodes || bindings_with(group, node) > most_bindings_)
      return false;
    bool direct = false;
    for (ValueId v : sources_of(node))
      if (group_of_[v] == group) return false;  // the symbol has to be read first
    for (ValueId v : node.inputs) {
      if (group_of_[v] != group) continue;
      if (!member_[v]) return false;  // another element of this very group
      direct = true;
    }
    return direct && g_.shape(node.output) == g_.shape(g_.nodes[target.anchor].output);
  }

  // What a single group reads, once, and computes of one value of another that is stored anyway, is not stored next to it: the
  // squares of a sum, of which a norm needs both.
  void leave_to_readers() {
    constexpr int kSeveral = -2, kNone = -1;
    std::vector<int> reader(g_.values.size(),
                            kNone);  // of a value: the group that reads it, its own one aside
    std::vector<char> read_within(g_.values.size(), 0);
    for (const Node& node : g_.nodes)
      for (ValueId v : node.inputs) {
        const bool reads_at_index = member_[node.output] && is_elementwise(node.op);
        const int group = group_of_[node.output];
        if (member_[v] && member_[node.output] && group == group_of_[v])
          read_within[v] = 1;
        else if (reader[v] == kNone || reader[v] == group)
          reader[v] = reads_at_index || is_reduce(node.op) ? group : kSeveral;
        else
          reader[v] = kSeveral;
      }
    for (size_t i = g_.nodes.size(); i-- > 0;) {
      const Node& node = g_.nodes[i];
      const ValueId v = node.output;
      if (!member_[v] || reader[v] < 0 || read_within[v] || is_output_.count(v) || !is_elementwise(node.op))
        continue;
      Group& own = s_.groups[group_of_[v]];
      Group& into = s_.groups[reader[v]];
      if (own.anchor == static_cast<int>(i) || into.kind == GroupKind::kContract) continue;
      // One stored operand, no wider than the value; others are constants of one element.
      ValueId source = kNoValue;
      const bool fits = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId x) {
        if (stored_[x] == 0 && g_.constant(x)) return true;
        const bool is_first = source == kNoValue;
        source = is_first ? x : source;
        return x == source;
      });
      if (!fits || source == kNoValue || !member_[source] || group_of_[source] != group_of_[v] ||
          (reader[source] == kNone && !is_output_.count(source)) ||
          element_size(g_.dtype(source)) > element_size(g_.dtype(v)) || !has_room(reader[v], group_of_[v]))
        continue;
      member_[v] = 0;
      std::erase(own.nodes, static_cast<int>(i));
      into.inlined.push_back(static_cast<int>(i));
    }
  }

  // Whether a group may evaluate one more node of another.
  bool has_room(int group, int of) const {
    const Group& into = s_.groups[group];
    return into.kind != GroupKind::kCat && into.nodes.size() + into.inlined.size() < kMostGroupNodes &&
           bindings_[static_cast<size_t>(group)].count + bindings_[static_cast<size_t>(of)].count <=
               most_bindings_;
  }

  // A value computed elementwise with a single consuming group is not stored: the consumer evaluates it where
  // it reads it.
  void fuse_prologues() {
    size_t count = g_.values.size();
    // Per value: the groups that need it, through movement, and how many elements they read at most.
    std::vector<std::set<int>> consumers(count);
    std::vector<double> read(count, 0);
    std::vector<char> pinned(count, 0);  // needed in memory
    for (ValueId v : is_output_) pinned[v] = 1;
    for (size_t i = g_.nodes.size(); i-- > 0;) {
      const Node& node = g_.nodes[i];
      bool inlined = !member_[node.output];
      for (ValueId v : node.inputs) {
        if (inlined) {
          consumers[v].insert(consumers[node.output].begin(), consumers[node.output].end());
          read[v] += read[node.output];
          pinned[v] |= pinned[node.output];
          continue;
        }
        int group = group_of_[node.output];
        if (group == group_of_[v] && member_[v]) continue;  // within the group, at the same index
        consumers[v].insert(group);
        bool whole = is_reduce(node.op) || node.op == OpKind::k_contract || is_winograd(node.op) ||
                     is_ordered(node.op);
        bool indirect = (node.op == OpKind::k_take || node.op == OpKind::k_gather_elements ||
                         node.op == OpKind::k_gather_nd) &&
                        v == node.inputs[0];
        read[v] += size(whole || node.op == OpKind::k_cat ? v : node.output);
        // A sort and overlapping tiles read each element many times.
        pinned[v] |= node.op == OpKind::k_contract || is_winograd(node.op) || node.op == OpKind::k_cat ||
                     node.op == OpKind::k_argsort || gives_token(node.op);
        pinned[v] |= indirect && size(node.output) > size(v);
      }
    }
    for (size_t index = s_.groups.size(); index-- > 0;) {
      Group& group = s_.groups[index];
      if (group.kind != GroupKind::kMap || g_.nodes[group.anchor].op == OpKind::k_contiguous) continue;
      // The one value that others need.
      ValueId result = kNoValue;
      int needed = 0;
      for (int n : group.nodes) {
        ValueId v = g_.nodes[n].output;
        if (!consumers[v].empty() || pinned[v]) ++needed, result = v;
      }
      if (needed != 1 || pinned[result] || consumers[result].size() != 1) continue;
      int target = find(*consumers[result].begin());
      Group& into = s_.groups[target];
      size_t bindings = bindings_[static_cast<size_t>(target)].count + bindings_[index].count;
      if (into.kind == GroupKind::kCat || bindings > most_bindings_ ||
          into.nodes.size() + into.inlined.size() + group.nodes.size() > kMostGroupNodes)
        continue;
      if (read[result] > kMostRepeats * size(result)) continue;
      merged_into_.resize(s_.groups.size(), -1);
      merged_into_[index] = target;
      bindings_[static_cast<size_t>(target)].count = bindings;
      for (int n : group.nodes) {
        member_[g_.nodes[n].output] = 0;
        into.inlined.push_back(n);
      }
      into.inlined.insert(into.inlined.end(), group.inlined.begin(), group.inlined.end());
      group.nodes.clear();
      group.inlined.clear();
    }
  }

  int find(int group) const {
    while (group < static_cast<int>(merged_into_.size()) && merged_into_[group] >= 0)
      group = merged_into_[group];
    return group;
  }

  void find_outputs() {
    // A member is stored if a graph output or anything outside the group reads it.
    for (size_t i = 0; i < group_of_.size(); ++i)
      if (group_of_[i] >= 0) group_of_[i] = find(group_of_[i]);
    std::vector<char> stored(g_.values.size(), 0);
    for (ValueId v : is_output_)
      if (member_[v]) stored[v] = 1;
    for (const Node& node : g_.nodes) {
      bool inlined = !member_[node.output];
      for (ValueId v : node.inputs)
        if (member_[v] && (inlined || group_of_[v] != group_of_[node.output])) stored[v] = 1;
    }
    for (Group& group : s_.groups)
      for (int n : group.nodes)
        if (stored[g_.nodes[n].output] || g_.nodes[n].op == OpKind::k_result)
          group.outputs.push_back(g_.nodes[n].output);
    // An inlined reader inside the same group as its operand (a merged prologue) does not need it stored.
  }

  void compact() {
    std::vector<Group> groups;
    for (Group& group : s_.groups)
      if (!group.nodes.empty()) groups.push_back(std::move(group));
    s_.groups = std::move(groups);
    for (Group& group : s_.groups) std::sort(group.inlined.begin(), group.inlined.end());
  }

  Schedule& s_;
  const Graph& g_;
  size_t most_bindings_;
  bool joins_lookups_;
  std::map<std::string, ValueId> definers_;  // of run-time symbols
  std::vector<int> group_of_;                // per value: the latest group it depends on, or belongs to
  std::vector<char> derived_;                // per value: find_derived_constants
  std::vector<char> member_;                 // per value: computed at its group's own indices
  std::vector<size_t> stored_;               // per value: what is loaded of stored values to evaluate it
  std::vector<Bindings> bindings_;           // per group
  std::vector<int> merged_into_;             // per group
  std::set<ValueId> is_output_;
};

}  // namespace

void form_groups(Schedule& schedule, const Target& target) { Former(schedule, target).run(); }

}  // namespace quernel::schedule
