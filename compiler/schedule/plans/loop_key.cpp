#include "schedule/plans/loop_key.h"

#include <algorithm>
#include <map>

#include "schedule/choice_words.h"
#include "schedule/plans/axes.h"

namespace quernel::schedule {
namespace {

using Counts = std::map<std::string, int>;

// "2*add,exp"
std::string text_of(const Counts& counts, const char* between) {
  std::string text;
  for (const auto& [word, count] : counts)
    text += (text.empty() ? "" : between) + (count > 1 ? std::to_string(count) + "*" : "") + word;
  return text;
}

std::string ops_of(const Graph& graph, const Group& group) {
  Counts counts;
  for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
    for (int n : *nodes)
      if (const OpKind op = graph.nodes[n].op; !is_movement(op) && op != OpKind::k_constant)
        ++counts[std::string(to_string(op))];
  return text_of(counts, ",");
}

}  // namespace

std::string loop_key(const Schedule& schedule, const Group& group, const LoopPlan& loops,
                     const AccessWalk& walk, std::string_view detail, std::string_view other) {
  const Graph& graph = schedule.graph;
  const int axes = static_cast<int>(loops.extents.size());
  std::string text(to_string(group.kind));
  if (std::string ops = ops_of(graph, group); !ops.empty()) text += " " + ops;
  if (!detail.empty()) text += " " + std::string(detail);
  text += " axes";
  for (int i = 0; i < axes; ++i) {
    const bool first_other = loops.classes[i] == 1 && (i == 0 || loops.classes[i - 1] == 0);
    text += (first_other ? " " + std::string(other) : "") + " " + key_word(loops.extents[i]);
  }
  Counts reads, writes;
  for (size_t a = 0; a < walk.accesses.size(); ++a) {
    const ValueId v = walk.values[a];
    std::string access(to_string(graph.dtype(v)));
    for (int i = 0; i < axes; ++i) {
      std::optional<Dim> stride = stride_along(walk.accesses[a], i, axes);
      access += ":" + (stride ? key_word(*stride) : "~");
    }
    const bool writes_it = std::find(group.outputs.begin(), group.outputs.end(), v) != group.outputs.end();
    ++(writes_it ? writes : reads)[access];
  }
  if (!reads.empty()) text += " reads " + text_of(reads, " ");
  return text + " writes " + text_of(writes, " ");
}

std::string work_key(const Schedule& schedule, const Group& group) {
  const Graph& graph = schedule.graph;
  auto types = [&](const std::vector<ValueId>& values) {
    Counts counts;
    for (ValueId v : values) {
      std::string type(to_string(graph.dtype(v)));
      for (const Dim& dim : graph.shape(v)) type += ":" + key_word(dim);
      ++counts[type];
    }
    return text_of(counts, " ");
  };
  std::string text(to_string(group.kind));
  if (std::string ops = ops_of(graph, group); !ops.empty()) text += " " + ops;
  if (!group.reads.empty()) text += " reads " + types(group.reads);
  return text + " writes " + types(group.outputs);
}

}  // namespace quernel::schedule
