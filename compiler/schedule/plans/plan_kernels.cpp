// How the work of every kernel is divided. A workgroup of a CPU does a few microseconds of
// work, so that the cost of a call is negligible and threads can share a kernel.
#include <set>

#include "schedule/contraction/first_addend.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/contraction/plan_walk.h"
#include "schedule/plans/plan_loops.h"
#include "schedule/selection.h"
#include "schedule/steps.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kMapWork = 8192;           // elements
constexpr int64_t kReduceWork = 16384;       // terms
constexpr int64_t kStepWork = 16384;         // of scans and scatters
constexpr int64_t kSortWork = 4096;          // comparisons
constexpr int64_t kTransformWork = 1024;     // tiles of a Winograd transform
constexpr int64_t kAttentionWork = 1 << 16;  // multiply-adds; a GPU's workgroup has one block of rows

class KernelPlanner {
 public:
  KernelPlanner(const Schedule& schedule, const Target& target, Choices* choices)
      : s_(schedule), g_(schedule.graph), target_(target), choices_(choices) {}

  void plan(Group& group, const Item& item) {
    const KernelPlace kernel{s_, item, group, target_};
    WorkPlan& work = group.work;
    const PickLoops pick = [&](const LoopOptions& options) {
      group.key = options.key;
      const LoopChoice choice = chosen(options);
      work.group_work = choice.group_work;
      return choice;
    };
    switch (group.kind) {
      case GroupKind::kMap:
        work.group_work = target_.work_per_group(kMapWork);
        group.maps = plan_map(kernel, pick);
        break;
      case GroupKind::kCat:
        work.group_work = target_.work_per_group(kMapWork);
        pick(work_options(s_, group));
        group.maps = plan_cat(kernel);
        break;
      case GroupKind::kRows:
        work.group_work = target_.work_per_group(kMapWork);
        pick(work_options(s_, group));
        group.rows = plan_rows(kernel);
        break;
      case GroupKind::kReduce:
        work.group_work = target_.work_per_group(kReduceWork);
        group.reduce = plan_reduce(kernel, pick);
        break;
      case GroupKind::kOrdered: {
        const Node& node = g_.nodes[group.anchor];
        plan_steps(node, work);
        if (is_scan(node.op))
          group.scan = plan_scan(kernel, pick);
        else
          pick(work_options(s_, group));
        if (is_scatter(node.op)) group.scatter = plan_scatter(kernel);
        break;
      }
      case GroupKind::kWinograd:
        work.group_work = target_.work_per_group(kTransformWork);
        pick(work_options(s_, group));
        break;
      case GroupKind::kAttention:
        if (group
                .stream) {  // a workgroup for each part of the keys; as many rows as a map's when they are added
          work.group_work =
              group.stream->combines ? target_.work_per_group(kMapWork) : target_.work_per_group(1);
          break;
        }
        work.group_work = target_.lanes_are_invocations() ? 1 : target_.work_per_group(kAttentionWork);
        if (!target_.lanes_are_invocations()) pick(work_options(s_, group));
        for (Group& part : group.parts) {
          if (part.kind == GroupKind::kRows && group.block_keys == 0)
            part.rows = plan_rows({s_, item, part, target_});
          if (part.kind == GroupKind::kContract)
            part.contraction.walk =
                plan_walk_of_block(part.contraction, group.block_rows, dtypes(part), target_);
        }
        break;
      case GroupKind::kContract:
        if (group.winograd.tile == 0) {
          group.contraction.walk = plan_walk(group.contraction, dtypes(group), target_);
          if (!target_.lanes_are_invocations()) group.contraction.walk.first_addend = first_addend(g_, group);
        }
        break;
      case GroupKind::kControl:
      case GroupKind::kCustom:
        break;
    }
  }

  Diagnostics take_errors() { return std::move(errors_); }

 private:
  // The estimated choice, or that of the file.
  LoopChoice chosen(const LoopOptions& options) {
    const Choice* choice = choices_ ? choices_->find(target_.name, options.key) : nullptr;
    if (!choice) return options.legal[0];
    const LoopChoice* wanted = std::get_if<LoopChoice>(choice);
    std::optional<LoopChoice> legal =
        wanted ? legal_choice(options, *wanted, target_) : std::optional<LoopChoice>();
    if (legal) return *legal;
    if (refused_.insert(options.key).second)
      errors_.push_back(choices_->refuse(target_.name, options.key, legal_text(options, target_)));
    return options.legal[0];
  }

  void plan_steps(const Node& node, WorkPlan& work) const {
    bool sorts = !is_scan(node.op) && !is_scatter(node.op);
    work.group_work = target_.work_per_group(sorts ? kSortWork : kStepWork);
    work.selects = sorts && selects_first(g_, node, target_);
  }

  ContractionDTypes dtypes(const Group& group) const {
    const Node& node = g_.nodes[group.anchor];
    DType operands[2];
    for (int i = 0; i < 2; ++i) operands[i] = g_.dtype(resolve_operand(g_, node, i).base);
    const bool swapped = group.contraction.swapped;
    return {.a = operands[swapped ? 1 : 0],
            .b = operands[swapped ? 0 : 1],
            .accumulator = node.attributes.contraction.accumulator};
  }

  const Schedule& s_;
  const Graph& g_;
  const Target& target_;
  Choices* choices_;
  Diagnostics errors_;
  std::set<std::string> refused_;  // keys of several kernels are refused once
};

}  // namespace

Status plan_kernels(Schedule& schedule, const Target& target, Choices* choices) {
  KernelPlanner planner(schedule, target, choices);
  for (const Item& item : schedule.items)
    if (item.group >= 0) planner.plan(schedule.groups[item.group], item);
  return planner.take_errors();
}

}  // namespace quernel::schedule
