// Writing in place: which groups may write a result over an operand, and the states, which live in one place
// from run to run.
#include <algorithm>
#include <unordered_set>

#include "schedule/schedule.h"

namespace quernel::schedule {
namespace {

bool contains(const std::vector<int>& list, int x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

// Whether evaluating `values` at the group's own indices reads `v` at those indices only: not through any
// movement op or prologue.
bool read_at_own_indices(const Schedule& s, const Group& group, ValueId v, std::vector<ValueId> values) {
  const Graph& g = s.graph;
  std::unordered_set<ValueId> seen;
  while (!values.empty()) {
    ValueId x = values.back();
    values.pop_back();
    if (!seen.insert(x).second || s.storage[x].valid()) continue;
    const Node* node = g.def(x);
    if (!node || contains(group.nodes, g.values[x].node)) continue;
    for (ValueId y : node->inputs) {
      if (y == v) return false;
      values.push_back(y);
    }
  }
  return true;
}

// A scatter that reads its template nowhere else: what it does not update stays as it is.
bool is_scatter_into(const Schedule& s, const Group& group, ValueId v) {
  const Node& node = s.graph.nodes[group.anchor];
  if (!is_scatter(node.op) || node.inputs[0] != v || node.inputs[1] == v || node.inputs[2] == v) return false;
  return read_at_own_indices(s, group, v, {node.inputs[1], node.inputs[2]});
}

bool reads_elementwise(const Schedule& s, const Group& group, ValueId v) {
  if (group.kind != GroupKind::kMap && group.kind != GroupKind::kContract) return false;
  const Graph& g = s.graph;
  std::vector<ValueId> operands;
  for (int n : group.nodes) {
    const std::vector<ValueId>& inputs = g.nodes[n].inputs;
    bool uses = std::find(inputs.begin(), inputs.end(), v) != inputs.end();
    if (uses && !is_elementwise(g.nodes[n].op)) return false;
    operands.insert(operands.end(), inputs.begin(), inputs.end());
  }
  return read_at_own_indices(s, group, v, std::move(operands));
}

class StatePlacer {
 public:
  explicit StatePlacer(Schedule& schedule) : s_(schedule), g_(schedule.graph) {}

  // Whether the state's next value could be placed.
  bool place(const Graph::State& state) {
    ValueId now = g_.inputs[state.input], next = g_.outputs[state.output].value;
    if (next == now) return true;
    if (!has_own_buffer(next)) return false;
    std::vector<ValueId> versions = versions_of(now, next);
    while (!versions.empty() && !may_replace(now, versions.front())) versions.erase(versions.begin());
    for (ValueId v : versions) move(s_.storage[v].buffer, s_.storage[now].buffer);
    return !versions.empty();
  }

 private:
  // In the workspace, alone and whole.
  bool has_own_buffer(ValueId v) const {
    const Storage& storage = s_.storage[v];
    const Buffer& buffer = s_.buffers[storage.buffer];
    return buffer.kind == BufferKind::kWorkspace && storage.offset == Dim(0) &&
           storage.strides == contiguous_strides(g_.shape(v)) &&
           buffer.bytes == byte_size(g_.dtype(v), element_count(g_.shape(v))).upper_bound();
  }

  std::vector<int> writers(int buffer) const {
    std::vector<int> found;
    for (size_t i = 0; i < s_.groups.size(); ++i)
      for (ValueId v : s_.groups[i].outputs)
        if (s_.storage[v].buffer == buffer) found.push_back(static_cast<int>(i));
    return found;
  }

  // Every read of `old` happens before the writes of `fresh`, or where they happen.
  bool may_replace(ValueId old, ValueId fresh) const {
    int buffer = s_.storage[old].buffer;
    for (int w : writers(s_.storage[fresh].buffer))
      for (size_t r = 0; r < s_.groups.size(); ++r)
        for (ValueId v : s_.groups[r].reads) {
          if (s_.storage[v].buffer != buffer || static_cast<int>(r) < w) continue;
          bool here = static_cast<int>(r) == w && v == old && s_.groups[r].outputs.size() == 1;
          if (!here || !may_write_over(s_, s_.groups[r], old, fresh)) return false;
        }
    return true;
  }

  // The values that lead to `next`, each written over the one before, latest last.
  std::vector<ValueId> versions_of(ValueId now, ValueId next) const {
    std::vector<ValueId> versions{next};
    for (ValueId before = next; before != kNoValue;) {
      std::vector<int> w = writers(s_.storage[versions.front()].buffer);
      before = kNoValue;
      if (w.size() != 1) break;
      for (ValueId v : s_.groups[w[0]].reads) {
        if (v == now || !has_own_buffer(v)) continue;
        if (may_replace(v, versions.front()) && may_write_over(s_, s_.groups[w[0]], v, versions.front())) {
          before = v;
          break;
        }
      }
      if (before != kNoValue) versions.insert(versions.begin(), before);
    }
    return versions;
  }

  void move(int from, int to) {
    for (Storage& storage : s_.storage)
      if (storage.buffer == from) storage.buffer = to;
  }

  Schedule& s_;
  const Graph& g_;
};

}  // namespace

bool may_write_over(const Schedule& s, const Group& group, ValueId operand, ValueId result) {
  const Graph& g = s.graph;
  if (group.outputs.size() != 1 || group.outputs[0] != result) return false;
  if (g.shape(operand) != g.shape(result) ||
      element_size(g.dtype(operand)) != element_size(g.dtype(result)) ||
      s.storage[operand].strides != s.storage[result].strides)
    return false;
  return is_scatter_into(s, group, operand) || reads_elementwise(s, group, operand);
}

int root_buffer(const Schedule& s, int buffer) {
  while (s.buffers[buffer].shares >= 0) buffer = s.buffers[buffer].shares;
  return buffer;
}

bool same_place(const Schedule& s, ValueId a, ValueId b) {
  const Storage &x = s.storage[a], &y = s.storage[b];
  return x.valid() && y.valid() && root_buffer(s, x.buffer) == root_buffer(s, y.buffer) &&
         x.offset == y.offset && x.strides == y.strides;
}

std::vector<size_t> place_states(Schedule& schedule) {
  std::vector<size_t> clashes;
  StatePlacer placer(schedule);
  for (size_t i = 0; i < schedule.graph.states.size(); ++i)
    if (!placer.place(schedule.graph.states[i])) clashes.push_back(i);
  return clashes;
}

}  // namespace quernel::schedule
