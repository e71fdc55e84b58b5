// How the work of every kernel is divided. A workgroup of a CPU does a few microseconds of
// work, so that the cost of a call is negligible and threads can share a kernel.
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
  KernelPlanner(const Schedule& schedule, const Target& target)
      : s_(schedule), g_(schedule.graph), target_(target) {}

  void plan(Group& group, const Item& item) const {
    const KernelPlace kernel{s_, item, group, target_};
    WorkPlan& work = group.work;
    switch (group.kind) {
      case GroupKind::kMap:
      case GroupKind::kCat:
        work.group_work = target_.work_per_group(kMapWork);
        group.maps = group.kind == GroupKind::kCat ? plan_cat(kernel) : plan_map(kernel);
        break;
      case GroupKind::kRows:
        work.group_work = target_.work_per_group(kMapWork);
        group.rows = plan_rows(kernel);
        break;
      case GroupKind::kReduce:
        work.group_work = target_.work_per_group(kReduceWork);
        group.reduce = plan_reduce(kernel);
        break;
      case GroupKind::kOrdered:
        plan_steps(g_.nodes[group.anchor], work);
        if (is_scan(g_.nodes[group.anchor].op)) group.scan = plan_scan(kernel);
        if (is_scatter(g_.nodes[group.anchor].op)) group.scatter = plan_scatter(kernel);
        break;
      case GroupKind::kWinograd:
        work.group_work = target_.work_per_group(kTransformWork);
        break;
      case GroupKind::kAttention:
        work.group_work = target_.lanes_are_invocations() ? 1 : kAttentionWork;
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
          if (target_.integer_registers > 0) group.contraction.walk.first_addend = first_addend(g_, group);
        }
        break;
      case GroupKind::kControl:
      case GroupKind::kCustom:
        break;
    }
  }

 private:
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
};

}  // namespace

void plan_kernels(Schedule& schedule, const Target& target) {
  KernelPlanner planner(schedule, target);
  for (const Item& item : schedule.items)
    if (item.group >= 0) planner.plan(schedule.groups[item.group], item);
}

}  // namespace quernel::schedule
