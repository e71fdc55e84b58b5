// Gives the next value of each state its place: that of the current one.
#include <algorithm>

#include "schedule/in_place.h"
#include "schedule/steps.h"
#include "schedule/storage.h"

namespace quernel::schedule {
namespace {

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
  // In the workspace, alone and whole, and no input or output.
  bool has_own_buffer(ValueId v) const {
    const Storage& storage = s_.storage[v];
    const Buffer& buffer = s_.buffers[storage.buffer];
    return buffer.kind == BufferKind::kWorkspace && buffer.slot < 0 && storage.offset == Dim(0) &&
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

// Appends a group that copies the state's next value, and makes the copy that value.
Status copy_last(Schedule& schedule, const Graph::State& state) {
  Graph& graph = schedule.graph;
  Graph::Output& output = graph.outputs[state.output];
  Group group;
  group.anchor = static_cast<int>(graph.nodes.size());
  group.nodes = {group.anchor};
  group.reads = {output.value};
  QUERNEL_TRY(output.value, graph.add(OpKind::k_contiguous, {output.value}, {}, {}, output.name));
  group.outputs = {output.value};
  schedule.groups.push_back(std::move(group));
  Buffer buffer;
  buffer.dtype = graph.dtype(output.value);
  buffer.bytes = byte_size(buffer.dtype, element_count(graph.shape(output.value))).upper_bound();
  buffer.name = output.name;
  schedule.storage.push_back(
      {static_cast<int>(schedule.buffers.size()), 0, contiguous_strides(graph.shape(output.value))});
  schedule.buffers.push_back(std::move(buffer));
  return {};
}

}  // namespace

Status place_states(Schedule& schedule) {
  std::vector<Storage> placed = schedule.storage;
  for (;;) {
    std::vector<size_t> clashes;
    StatePlacer placer(schedule);
    for (size_t i = 0; i < schedule.graph.states.size(); ++i)
      if (!placer.place(schedule.graph.states[i])) clashes.push_back(i);
    if (clashes.empty()) return {};
    // A copy reads what it copies last of all, which other states then heed.
    schedule.storage = std::move(placed);
    for (size_t i : clashes) QUERNEL_CHECK(copy_last(schedule, schedule.graph.states[i]));
    placed = schedule.storage;
  }
}

}  // namespace quernel::schedule
