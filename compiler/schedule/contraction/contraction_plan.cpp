#include "schedule/contraction/contraction_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace quernel::schedule {
namespace {

using Axis = ContractionPlan::Axis;

Dim column_count(const ContractionPlan& plan) {
  return plan.vector_axis >= 0 ? plan.axes[plan.vector_axis].extent : Dim(1);
}

}  // namespace

const Slide* windows_along_rows(const ContractionPlan& plan) {
  for (const Slide& s : plan.windows)
    if (s.position == plan.row_axes.back()) return &s;
  return nullptr;
}

std::optional<Slide> row_windows(const ContractionPlan& plan) {
  if (plan.row_axes.size() != 1 || plan.reduction_axes.empty() || plan.staged || !plan.windows.empty())
    return std::nullopt;
  const int position = plan.row_axes[0], window = plan.reduction_axes.back();
  const Axis &rows = plan.axes[position], &steps = plan.axes[window];
  for (const Dim* d : {&rows.extent, &rows.a, &steps.extent, &steps.a})
    if (!d->is_const() || d->value() < 1) return std::nullopt;
  if (rows.a.value() % steps.a.value() != 0) return std::nullopt;
  Slide slide{
      .position = position, .window = window, .step = rows.a.value() / steps.a.value(), .window_step = 1};
  slide.stride = steps.a.value();
  slide.end = (rows.extent.value() - 1) * slide.step + steps.extent.value();
  return slide;
}

Tiling tiling_of(const ContractionPlan& plan) {
  return {.rows = plan.tile_m, .columns = plan.tile_n(), .order = plan.order, .group_work = plan.group_work};
}

int columns_of_lane(const ContractionPlan& plan, int panel_v) {
  constexpr int kMost = 4;  // of 32 bits are 16 bytes
  return plan.groups_columns ? std::gcd(panel_v, kMost) : 1;
}

bool fits_panels(const ContractionPlan& plan, int v, int panel_v, double vectors) {
  // The columns of a lane that lie together belong to one tile, or to several, each with as many of them.
  const int together = columns_of_lane(plan, panel_v);
  if (v % together != 0 && together % v != 0) return false;
  if (panel_v % v == 0) return true;
  if (plan.odd_panels_apart && v / panel_v % 2 != 0) return false;
  return v % panel_v == 0 && std::ceil(vectors / v) * v <= std::ceil(vectors / panel_v) * panel_v;
}

void set_tiling(ContractionPlan& plan, const Tiling& tiling, int panel_v) {
  plan.tile_m = static_cast<int>(tiling.rows);
  plan.tile_v = static_cast<int>(tiling.columns / plan.lanes);
  plan.order = tiling.order;
  plan.group_work = tiling.group_work;
  double columns = plan.vector_axis >= 0 ? size_of(plan.axes[plan.vector_axis].extent) : 1;
  bool fits = panel_v != 0 && fits_panels(plan, plan.tile_v, panel_v, std::ceil(columns / plan.lanes));
  const Dim rows = row_count(plan);
  const bool splits =
      rows.is_const() && rows.value() <= plan.tile_m && plan.tile_v % plan.panels_at_once == 0;
  plan.panel_v = fits ? panel_v : splits ? plan.tile_v / plan.panels_at_once : plan.tile_v;
}

Dim product(const std::vector<Axis>& axes, const std::vector<int>& which) {
  Dim n = 1;
  for (int i : which) n *= axes[i].extent;
  return n;
}

bool rows_are_even(const ContractionPlan& plan, int m) {
  if (plan.row_axes.size() < 2) return true;
  const Dim& last = plan.axes[plan.row_axes.back()].extent;
  return last.is_const() && last.value() % m == 0;
}

bool shares_rows(const ContractionPlan& plan) {
  constexpr int kFewestRows = 4;  // fewer are not worth the barriers
  return plan.shared_steps != 0 && plan.tile_m >= kFewestRows;
}

int64_t shared_pitch(const ContractionPlan& plan) {
  // Columns of a matrix begin at multiples of 16 bytes, and so do rows of bytes.
  constexpr int64_t kAlignment = 16;
  if (shares_by_rows(plan)) return plan.shared_steps + kAlignment;
  const int64_t kGap = plan.matrices ? 8 : 4;
  int64_t fetched = plan.lanes / plan.shared_steps;
  return (plan.tile_m + fetched - 1) / fetched * fetched + kGap;
}

Dim row_count(const ContractionPlan& plan) { return product(plan.axes, plan.row_axes); }

Dim reduction_count(const ContractionPlan& plan) { return product(plan.axes, plan.reduction_axes); }

Dim panel_rows(const ContractionPlan& plan) {
  if (plan.gathers_rows) return ceildiv(reduction_count(plan), plan.dot);
  const int64_t per_row = plan.blocks ? plan.blocks->per_word() : plan.dot;
  Dim rows = 1;
  for (size_t i = 0; i < plan.reduction_axes.size(); ++i) {
    const Dim& extent = plan.axes[plan.reduction_axes[i]].extent;
    rows *= per_row > 1 && i + 1 == plan.reduction_axes.size() ? ceildiv(extent, per_row) : extent;
  }
  if (plan.dot_shift != 0) rows += 1;
  return rows + static_cast<int64_t>(plan.column_constants.size());
}

Dim scale_rows(const ContractionPlan& plan) {
  Dim rows = 1;
  for (size_t i = 0; i < plan.reduction_axes.size(); ++i) {
    const Dim& extent = plan.axes[plan.reduction_axes[i]].extent;
    rows *= i + 1 == plan.reduction_axes.size() ? ceildiv(extent, plan.blocks->steps) : extent;
  }
  return rows;
}

Dim panel_count(const ContractionPlan& plan) { return ceildiv(column_count(plan), plan.panel_n()); }

Dim column_tile_count(const ContractionPlan& plan) { return ceildiv(column_count(plan), plan.tile_n()); }

int64_t steps_at_once(const ContractionPlan& plan, const Target& target) {
  constexpr int kMostLanes = 4;  // fmla of halves takes the lanes of half of the registers only
  const bool by_words = plan.dot > 1 || plan.sums_lanes || (plan.blocks && !plan.widens_panels);
  if (!target.has_fma_lanes || plan.integers || plan.elementwise || by_words || plan.staged ||
      plan.gathers_rows || plan.lanes > kMostLanes || plan.reduction_axes.empty())
    return 1;
  const Axis& last = plan.axes[plan.reduction_axes.back()];
  const bool is_short = last.extent.is_const() && last.extent.value() < plan.lanes;
  return is_one(last.a) && !is_short ? plan.lanes : 1;
}

bool transposes_tiles(const ContractionPlan& plan, const Target& target) {
  constexpr int kFewestLanes = 4;
  if (target.lanes_are_invocations() || target.code_is_dear() || plan.vector_axis < 0 ||
      plan.lanes < kFewestLanes || !std::has_single_bit(static_cast<unsigned>(plan.lanes)) ||
      is_one(plan.axes[plan.vector_axis].out))
    return false;
  Dim stride = 1;
  for (size_t i = plan.row_axes.size(); i-- > 0;) {
    const Axis& axis = plan.axes[plan.row_axes[i]];
    if (!(axis.out == stride)) return false;
    stride *= axis.extent;
  }
  return plan.tile_m > 1 && !plan.row_axes.empty();
}

std::optional<TileVectors> tail_columns(const ContractionPlan& plan, const Target& target) {
  constexpr int64_t kFewestLanes = 4;
  Dim columns = column_count(plan);
  if (target.lanes_are_invocations() || plan.vector_axis < 0 || !columns.is_const()) return std::nullopt;
  int64_t left = columns.value() % plan.tile_n(), beyond = left % plan.lanes, lanes = plan.lanes;
  if (left == 0 || (target.code_is_dear() && columns.value() > left)) return std::nullopt;
  while (lanes / 2 >= std::max(beyond, kFewestLanes)) lanes /= 2;
  TileVectors rest{.vectors = static_cast<int>(left / plan.lanes)};
  if (beyond != 0 && lanes < plan.lanes)
    rest.short_lanes = static_cast<int>(lanes);
  else if (beyond != 0)
    ++rest.vectors;
  return rest.short_lanes == 0 && rest.vectors == plan.tile_v ? std::nullopt : std::optional(rest);
}

Dim packed_stride(const ContractionPlan& plan, int axis, const Dim& rows) {
  if (plan.axes[axis].b == Dim(0)) return 0;
  Dim stride = panel_count(plan) * rows * plan.panel_n();
  for (size_t i = plan.grid_axes.size(); i-- > 0;) {
    if (plan.grid_axes[i] == axis) return stride;
    if (!(plan.axes[plan.grid_axes[i]].b == Dim(0))) stride *= plan.axes[plan.grid_axes[i]].extent;
  }
  return 0;
}

}  // namespace quernel::schedule
