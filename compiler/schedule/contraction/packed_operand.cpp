#include "schedule/contraction/packed_operand.h"

#include <algorithm>

#include "schedule/contraction/pack_operand.h"
#include "support/mapped_file.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kPartBytes = int64_t{16} << 20;

DType packed_dtype(DType dtype, const ContractionPlan& plan) {
  if (plan.dot == 1 || packs_bytes(plan)) return dtype;
  return dtype == DType::kI8 ? DType::kI32 : DType::kU32;
}

// Panels of all parts of the grid.
int64_t grid_count(const ContractionPlan& plan) {
  int64_t count = 1;
  for (int axis : plan.grid_axes)
    if (!(plan.axes[axis].b == Dim(0))) count *= plan.axes[axis].extent.value();
  return count;
}

int64_t panel_bytes(const ContractionPlan& plan, DType dtype) {
  const int64_t elements = panel_rows(plan).value() * plan.panel_n() * (packs_bytes(plan) ? plan.dot : 1);
  return elements * element_size(packed_dtype(dtype, plan));
}

// The same plan for some of the columns, which are one axis of the contraction.
ContractionPlan columns_of(const ContractionPlan& plan, int64_t first, int64_t count) {
  ContractionPlan part = plan;
  ContractionPlan::Axis& axis = part.axes[plan.vector_axis];
  part.b_offset = plan.b_offset + plan.member_b_strides[axis.members[0]] * Dim(first);
  axis.extent = part.member_extents[axis.members[0]] = Dim(count);
  return part;
}

void pack(const Tensor& data, const ContractionPlan& plan, const std::vector<Tensor>& constants,
          const PackedConstant::Sink& sink) {
  auto give = [&](const ContractionPlan& part) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& constant : constants) pointers.push_back(&constant);
    const Tensor packed = pack_operand(data, part, pointers);
    sink({reinterpret_cast<const std::byte*>(packed.bytes.data()), packed.bytes.size()});
  };
  const int64_t panels = panel_count(plan).value();
  const int64_t panels_per_part = std::max<int64_t>(1, kPartBytes / panel_bytes(plan, data.dtype));
  const ContractionPlan::Axis& columns = plan.axes[plan.vector_axis];
  if (panels <= panels_per_part || grid_count(plan) != 1 || columns.members.size() != 1 ||
      !constants.empty()) {
    give(plan);
  } else {
    const int64_t step = panels_per_part * plan.panel_n();
    for (int64_t first = 0; first < columns.extent.value(); first += step)
      give(columns_of(plan, first, std::min(step, columns.extent.value() - first)));
  }
  release_pages(data.bytes.data(), data.bytes.size());
}

}  // namespace

PackedConstant packed_operand(const Tensor& data, const ContractionPlan& plan,
                              const std::vector<const Tensor*>& constants, const std::string& order) {
  PackedConstant result;
  result.dtype = packed_dtype(data.dtype, plan);
  result.bytes = grid_count(plan) * panel_count(plan).value() * panel_bytes(plan, data.dtype);
  result.recipe = order + "|panels of " + std::to_string(plan.panel_n()) + ", words of " +
                  std::to_string(plan.dot) + (plan.groups_columns ? ", columns of lanes" : "");
  result.sources.push_back(data);
  std::vector<Tensor> rows;
  for (const Tensor* constant : constants) rows.push_back(*constant);
  result.sources.insert(result.sources.end(), rows.begin(), rows.end());
  result.pack = [data, plan, rows](const PackedConstant::Sink& sink) { pack(data, plan, rows, sink); };
  return result;
}

}  // namespace quernel::schedule
