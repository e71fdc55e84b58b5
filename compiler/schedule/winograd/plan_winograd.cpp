#include <algorithm>
#include <cmath>

#include "graph/rewrite.h"
#include "schedule/winograd/expand_winograd.h"
#include "schedule/winograd/winograd_plan.h"
#include "support/winograd_matrices.h"

namespace quernel::schedule {
namespace {

constexpr double kSpeedOfBlocks = 1.0 / 3;      // of L2, for transformed inputs and their weights
constexpr double kLargestBlockBytes = 2 << 20;  // of scratch for transformed inputs

// Coefficients of one axis in each dim of an operand.
std::vector<Dim> coefficients_of(const OperandAccess& access, int axis, int axes) {
  std::vector<Dim> result;
  for (const IndexExpr& e : access.indices) result.push_back(as_affine(e, axes)->coefficients[axis]);
  return result;
}

bool uses(const std::vector<IndexExpr>& map, int axis) {
  return std::any_of(map.begin(), map.end(), [&](const IndexExpr& e) { return uses_axis(e, axis); });
}

// Narrows the bounds of y + window_y (or x) by a guard; false where the guard is of another form.
bool apply_guard(const IndexGuard& guard, int axes, WinogradForm& form) {
  std::optional<AffineForm> f = as_affine(guard.expr, axes);
  if (!f || !f->offset.is_const() || !guard.lo.is_const() || !guard.hi.is_const()) return false;
  auto only = [&](int position, int window) {
    for (int i = 0; i < axes; ++i)
      if (!(f->coefficients[i] == Dim(i == position || i == window ? 1 : 0))) return false;
    return true;
  };
  int64_t lo = guard.lo.value() - f->offset.value(), hi = guard.hi.value() - f->offset.value();
  if (only(form.y, form.window_y)) {
    form.y_begin = std::max(form.y_begin, lo), form.y_end = std::min(form.y_end, hi);
    return true;
  }
  if (only(form.x, form.window_x)) {
    form.x_begin = std::max(form.x_begin, lo), form.x_end = std::min(form.x_end, hi);
    return true;
  }
  return false;
}

}  // namespace

std::optional<WinogradForm> winograd_form(const Graph& graph, const Node& node, bool any_order) {
  const Contraction& c = node.attributes.contraction;
  int axes = static_cast<int>(c.axes.size());
  if (graph.dtype(node.inputs[0]) != DType::kF32 || c.accumulator != DType::kF32) return std::nullopt;
  OperandAccess a = resolve_operand(graph, node, 0), b = resolve_operand(graph, node, 1);
  if (!a.affine || !(a.fill == 0) || !b.direct() || !graph.constant(b.base)) return std::nullopt;
  WinogradForm form;
  std::vector<int> reduced, outputs;
  for (int i = 0; i < axes; ++i) {
    if (c.axes[i].extent == Dim(1)) continue;
    (c.axes[i].reduction ? reduced : outputs).push_back(i);
  }
  if (reduced.size() != 3) return std::nullopt;
  // Pairs of an output axis and a window of three that walk the operand alike.
  std::vector<std::pair<int, int>> pairs;
  for (int k : reduced) {
    if (!(c.axes[k].extent == Dim(3)) || !uses(a.indices, k)) continue;
    for (int o : outputs)
      if (!uses(b.indices, o) && coefficients_of(a, o, axes) == coefficients_of(a, k, axes))
        pairs.emplace_back(o, k);
  }
  if (pairs.size() != 2) return std::nullopt;
  std::tie(form.y, form.window_y) = pairs[0];
  std::tie(form.x, form.window_x) = pairs[1];
  for (int k : reduced)
    if (k != form.window_y && k != form.window_x) form.channels = k;
  for (int o : outputs) {
    if (o == form.y || o == form.x) continue;
    bool in_a = uses(a.indices, o), in_b = uses(b.indices, o);
    int& role = in_a && in_b ? form.group : in_b ? form.columns : form.batch;
    if ((!in_a && !in_b) || role >= 0) return std::nullopt;
    role = o;
  }
  if (form.columns < 0 || !uses(b.indices, form.channels)) return std::nullopt;
  for (int i : {form.y, form.x, form.channels, form.columns, form.group})
    if (i >= 0 && !c.axes[i].extent.is_const()) return std::nullopt;
  // Longer sums go in blocks, which its kernels do not know.
  constexpr int64_t kMostTerms = 16384;
  if (9 * c.axes[form.channels].extent.value() > kMostTerms) return std::nullopt;
  // Channels are contiguous in what is stored.
  std::vector<Dim> channel = coefficients_of(a, form.channels, axes);
  for (size_t d = 0; d < channel.size() && !any_order; ++d)
    if (!(channel[d] == Dim(d + 1 == channel.size() ? 1 : 0))) return std::nullopt;
  form.y_end = c.axes[form.y].extent.value() + 2;
  form.x_end = c.axes[form.x].extent.value() + 2;
  for (const IndexGuard& guard : a.guards)
    if (!apply_guard(guard, axes, form)) return std::nullopt;
  if (form.y_begin >= form.y_end || form.x_begin >= form.x_end) return std::nullopt;
  return form;
}

namespace {

struct Estimate {
  Tiling tiling;
  double cycles;  // of one core for one group of one image
};

int64_t tile_count(const WinogradPlan& plan) { return plan.tiles_y * plan.tiles_x; }
double block_bytes(const WinogradPlan& plan, int64_t block) {
  return static_cast<double>(plan.points() * block * plan.channels) * 4;
}

// The register tiles, each with how many tiles of the output are best transformed at once: few let the
// transformed inputs stay in the L2, many let the weights come from memory less often. The
// chosen one first, then by estimated cycles. `panel_v`: tiles of as many vectors; 0: of any number.
std::vector<Estimate> estimates(const WinogradPlan& plan, const Target& target, int panel_v) {
  int64_t tiles = tile_count(plan);
  double points = static_cast<double>(plan.points()), channels = static_cast<double>(plan.channels);
  double near = static_cast<double>(target.l2_bytes) * 5 / 8;
  const CoreModel& core = target.core;
  const double cache_bytes_per_cycle = kSpeedOfBlocks * core.l2_bytes_per_cycle;
  std::vector<Estimate> result;
  size_t best = 0;
  for (int v = panel_v == 0 ? 1 : panel_v; v <= (panel_v == 0 ? 4 : panel_v); ++v)
    for (int m = 1; m <= 14; ++m) {
      if (m * v + v + 1 > target.vector_registers && !(m == 1 && v == 1)) break;
      int64_t panels = (plan.columns + v * plan.lanes - 1) / (v * plan.lanes);
      double columns = static_cast<double>(panels * v * plan.lanes);
      double step = std::max({m * v / static_cast<double>(target.peak_fma_per_cycle),
                              (m + v) / core.loads_per_cycle, core.fma_latency});
      double weights = points * channels * columns * 4;
      Estimate own{{.rows = m, .columns = int64_t{v} * plan.lanes, .winograd = plan.tile}, -1};
      for (int64_t blocks = 1; blocks <= tiles; ++blocks) {
        int64_t block = ((tiles + blocks - 1) / blocks + m - 1) / m * m;
        double inputs = block_bytes(plan, block);
        if (inputs > kLargestBlockBytes && block > m) continue;
        double rows = static_cast<double>((tiles + block - 1) / block * (block / m));
        double count = std::ceil(static_cast<double>(tiles) / static_cast<double>(block));
        double products = kWinogradOtherCycles * points * rows * static_cast<double>(panels) *
                          (channels * step + 12 + 2.0 * m * v);
        double traffic = count * weights /
                         (weights * static_cast<double>(plan.groups) > near ? core.memory_bytes_per_cycle
                                                                            : cache_bytes_per_cycle);
        if (inputs > near) traffic += count * static_cast<double>(panels) * inputs / cache_bytes_per_cycle;
        double transforms = points * static_cast<double>(tiles) *
                            (5 * std::ceil(channels / plan.lanes) + 4 * columns / plan.lanes);
        double cycles = std::max(products, traffic) + 0.2 * std::min(products, traffic) + transforms;
        if (own.cycles < 0 || cycles < own.cycles * 0.999) own.cycles = cycles, own.tiling.block = block;
        if (inputs < near / 4) break;
      }
      result.push_back(own);
      if (own.cycles < result[best].cycles * 0.999) best = result.size() - 1;
    }
  std::swap(result[0], result[best]);
  std::stable_sort(result.begin() + 1, result.end(),
                   [](const Estimate& a, const Estimate& b) { return a.cycles < b.cycles; });
  return result;
}

}  // namespace

std::vector<Tiling> tilings(const WinogradPlan& plan, const Target& target) {
  std::vector<Tiling> result;
  for (const Estimate& e : estimates(plan, target, 0)) result.push_back(e.tiling);
  return result;
}

Tiling tiling_of(const WinogradPlan& plan) {
  return {.rows = plan.tile_m, .columns = plan.panel_n(), .winograd = plan.tile, .block = plan.block};
}

bool is_legal(const WinogradPlan& plan, const Target& target, const Tiling& tiling) {
  std::vector<Tiling> tiles = tilings(plan, target);
  bool known = std::any_of(tiles.begin(), tiles.end(), [&](const Tiling& t) {
    return t.rows == tiling.rows && t.columns == tiling.columns;
  });
  int64_t most = (tile_count(plan) + tiling.rows - 1) / tiling.rows * tiling.rows;
  return known && tiling.winograd == plan.tile && tiling.block % tiling.rows == 0 && tiling.block <= most &&
         (tiling.block == tiling.rows || block_bytes(plan, tiling.block) <= kLargestBlockBytes);
}

void set_tiling(WinogradPlan& plan, const Tiling& tiling) {
  plan.tile_m = static_cast<int>(tiling.rows);
  plan.tile_v = static_cast<int>(tiling.columns / plan.lanes);
  plan.block = tiling.block;
  // A second thread may take part even where there are few tiles.
  int64_t shares = plan.block >= tile_count(plan) && plan.groups == 1 ? 2 : 1;
  plan.panels_per_group = (plan.panels() + shares - 1) / shares;
}

WinogradPlan plan_winograd(const Contraction& c, const WinogradForm& form, int tile, const OperandStrides& a,
                           const Target& target, int panel_v) {
  WinogradPlan plan;
  plan.form = form;
  plan.tile = tile;
  plan.tiles_y = (c.axes[form.y].extent.value() + tile - 1) / tile;
  plan.tiles_x = (c.axes[form.x].extent.value() + tile - 1) / tile;
  if (form.group >= 0) plan.groups = c.axes[form.group].extent.value();
  plan.channels = c.axes[form.channels].extent.value();
  plan.columns = c.axes[form.columns].extent.value();
  plan.offset = a.offset;
  plan.batch_stride = form.batch < 0 ? Dim(0) : a.axis[form.batch];
  plan.group_stride = form.group < 0 ? Dim(0) : a.axis[form.group];
  plan.y_stride = a.axis[form.y];
  plan.x_stride = a.axis[form.x];
  plan.lanes = target.lanes(4);
  Estimate best = estimates(plan, target, panel_v)[0];
  set_tiling(plan, best.tiling);
  plan.cycles = best.cycles;
  return plan;
}

}  // namespace quernel::schedule
