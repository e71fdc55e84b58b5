// Chooses the convolutions that Winograd's algorithm computes, by estimated cycles or as a file of choices says.
#include <algorithm>
#include <cmath>

#include "graph/quantized.h"
#include "graph/rewrite.h"
#include "schedule/contraction/contraction_text.h"
#include "schedule/target_passes/target_passes.h"
#include "schedule/winograd/expand_winograd.h"
#include "schedule/winograd/winograd_plan.h"

namespace quernel::schedule {
namespace {

constexpr double kWorthwhile = 0.9;  // of the cycles of the plain convolution, or of smaller tiles

// 0 where the convolution is as fast as it stands, where its weights are quantised (transformed ones would be floats), and
// in firmware, whose flash transformed weights would fill up to four times.
int best_tile(const Graph& graph, const Node& node, const Target& target, DType precision) {
  if (quantized_constant(graph, resolve_operand(graph, node, 1).base)) return 0;
  if (target.lanes_are_invocations()) return best_expanded_tile(graph, node, target);
  if (target.code_is_dear()) return 0;
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
  double plain = kWinogradOtherCycles * 9 * products / target.peak_fma_per_cycle;
  double weights = 9 * 4 * static_cast<double>(c.axes[form->channels].extent.value()) *
                   static_cast<double>(c.axes[form->columns].extent.value());
  plain = std::max(plain, weights / target.core.memory_bytes_per_cycle);
  if (rounds_operands(graph, node, target, precision)) plain /= 2;  // operands of two bytes
  double best = plain;
  int tile = 0;
  for (int side : {2, 4}) {
    double cycles = plan_winograd(c, *form, side, strides, target).cycles;
    if (cycles < best * kWorthwhile) best = cycles, tile = side;
  }
  return tile;
}

// `x` with its elements in order below any padding: the channels of an image that is seen permuted become
// contiguous, as whatever else computed the convolution would have to copy them, too.
ValueId ordered_below_pads(Rewriter& r, ValueId x) {
  const Node* node = r.old.def(x);
  if (node && node->op == OpKind::k_pad)
    return r.build.add(OpKind::k_pad, {ordered_below_pads(r, node->inputs[0])}, node->attributes);
  return r.build.add(OpKind::k_contiguous, {r(x)});
}

}  // namespace

Expected<Graph> choose_winograd(const Graph& graph, const Target& target, Choices* choices, DType precision) {
  Diagnostics errors;
  // The tile of the node in `g`: as chosen, else as estimated.
  auto choose = [&](const Graph& g, const Node& node) {
    std::optional<WinogradForm> form = winograd_form(g, node, target.lanes_are_invocations());
    if (!form || (target.lanes_are_invocations() && expandable_tiles(g, node).empty())) return 0;
    std::string text = contraction_text(node.attributes.contraction, *form);
    const Choice* choice = choices ? choices->find(target.name, text) : nullptr;
    if (!choice) return best_tile(g, node, target, precision);
    const Tiling* tiling = std::get_if<Tiling>(choice);
    const bool tile =
        tiling && tiling->rows != 0;  // a GPU's products are a contraction with a tile of its own
    if (!tiling || (target.lanes_are_invocations() ? tile : tile != (tiling->winograd != 0)))
      errors.push_back(choices->refuse(
          target.name, text,
          target.lanes_are_invocations() ? "'direct' or 'winograd 2|4'" : "'direct' or 'winograd 2|4 …'"));
    return tiling ? tiling->winograd : 0;
  };
  Expected<Graph> result = rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_contract) return kNoValue;
    if (target.lanes_are_invocations()) {
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
