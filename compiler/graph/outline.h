// Building loops and branches: what a body computes is written into the graph as if it ran once, and then
// moved into a graph of its own. The nodes stay behind, dead: whoever builds ends with eliminate_dead_nodes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/build.h"

namespace quernel {

struct LoopSpec {
  std::string name;              // its symbol is called so, or similarly
  std::vector<ValueId> initial;  // values of what is carried
  std::optional<Dim> count;      // of iterations, at most
  ValueId condition =
      kNoValue;  // whether there is a first iteration: one bool; kNoValue: `count` alone decides
};
// What one iteration gives.
struct LoopStep {
  std::vector<ValueId> carried;  // of the types of the initial values
  std::vector<ValueId> scanned;
  // Whether there is another iteration, where the loop has a condition; kNoValue: always.
  ValueId condition = kNoValue;
};

// Builds a loop: `step` emits one iteration, given its number and the carried values, or gives nothing where
// it has failed. The carried results, then the scanned ones; nothing after a failure, which the builder holds
// unless it was the step's.
std::optional<std::vector<ValueId>> build_loop(
    GraphBuilder& build, const LoopSpec& spec,
    const std::function<std::optional<LoopStep>(const Dim& iteration, const std::vector<ValueId>& carried)>&
        step);

using BranchBody = std::function<std::optional<std::vector<ValueId>>()>;
// Builds a branch on one bool: the results of `yes` where it is true, else of `no`. A branch of at most
// `select_limit` elementwise nodes on each side becomes a choice between both results.
std::optional<std::vector<ValueId>> build_branch(GraphBuilder& build, const std::string& name,
                                                 ValueId condition, const BranchBody& yes,
                                                 const BranchBody& no, int select_limit);

}  // namespace quernel
