// Softmax and normalisations as one kernel: a row is read from memory once and stays in L1
// while all stages go over it, where kernels of their own would walk the whole tensor each.
#include <algorithm>
#include <set>

#include "schedule/group_reads.h"
#include "schedule/kernel_limits.h"
#include "schedule/steps.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kShortestRow = 16, kLongestRow = 1 << 16;
constexpr size_t kMostNodes = 192;  // of a chain: keeps kernels small enough to compile quickly
// An attention kernel also binds what its contractions read.
constexpr size_t kMostBindings = kMostBindingsOfGpu - 8;

struct Rows {
  Shape dims;
  Dim width = 0;
};

class RowFormer {
 public:
  // `any_length`: chains that a GPU's workgroup cannot share are formed, too, and keep their parts.
  RowFormer(Schedule& schedule, const Target& target, bool any_length)
      : s_(schedule),
        g_(schedule.graph),
        target_(target),
        any_length_(any_length),
        reads_(schedule),
        writer_(g_.values.size(), -1) {
    for (size_t i = 0; i < s_.groups.size(); ++i)
      for (ValueId v : s_.groups[i].outputs) writer_[v] = static_cast<int>(i);
  }

  void run() {
    std::vector<Group> groups;
    for (size_t first = 0; first < s_.groups.size();) {
      size_t end = chain_from(first);
      if (end > first + 1)
        groups.push_back(merge(first, end));
      else
        groups.push_back(std::move(s_.groups[first]));
      first = end;
    }
    s_.groups = std::move(groups);
  }

 private:
  // The rows that a group works on; nullopt where it is no stage.
  std::optional<Rows> rows_of(const Group& group) const {
    const Node& anchor = g_.nodes[group.anchor];
    bool reduces = group.kind == GroupKind::kReduce;
    bool positions = anchor.op == OpKind::k_reduce_argmax || anchor.op == OpKind::k_reduce_argmin;
    if ((!reduces && group.kind != GroupKind::kMap) || positions || anchor.op == OpKind::k_contiguous)
      return std::nullopt;
    for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
      for (int n : *nodes)
        if (is_packed(g_.dtype(g_.nodes[n].output))) return std::nullopt;
    Shape dims = g_.shape(reduces ? anchor.inputs[0] : anchor.output);
    if (dims.empty() || !has_length(dims.back())) return std::nullopt;
    if (reduces && anchor.attributes.ints != std::vector<int64_t>{static_cast<int64_t>(dims.size()) - 1})
      return std::nullopt;
    Rows rows{dims, dims.back()};
    rows.dims.pop_back();
    return rows;
  }

  // Rows of a length that only a run tells a GPU may take in parts.
  bool has_length(const Dim& width) const {
    bool in_parts =
        any_length_ && target_.workgroup_memory != 0 && width.is_bound() && width.bounds().lo >= 0;
    return width.is_const() || in_parts;
  }

  // A run-time symbol is read between kernels.
  bool gives_symbol(const Group& group) const {
    return std::any_of(
        g_.symbol_sources.begin(), g_.symbol_sources.end(), [&](const Graph::SymbolSource& source) {
          return std::find(group.outputs.begin(), group.outputs.end(), source.value) != group.outputs.end();
        });
  }

  bool reads_within(size_t group, size_t first) const {
    for (size_t i = first; i < group; ++i)
      for (ValueId v : s_.groups[i].outputs)
        if (reads_.readers(v).count(static_cast<int>(group))) return true;
    return false;
  }

  static size_t node_count(const Group& group) { return group.nodes.size() + group.inlined.size(); }

  // What the chain as one kernel binds at most: what others read of it, and what it reads.
  size_t binding_count(size_t first, size_t end) const {
    std::set<ValueId> bound, seen;
    std::vector<ValueId> stack;
    for (size_t i = first; i < end; ++i) {
      const Group& group = s_.groups[i];
      for (ValueId v : group.outputs)
        if (is_read_outside(v, first, end)) bound.insert(v);
      for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
        for (int n : *nodes) stack.insert(stack.end(), g_.nodes[n].inputs.begin(), g_.nodes[n].inputs.end());
    }
    while (!stack.empty()) {
      ValueId v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second) continue;
      int writer = writer_[v];
      if (writer >= static_cast<int>(first) && writer < static_cast<int>(end)) continue;
      const Node* node = g_.def(v);
      const Tensor* constant = g_.constant(v);
      if (writer >= 0 || !node || (constant && constant->count() != 1))
        bound.insert(v);
      else
        stack.insert(stack.end(), node->inputs.begin(), node->inputs.end());
    }
    return bound.size();
  }

  bool is_read_outside(ValueId v, size_t first, size_t end) const {
    const std::set<int>& readers = reads_.readers(v);
    return std::any_of(readers.begin(), readers.end(), [&](int reader) {
      return reader < static_cast<int>(first) || reader >= static_cast<int>(end);
    });
  }

  // The end of the longest chain of stages from `first` on; first + 1 where there is none.
  size_t chain_from(size_t first) const {
    std::optional<Rows> rows = rows_of(s_.groups[first]);
    if (!rows) return first + 1;
    Interval width = rows->width.bounds();
    if (rows->width.is_const() && (width.lo < kShortestRow || width.hi > kLongestRow)) return first + 1;
    size_t end = first + 1, nodes = node_count(s_.groups[first]);
    for (; end < s_.groups.size(); ++end) {
      nodes += node_count(s_.groups[end]);
      if (nodes > kMostNodes || (target_.bindings_are_few() && binding_count(first, end + 1) > kMostBindings))
        break;
      std::optional<Rows> next = rows_of(s_.groups[end]);
      bool same =
          next &&
          ((next->dims == rows->dims && next->width == rows->width) ||
           // one element for each row
           (s_.groups[end].kind == GroupKind::kMap && next->dims == rows->dims && next->width == Dim(1)));
      if (!same || gives_symbol(s_.groups[end - 1]) || !reads_within(end, first) ||
          !reads_.own_rows_only(end, first, rows->dims))
        break;
    }
    // What is read inside must not be read outside, too.
    for (bool shrunk = true; shrunk;) {
      shrunk = false;
      for (size_t i = first; i < end; ++i)
        for (ValueId v : s_.groups[i].outputs) {
          int inside = -1;
          bool outside = false;
          for (int reader : reads_.readers(v)) {
            bool in = reader > static_cast<int>(i) && reader < static_cast<int>(end);
            outside |= !in;
            if (in && (inside < 0 || reader < inside)) inside = reader;
          }
          if (outside && inside >= 0) end = static_cast<size_t>(inside), shrunk = true;
        }
    }
    bool reduces = std::any_of(s_.groups.begin() + static_cast<std::ptrdiff_t>(first),
                               s_.groups.begin() + static_cast<std::ptrdiff_t>(end),
                               [](const Group& group) { return group.kind == GroupKind::kReduce; });
    return reduces && (any_length_ || fits_workgroup(first, end)) ? end : first + 1;
  }

  bool is_read_within(ValueId v, size_t group, size_t end) const {
    const std::set<int>& readers = reads_.readers(v);
    auto next = readers.upper_bound(static_cast<int>(group));
    return next != readers.end() && *next < static_cast<int>(end);
  }

  // Whether a GPU's workgroup can share the rows between stages, and the lanes of its reductions.
  bool fits_workgroup(size_t first, size_t end) const {
    if (target_.workgroup_memory == 0) return true;
    if (!rows_of(s_.groups[first])->width.is_const()) return false;
    int64_t bytes = 0;
    for (size_t i = first; i < end; ++i)
      for (ValueId v : s_.groups[i].outputs)
        if (!g_.shape(v).empty() && g_.shape(v).back().is_const() && is_read_within(v, i, end))
          bytes += g_.shape(v).back().value() * std::max(4, element_size(g_.dtype(v)));
    return bytes <= target_.workgroup_memory * 3 / 4;
  }

  Group merge(size_t first, size_t end) {
    Group rows;
    rows.kind = GroupKind::kRows;
    if (!fits_workgroup(first, end))
      rows.parts.assign(s_.groups.begin() + static_cast<std::ptrdiff_t>(first),
                        s_.groups.begin() + static_cast<std::ptrdiff_t>(end));
    for (size_t i = first; i < end; ++i) {
      Group& group = s_.groups[i];
      if (rows.anchor < 0 && group.kind == GroupKind::kReduce) rows.anchor = group.anchor;
      RowStage stage{group.kind, group.anchor, {}, {}};
      for (ValueId v : group.outputs) {
        bool local = !is_read_outside(v, first, end);
        (local ? stage.locals : stage.outputs).push_back(v);
        if (!local) rows.outputs.push_back(v);
      }
      rows.stages.push_back(std::move(stage));
      rows.nodes.insert(rows.nodes.end(), group.nodes.begin(), group.nodes.end());
      rows.inlined.insert(rows.inlined.end(), group.inlined.begin(), group.inlined.end());
    }
    return rows;
  }

  Schedule& s_;
  const Graph& g_;
  const Target& target_;
  bool any_length_;
  GroupReads reads_;
  std::vector<int> writer_;  // per stored value
};

}  // namespace

void form_rows(Schedule& schedule, const Target& target) { RowFormer(schedule, target, true).run(); }

void split_long_rows(Schedule& schedule, const Target& target) {
  std::vector<Group> groups;
  bool split = false;
  for (Group& group : schedule.groups) {
    if (group.kind != GroupKind::kRows || group.parts.empty()) {
      groups.push_back(std::move(group));
      continue;
    }
    split = true;
    for (Group& part : group.parts) groups.push_back(std::move(part));
  }
  schedule.groups = std::move(groups);
  if (split) RowFormer(schedule, target, false).run();
}

}  // namespace quernel::schedule
