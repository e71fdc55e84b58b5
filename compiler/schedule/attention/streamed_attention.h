// Recognises attention of few rows, which a kernel computes while it streams through keys and values.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "schedule/attention/stream_plan.h"
#include "targets/target.h"

namespace quernel::schedule {

// Finds it in a graph, by the contraction that multiplies the values.
//   x = f(contract(q, k)); contract(softmax(x), v), where each key serves at most 16 rows of q at a position, and there
//   is one position, or a few, or keys are many and limits of what a position sees are known
class StreamedAttentions {
 public:
  // `graph` must outlive this object, unchanged.
  StreamedAttentions(const Graph& graph, const Target& target);

  // Returns the plan if `node` is the last contraction of such attention, and nothing else reads what is computed on
  // the way. Keys are contiguous along what the scores sum over, values along the result's columns. The plan has no
  // limits yet.
  std::optional<StreamPlan> find(int node) const;

 private:
  bool only_read_by(ValueId v, const std::vector<int>& readers) const;

  const Graph& g_;
  const Target& target_;
  std::vector<std::vector<int>> readers_;  // per value: nodes; -1: the graph's outputs and run-time symbols
};

// Adds the limits of keys that conditions on x say. `is_stored`: whether a kernel can load the value.
void find_key_limits(const Graph& graph, const std::function<bool(ValueId)>& is_stored, StreamPlan& plan);

}  // namespace quernel::schedule
