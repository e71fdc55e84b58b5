#include "schedule/winograd/expand_winograd.h"

#include <algorithm>

#include "schedule/contraction/plan_contraction.h"
#include "schedule/contraction/tile_estimates.h"
#include "schedule/winograd/winograd_plan.h"
#include "schedule/winograd/winograd_weights.h"

namespace quernel::schedule {
namespace {

constexpr double kWorthwhile = 0.9;   // of the time of the convolution as it stands, or of smaller tiles
constexpr double kShareOfPeak = 0.5;  // at which contractions run

// A convolution that can be expanded, in tiles of a side.
struct Expansion {
  WinogradForm form;
  int64_t tile = 0, y = 0, x = 0, channels = 0, columns = 0;
  Dim batch = 1;
  int64_t tiles_y() const { return (y + tile - 1) / tile; }
  int64_t tiles_x() const { return (x + tile - 1) / tile; }
  int64_t points() const { return (tile + 2) * (tile + 2); }
  Dim values() const { return batch * Dim(points() * tiles_y() * tiles_x()); }  // of one channel
};

std::optional<Expansion> expansion_of(const Graph& graph, const Node& node, int tile) {
  const Contraction& c = node.attributes.contraction;
  std::optional<WinogradForm> form = winograd_form(graph, node, true);
  if (!form || form->group >= 0) return std::nullopt;
  auto extent = [&](int axis) { return c.axes[static_cast<size_t>(axis)].extent; };
  Expansion e{.form = *form,
              .tile = tile,
              .y = extent(form->y).value(),
              .x = extent(form->x).value(),
              .channels = extent(form->channels).value(),
              .columns = extent(form->columns).value()};
  if (form->batch >= 0) e.batch = extent(form->batch);
  std::vector<int> roles;  // the axis that each dim of the result is, but for those of one element
  for (const IndexExpr& index : c.out) {
    std::optional<AffineForm> f = as_affine(index, static_cast<int>(c.axes.size()));
    if (!f || !(f->offset == Dim(0))) return std::nullopt;
    for (int i = 0; i < static_cast<int>(c.axes.size()); ++i) {
      if (extent(i) == Dim(1) || f->coefficients[i] == Dim(0)) continue;
      if (!(f->coefficients[i] == Dim(1))) return std::nullopt;
      roles.push_back(i);
    }
  }
  std::vector<int> expected;
  for (int axis : {form->batch, form->y, form->x, form->columns})
    if (axis >= 0 && !(extent(axis) == Dim(1))) expected.push_back(axis);
  if (roles != expected) return std::nullopt;
  Dim widest = e.values() * Dim(4 * std::max(e.channels, e.columns));
  constexpr int64_t kMost = Target::kBindingBytes;
  if (!always_le(widest, kMost) || e.points() * e.channels * e.columns * 4 > kMost) return std::nullopt;
  return e;
}

double seconds(const Expansion& e, const Target& target) {
  double batch = static_cast<double>(std::max<int64_t>(e.batch.estimate(), 1));
  double channels = static_cast<double>(e.channels), columns = static_cast<double>(e.columns);
  double values = static_cast<double>(e.points() * e.tiles_y() * e.tiles_x()) * batch;
  double pixels = static_cast<double>(e.y * e.x) * batch;
  auto of_bytes = [&](double floats) { return 4 * floats / target.memory_bytes_per_second; };
  auto of_products = [&](double products) { return 2 * products / (target.flops_per_second * kShareOfPeak); };
  double weights = static_cast<double>(e.points()) * channels * columns;
  return of_bytes((pixels + values) * channels) +
         std::max(of_products(values * channels * columns),
                  of_bytes(values * (channels + columns) + weights)) +
         of_bytes((pixels + values) * columns) + 2 * target.dispatch_seconds;
}

double seconds_as_it_stands(const Expansion& e, const Target& target) {
  double pixels =
      static_cast<double>(e.y * e.x) * static_cast<double>(std::max<int64_t>(e.batch.estimate(), 1));
  double channels = static_cast<double>(e.channels), columns = static_cast<double>(e.columns);
  double products = 9 * pixels * channels * columns;
  double floats = pixels * (channels + columns) + 9 * channels * columns;
  return std::max(2 * products / (target.flops_per_second * kShareOfPeak),
                  4 * floats / target.memory_bytes_per_second);
}

}  // namespace

std::vector<int> expandable_tiles(const Graph& graph, const Node& node) {
  std::vector<int> tiles;
  for (int tile : {2, 4})
    if (expansion_of(graph, node, tile)) tiles.push_back(tile);
  return tiles;
}

int best_expanded_tile(const Graph& graph, const Node& node, const Target& target) {
  int best = 0;
  double least = -1;
  for (int tile : {2, 4}) {
    std::optional<Expansion> e = expansion_of(graph, node, tile);
    if (!e) continue;
    if (least < 0) least = seconds_as_it_stands(*e, target);
    if (double s = seconds(*e, target); s < least * kWorthwhile) least = s, best = tile;
  }
  return best;
}

ValueId expand_winograd(Rewriter& r, const Node& node, int tile) {
  std::optional<Expansion> expansion = expansion_of(r.old, node, tile);
  if (!expansion) return kNoValue;
  const Expansion& e = *expansion;
  const Contraction& c = node.attributes.contraction;
  size_t axes = c.axes.size();
  // The image in whole tiles and the windows' overhang, [batch, rows, columns, channels].
  std::vector<IndexExpr> place(axes, IndexExpr(0));
  if (e.form.batch >= 0) place[e.form.batch] = IndexExpr::axis(0);
  place[e.form.y] = IndexExpr::axis(1), place[e.form.x] = IndexExpr::axis(2);
  place[e.form.channels] = IndexExpr::axis(3);
  IndexMap map;
  for (const IndexExpr& index : c.a) map.indices.push_back(substitute(index, place));
  Shape image{e.batch, e.tiles_y() * tile + 2, e.tiles_x() * tile + 2, e.channels};
  if (e.y % tile != 0) map.guards.push_back({IndexExpr::axis(1), 0, e.y + 2});
  if (e.x % tile != 0) map.guards.push_back({IndexExpr::axis(2), 0, e.x + 2});
  ValueId x = r.build.view(r(node.inputs[0]), image, std::move(map));
  x = r.build.add(OpKind::k_winograd_input, {x}, {.ints = {tile}});
  // The weights, [points, channels, columns].
  OperandAccess b = resolve_operand(r.old, node, 1);
  OperandStrides strides = operand_strides(r.old, b, contiguous_strides(r.old.shape(b.base)), 0, axes);
  WinogradPlan one_panel{.form = e.form,
                         .tile = tile,
                         .channels = e.channels,
                         .columns = e.columns,
                         .lanes = static_cast<int>(e.columns)};
  Tensor weights = winograd_weights(*r.old.constant(b.base), one_panel, strides);
  weights.dims = {e.points(), e.channels, e.columns};
  ValueId w = r.build.cast(r.build.constant(std::move(weights)), DType::kF32);
  Contraction products;
  products.axes = {{"point", e.points()}, {"n", e.batch},   {"ty", e.tiles_y()},
                   {"tx", e.tiles_x()},   {"o", e.columns}, {"c", e.channels, true}};
  auto axis = [](int i) { return IndexExpr::axis(i); };
  products.a = {axis(0), axis(1), axis(2), axis(3), axis(5)};
  products.b = {axis(0), axis(5), axis(4)};
  products.out = {axis(0), axis(1), axis(2), axis(3), axis(4)};
  ValueId sums = r.build.contract(x, w, std::move(products));
  ValueId result = r.build.add(OpKind::k_winograd_output, {sums}, {.ints = {tile, e.y, e.x}});
  const Shape& shape = r.old.shape(node.output);
  return r.build.ok() && !(r.graph.shape(result) == shape) ? r.build.reshape(result, shape) : result;
}

}  // namespace quernel::schedule
