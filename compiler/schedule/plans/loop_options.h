// The choices that the loops of one kernel have.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/plans/loop_choice.h"
#include "schedule/schedule.h"
#include "targets/target.h"

namespace quernel::schedule {

struct LoopOptions {
  std::string key;                // of the kernel, in a file of choices
  std::vector<LoopChoice> legal;  // the estimated one first, then by estimated speed; all with its group_work
  int64_t most_rows = 1;          // of windows
};
// Returns the one of the legal choices that a kernel gets; its group_work and rows may be others.
using PickLoops = std::function<LoopChoice(const LoopOptions& options)>;

// Returns those of a kernel about which only the work per workgroup can be chosen.
LoopOptions work_options(const Schedule& schedule, const Group& group);
// Returns the legal choice that `wanted` says, complete, or nullopt.
std::optional<LoopChoice> legal_choice(const LoopOptions& options, const LoopChoice& wanted,
                                       const Target& target);
// Returns whether workgroups of this kernel may do so much work.
bool is_legal_work(int64_t group_work, const Target& target);
// Says what is legal, for a diagnostic.
std::string legal_text(const LoopOptions& options, const Target& target);

}  // namespace quernel::schedule
