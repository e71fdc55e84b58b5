// Values that are known while importing: shape arithmetic, weights and whatever is computed from them.
#pragma once

#include <set>
#include <vector>

#include "graph/ir.h"

namespace quernel {

// Evaluates values of a graph under construction on demand, through the interpreter. An evaluated node is
// turned into a constant in place, so nothing is computed twice; what nobody asks for stays as it is (a later
// pass folds or drops it).
class ConstantFolder {
 public:
  explicit ConstantFolder(Graph& graph) : graph_(graph) {}

  // The value as a constant; null when it depends on a graph input, or when computing it exceeds the limits
  // below.
  const Tensor* evaluate(ValueId value);
  // Adds the graph inputs that the value depends on, but for those that an earlier call has added.
  void collect_inputs(ValueId value, std::set<ValueId>& inputs);

 private:
  static constexpr int64_t kMaxElements = 1 << 20;  // of every intermediate
  static constexpr int64_t kMaxWork = 1 << 24;      // scalar steps of one node

  bool is_known(ValueId value);
  bool is_cheap(const Node& node) const;

  Graph& graph_;
  std::vector<bool> known_;
  std::vector<bool> collected_;  // values that collect_inputs has walked through
};

}  // namespace quernel
