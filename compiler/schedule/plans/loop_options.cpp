#include "schedule/plans/loop_options.h"

#include <algorithm>

#include "schedule/plans/loop_key.h"
#include "schedule/plans/plan_loops.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kMostWork = 1 << 30;
// A GPU's driver may end loops of 65,535 iterations.
constexpr int64_t kMostVectorsOfGpu = 256;

int64_t most_work(const Target& target) {
  return target.lanes_are_invocations() ? kMostVectorsOfGpu * target.lanes(4) : kMostWork;
}

}  // namespace

bool is_legal_work(int64_t group_work, const Target& target) {
  if (!target.shares_work()) return group_work == Target::kAllWork;
  const bool whole = !target.lanes_are_invocations() || group_work % target.lanes(4) == 0;
  return group_work > 0 && group_work <= most_work(target) && whole;
}

std::optional<LoopChoice> legal_choice(const LoopOptions& options, const LoopChoice& wanted,
                                       const Target& target) {
  auto found = std::find_if(options.legal.begin(), options.legal.end(), [&](const LoopChoice& c) {
    return wanted.along == LoopChoice::kEstimated ||
           (c.along == wanted.along && c.tiles == wanted.tiles && c.across == wanted.across &&
            c.windows == wanted.windows);
  });
  if (found == options.legal.end() || wanted.rows > options.most_rows) return std::nullopt;
  LoopChoice choice = *found;
  if (wanted.rows != 0) choice.rows = wanted.rows;
  if (wanted.group_work != 0) choice.group_work = wanted.group_work;
  return is_legal_work(choice.group_work, target) ? std::optional(choice) : std::nullopt;
}

std::string legal_text(const LoopOptions& options, const Target& target) {
  std::string text;
  bool windows = false;
  for (LoopChoice choice : options.legal) {
    windows = windows || choice.windows >= 0;
    choice.rows = choice.group_work = 0;
    std::string one = to_string(choice);
    if (!one.empty()) text += (text.empty() ? "'" : ", '") + one + "'";
  }
  if (windows) text += ", with 'rows' up to " + std::to_string(options.most_rows);
  if (!target.shares_work()) return text.empty() ? "no choice" : text;
  text += text.empty() ? "'group' " : ", with 'group' ";
  if (target.lanes_are_invocations()) text += "of a multiple of " + std::to_string(target.lanes(4)) + " ";
  return text + "up to " + std::to_string(most_work(target));
}

LoopOptions work_options(const Schedule& schedule, const Group& group) {
  LoopChoice estimated;
  estimated.group_work = group.work.group_work;
  return {.key = work_key(schedule, group), .legal = {estimated}};
}

std::optional<LoopOptions> loop_options(const KernelPlace& kernel) {
  const Group& group = kernel.group;
  std::optional<LoopOptions> found;
  const PickLoops note = [&](const LoopOptions& options) {
    found = options;
    return options.legal[0];
  };
  switch (group.kind) {
    case GroupKind::kMap:
      plan_map(kernel, note);
      break;
    case GroupKind::kReduce:
      plan_reduce(kernel, note);
      break;
    case GroupKind::kOrdered:
      if (group.scan.extents.empty()) return work_options(kernel.schedule, group);
      plan_scan(kernel, note);
      break;
    default:
      if (!group.key.empty() && group.kind != GroupKind::kContract)
        return work_options(kernel.schedule, group);
  }
  return found;
}

}  // namespace quernel::schedule
