// Scatters: workgroups share slices that updates do not leave, and where these are few also ranges of the first
// dim that updates address. Updates of different places are shared if the template is in place or if they
// replace all of it.
#include <algorithm>

#include "schedule/plans/plan_loops.h"
#include "schedule/storage.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kRangeWork = 65536, kRangeWorkOfGpu = 4096;  // elements of a range
constexpr int64_t kMostRanges = 16;                            // each reads all indices
// On a GPU: turns of the loop over updates, which copies of its body keep low, and the most copies.
constexpr int64_t kFewTurns = 8192, kMostCopies = 32;

}  // namespace

ScatterPlan plan_scatter(const KernelPlace& kernel) {
  const Graph& g = kernel.schedule.graph;
  const Node& node = g.nodes[kernel.group.anchor];
  const ValueId into = node.inputs[0], updates = node.inputs[2];
  const Shape &dims = g.shape(into), &index_dims = g.shape(node.inputs[1]), &update_dims = g.shape(updates);
  const bool gpu = kernel.target.lanes_are_invocations();
  const bool in_place = same_place(kernel.schedule, into, node.output);
  const size_t parameter = static_cast<size_t>(node.attributes.ints[0]), rank = dims.size();

  ScatterPlan plan;
  plan.first = parameter;
  plan.addressed = node.op == OpKind::k_scatter_nd ? static_cast<size_t>(index_dims.back().value()) : 1;
  plan.numbers = node.op == OpKind::k_scatter_elements ? 1
                 : node.op == OpKind::k_scatter_rows   ? index_dims.size()
                                                       : index_dims.size() - 1 - parameter;
  plan.lanes = kernel.target.lanes(std::max(4, element_size(g.dtype(into))));
  const bool inner_slices = plan.first + plan.addressed < rank;  // the last dim is not addressed
  plan.vector_dim = inner_slices ? rank - 1 : rank;
  plan.shares_columns = gpu && inner_slices && !always_le(dims[rank - 1], plan.lanes);
  const Dim columns = !inner_slices ? Dim(1) : plan.shares_columns ? Dim(plan.lanes) : dims[rank - 1];

  Dim slices = 1, addressed = 1, number = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (d >= plan.first && d < plan.first + plan.addressed)
      addressed = addressed * dims[d];
    else if (d != plan.vector_dim)
      slices = slices * dims[d];
  }
  for (size_t i = 0; i < plan.numbers; ++i) number *= update_dims[plan.first + i];
  const bool replaces_all = node.attributes.scatter == ScatterMode::kSet && number == addressed &&
                            (node.op != OpKind::k_scatter_elements || update_dims == dims);
  if (kernel.target.shares_work() && node.attributes.unique && (in_place || replaces_all)) {
    plan.shared_updates =
        std::max<int64_t>(1, kernel.group.work.group_work / std::max<int64_t>(columns.estimate(), 1));
    return plan;
  }
  if (gpu) {
    int64_t turns = number.is_const() ? number.value() / kFewTurns : kMostCopies;
    plan.updates_per_turn = std::clamp<int64_t>(turns, 1, kMostCopies);
  }
  if (in_place || plan.addressed == 0) return plan;
  const Dim& size = dims[plan.first];
  if (!slices.is_const() || slices.value() >= kMostRanges || !size.is_const()) return plan;
  const int64_t work = (addressed * columns).estimate();
  plan.ranges = std::min({kMostRanges, size.value(), work / (gpu ? kRangeWorkOfGpu : kRangeWork)});
  if (!gpu)
    plan.ranges = std::min(plan.ranges, addressed.estimate() / std::max<int64_t>(number.estimate(), 1));
  plan.ranges = std::max<int64_t>(plan.ranges, 1);
  if (plan.ranges > 1) plan.ranges = ceildiv(size, ceildiv(size, plan.ranges)).value();
  return plan;
}

}  // namespace quernel::schedule
