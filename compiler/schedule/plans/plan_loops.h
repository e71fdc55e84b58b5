// Chooses the loops of kernels by what they access. Requires storage and items; without PickLoops also
// WorkPlan::group_work.
#pragma once

#include <optional>
#include <vector>

#include "schedule/plans/loop_options.h"
#include "schedule/schedule.h"
#include "targets/target.h"

namespace quernel::schedule {

// A kernel of the schedule: the group or, inside of attention, a part of it.
struct KernelPlace {
  const Schedule& schedule;
  const Item& item;
  const Group& group;
  const Target& target;
};

// Returns the plan of a map; an empty one if it has no elements.
std::vector<MapPlan> plan_map(const KernelPlace& kernel, const PickLoops& pick);
// Returns a plan for each operand of a cat that is copied.
std::vector<MapPlan> plan_cat(const KernelPlace& kernel);
ReducePlan plan_reduce(const KernelPlace& kernel, const PickLoops& pick);
// Returns the loops of a scan. The scanned axis has class 1.
LoopPlan plan_scan(const KernelPlace& kernel, const PickLoops& pick);
ScatterPlan plan_scatter(const KernelPlace& kernel);
RowsPlan plan_rows(const KernelPlace& kernel);

// Returns what can be chosen about the kernel of a planned schedule; nullopt: nothing here.
std::optional<LoopOptions> loop_options(const KernelPlace& kernel);

// Whether workgroups share an axis, each a part of it.
inline bool share_axis(const Dim& extent, int64_t part, const Target& target) {
  return target.shares_work() && !always_le(extent, part);
}

// Returns the lanes of the kernel's vectors: of the widest dtype that it loads, stores or computes with, apart from
// 64-bit integers and of at least 4 bytes. One where code is dear and 64-bit integers are loaded or stored: small cores
// have no vectors of them.
int lanes_of(const KernelPlace& kernel);
// Returns the dtype of a reduction's or scan's accumulator.
DType accumulator_dtype(const Graph& graph, const Node& node);
// Returns the indices of element number `flat` of a value of these dims.
std::vector<IndexExpr> unflatten(const IndexExpr& flat, const Shape& dims, const Shape& extents);

}  // namespace quernel::schedule
