// Winograd's minimal filtering for 3x3 windows (support/winograd_matrices.h names the source). Per tile of
// the output the transformed input is multiplied by the transformed weights point by point: 2.25 and 4 times
// fewer multiplications than the convolution as it stands.
#include <algorithm>
#include <cmath>

#include "graph/rewrite.h"
#include "schedule/expand_winograd.h"
#include "schedule/schedule.h"
#include "support/winograd_matrices.h"

namespace quernel::schedule {
namespace {

constexpr double kMemoryBytesPerCycle = 6,
                 kCacheBytesPerCycle = 16;      // to one core: from memory; from its caches
constexpr double kLargestBlockBytes = 2 << 20;  // of scratch for transformed inputs
constexpr double kOtherCycles = 1.08;           // what a kernel of multiply-adds takes for each cycle of them
constexpr double kWorthwhile = 0.9;             // of the cycles of the plain convolution, or of smaller tiles

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
// transformed inputs stay in the second-level cache, many let the weights come from memory less often. The
// chosen one first, then by estimated cycles. `panel_v`: tiles of as many vectors; 0: of any number.
std::vector<Estimate> estimates(const WinogradPlan& plan, const Target& target, int panel_v) {
  int64_t tiles = tile_count(plan);
  double points = static_cast<double>(plan.points()), channels = static_cast<double>(plan.channels);
  double near = static_cast<double>(target.l2_bytes) * 5 / 8;
  std::vector<Estimate> result;
  size_t best = 0;
  for (int v = panel_v == 0 ? 1 : panel_v; v <= (panel_v == 0 ? 4 : panel_v); ++v)
    for (int m = 1; m <= 14; ++m) {
      if (m * v + v + 1 > target.vector_registers && !(m == 1 && v == 1)) break;
      int64_t panels = (plan.columns + v * plan.lanes - 1) / (v * plan.lanes);
      double columns = static_cast<double>(panels * v * plan.lanes);
      double step = std::max({m * v / static_cast<double>(target.peak_fma_per_cycle), (m + v) / 2.0, 4.0});
      double weights = points * channels * columns * 4;
      Estimate own{{.rows = m, .columns = int64_t{v} * plan.lanes, .winograd = plan.tile}, -1};
      for (int64_t blocks = 1; blocks <= tiles; ++blocks) {
        int64_t block = ((tiles + blocks - 1) / blocks + m - 1) / m * m;
        double inputs = block_bytes(plan, block);
        if (inputs > kLargestBlockBytes && block > m) continue;
        double rows = static_cast<double>((tiles + block - 1) / block * (block / m));
        double count = std::ceil(static_cast<double>(tiles) / static_cast<double>(block));
        double products =
            kOtherCycles * points * rows * static_cast<double>(panels) * (channels * step + 12 + 2.0 * m * v);
        double traffic =
            count * weights /
            (weights * static_cast<double>(plan.groups) > near ? kMemoryBytesPerCycle : kCacheBytesPerCycle);
        if (inputs > near) traffic += count * static_cast<double>(panels) * inputs / kCacheBytesPerCycle;
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

Tensor winograd_weights(const Tensor& data, const WinogradPlan& plan, const OperandStrides& b) {
  const WinogradForm& form = plan.form;
  const winograd::Matrix& g = winograd::weights_transform(plan.tile);
  std::vector<float> wide;  // of weights stored narrower
  if (data.dtype != DType::kF32)
    for (int64_t i = 0; i < data.count(); ++i) wide.push_back(static_cast<float>(element_as_f64(data, i)));
  const float* w =
      (wide.empty() ? reinterpret_cast<const float*>(data.bytes.data()) : wide.data()) + b.offset.value();
  // bf16 is too coarse for transformed weights, whose rounding errors the output's transform adds up.
  DType storage = data.dtype == DType::kF16 ? DType::kF16 : DType::kF32;
  int64_t side = plan.tile + 2, points = plan.points(), n = plan.panel_n();
  int64_t stride_y = b.axis[form.window_y].value(), stride_x = b.axis[form.window_x].value();
  int64_t stride_c = b.axis[form.channels].value(), stride_n = b.axis[form.columns].value();
  int64_t stride_g = form.group < 0 ? 0 : b.axis[form.group].value();
  int64_t count = plan.groups * plan.panels() * points * plan.channels * n;
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(storage, count)), 0);
  std::vector<double> rows(static_cast<size_t>(side * 3));
  for (int64_t group = 0; group < plan.groups; ++group)
    for (int64_t column = 0; column < plan.columns; ++column)
      for (int64_t channel = 0; channel < plan.channels; ++channel) {
        const float* window = w + group * stride_g + column * stride_n + channel * stride_c;
        for (int64_t i = 0; i < side; ++i)
          for (int64_t x = 0; x < 3; ++x)
            rows[i * 3 + x] = g[i][0] * window[x * stride_x] + g[i][1] * window[stride_y + x * stride_x] +
                              g[i][2] * window[2 * stride_y + x * stride_x];
        int64_t panel = group * plan.panels() + column / n;
        for (int64_t i = 0; i < side; ++i)
          for (int64_t j = 0; j < side; ++j) {
            double sum = g[j][0] * rows[i * 3] + g[j][1] * rows[i * 3 + 1] + g[j][2] * rows[i * 3 + 2];
            int64_t at = ((panel * points + i * side + j) * plan.channels + channel) * n + column % n;
            store_f64(storage, bytes.data(), at, sum);
          }
      }
  return {storage, {plan.groups, plan.panels(), points, plan.channels, n}, Bytes::own(std::move(bytes))};
}

namespace {

// 0 where the convolution is as fast as it stands, and in firmware, whose flash transformed weights would
// fill up to four times.
int best_tile(const Graph& graph, const Node& node, const Target& target, DType precision) {
  if (target.is_gpu()) return best_expanded_tile(graph, node, target);
  if (target.firmware) return 0;
  std::optional<WinogradForm> form = winograd_form(graph, node);
  if (!form) return 0;
  const Contraction& c = node.attributes.contraction;
  OperandAccess a = resolve_operand(graph, node, 0);
  OperandStrides strides =
      operand_strides(graph, a, contiguous_strides(graph.shape(a.base)), 0, c.axes.size());
  // In whole vectors of columns; where those would be less than half full, vectors run along rows.
  double products = static_cast<double>(c.axes[form->columns].extent.value()) / target.lanes(4);
  if (products >= 0.5) products = std::ceil(products);
  for (int i : {form->y, form->x, form->channels}) products *= static_cast<double>(c.axes[i].extent.value());
  double plain = kOtherCycles * 9 * products / target.peak_fma_per_cycle;
  double weights = 9 * 4 * static_cast<double>(c.axes[form->channels].extent.value()) *
                   static_cast<double>(c.axes[form->columns].extent.value());
  plain = std::max(plain, weights / kMemoryBytesPerCycle);
  if (rounds_operands(graph, node, target, precision)) plain /= 2;  // operands of two bytes
  double best = plain;
  int tile = 0;
  for (int side : {2, 4}) {
    double cycles = plan_winograd(c, *form, side, strides, target).cycles;
    if (cycles < best * kWorthwhile) best = cycles, tile = side;
  }
  return tile;
}

}  // namespace

namespace {

// `x` with its elements in order below any padding: the channels of an image that is seen permuted become
// contiguous, as whatever else computed the convolution would have to copy them, too.
ValueId ordered_below_pads(Rewriter& r, ValueId x) {
  const Node* node = r.old.def(x);
  if (node && node->op == OpKind::k_pad)
    return r.build.add(OpKind::k_pad, {ordered_below_pads(r, node->inputs[0])}, node->attributes);
  return r.build.add(OpKind::k_contiguous, {r(x)});
}

}  // namespace

Expected<Graph> choose_winograd(const Graph& graph, const Target& target, Tilings* tilings, DType precision) {
  Diagnostics errors;
  // The tile of the node in `g`: as chosen, else as estimated.
  auto choose = [&](const Graph& g, const Node& node) {
    std::optional<WinogradForm> form = winograd_form(g, node, target.is_gpu());
    if (!form || (target.is_gpu() && expandable_tiles(g, node).empty())) return 0;
    std::string text = contraction_text(node.attributes.contraction, *form);
    const Tiling* tiling = tilings ? tilings->find(target.name, text) : nullptr;
    if (!tiling) return best_tile(g, node, target, precision);
    bool tile = tiling->rows != 0;  // a GPU's products are a contraction with a tile of its own
    if (target.is_gpu() ? tile : tile != (tiling->winograd != 0))
      errors.push_back(
          tilings->refuse(target.name, text,
                          target.is_gpu() ? "'direct' or 'winograd 2|4'" : "'direct' or 'winograd 2|4 …'"));
    return tiling->winograd;
  };
  Expected<Graph> result = rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_contract) return kNoValue;
    if (target.is_gpu()) {
      int marked = node.attributes.contraction.winograd, tile = marked != 0 ? marked : choose(graph, node);
      ValueId expanded = tile == 0 ? kNoValue : expand_winograd(r, node, tile);
      if (expanded != kNoValue || marked == 0) return expanded;
      Contraction plain = node.attributes.contraction;
      plain.winograd = 0;
      return r.build.contract(r(node.inputs[0]), r(node.inputs[1]), std::move(plain));
    }
    if (node.attributes.contraction.winograd != 0) return kNoValue;
    Contraction contraction = node.attributes.contraction;
    ValueId image = r(node.inputs[0]), weights = r(node.inputs[1]);
    contraction.winograd = choose(graph, node);
    if (contraction.winograd == 0 && !winograd_form(graph, node) && winograd_form(graph, node, true)) {
      image = ordered_below_pads(r, node.inputs[0]);
      ValueId plain = r.build.contract(image, weights, contraction);
      if (const Node* made = r.build.ok() ? r.graph.def(plain) : nullptr)
        contraction.winograd = choose(r.graph, *made);
    }
    if (contraction.winograd == 0) return kNoValue;
    return r.build.contract(image, weights, std::move(contraction));
  });
  if (!errors.empty()) return errors;
  return result;
}

}  // namespace quernel::schedule
