#include "schedule/tunable_kernels.h"

#include <algorithm>

#include "schedule/contraction/contraction_text.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/contraction/tile_estimates.h"
#include "schedule/plans/plan_loops.h"
#include "schedule/winograd/expand_winograd.h"

namespace quernel::schedule {
namespace {

constexpr size_t kTilesPerAlgorithm = 4;
constexpr size_t kLoopChoices = 5;  // with the estimated one

// Winograd's tiles of both sides, the best of each; "direct"; blocks of half and double the size.
std::vector<Tiling> algorithms(const Schedule& s, const Group& group, const WinogradForm& form,
                               const Target& target) {
  const Node& node = s.graph.nodes[group.anchor];
  if (target.lanes_are_invocations()) {
    std::vector<Tiling> result(1);
    for (int tile : expandable_tiles(s.graph, node)) result.push_back({.winograd = tile});
    return result;
  }
  const Contraction& c = node.attributes.contraction;
  OperandAccess a = resolve_operand(s.graph, node, 0);
  OperandStrides strides =
      operand_strides(s.graph, a, contiguous_strides(s.graph.shape(a.base)), 0, c.axes.size());
  std::vector<Tiling> result;
  int present = group.winograd.tile;
  for (int side : {present == 0 ? 4 : present, present == 2 ? 4 : 2}) {
    WinogradPlan plan = plan_winograd(c, form, side, strides, target);
    std::vector<Tiling> tiles = tilings(plan, target);
    tiles.resize(std::min(tiles.size(), kTilesPerAlgorithm));
    for (int64_t block : {tiles[0].block / 2 / tiles[0].rows * tiles[0].rows, tiles[0].block * 2}) {
      Tiling other = tiles[0];
      other.block = block;
      if (block > 0 && is_legal(plan, target, other)) tiles.insert(tiles.begin() + 1, other);
    }
    if (side != present) tiles.resize(std::min<size_t>(tiles.size(), 2));
    result.insert(result.end(), tiles.begin(), tiles.end());
    if (side == present) result.emplace_back();
  }
  return result;
}

std::vector<Choice> choices_of(const std::vector<Tiling>& tilings) {
  return {tilings.begin(), tilings.end()};
}

class Kernels {
 public:
  void add(const Schedule& s, const Target& target) {
    for (const Group& group : s.groups) {
      const bool elsewhere = group.on_companion && target.companion;
      for (const Schedule& body : group.bodies) add(body, elsewhere ? *target.companion : target);
      if (group.kind == GroupKind::kContract) add_contraction(s, group, target);
    }
    for (const Item& item : s.items)
      if (item.group >= 0) add_loops({s, item, s.groups[item.group], target});
  }

  std::vector<TunableKernel> take() { return std::move(kernels_); }

 private:
  void append(TunableKernel kernel) {
    bool known = std::any_of(kernels_.begin(), kernels_.end(), [&](const TunableKernel& k) {
      return k.key == kernel.key && k.kernel_key == kernel.kernel_key;
    });
    if (!known) kernels_.push_back(std::move(kernel));
  }

  void add_contraction(const Schedule& s, const Group& group, const Target& target) {
    const Node& node = s.graph.nodes[group.anchor];
    if (std::optional<WinogradForm> form = winograd_form(s.graph, node, target.lanes_are_invocations()))
      append({contraction_text(node.attributes.contraction, *form), group.key,
              choices_of(algorithms(s, group, *form, target))});
    if (group.winograd.tile == 0)
      append({group.key, group.key, choices_of(tilings(group.contraction, target))});
  }

  void add_loops(const KernelPlace& kernel) {
    std::optional<LoopOptions> options = loop_options(kernel);
    if (!options) return;
    TunableKernel tunable{options->key, options->key, {}};
    for (const LoopChoice& choice : options->legal)
      if (tunable.choices.size() < kLoopChoices) tunable.choices.emplace_back(choice);
    append(std::move(tunable));
  }

  std::vector<TunableKernel> kernels_;
};

}  // namespace

std::vector<TunableKernel> tunable_kernels(const Schedule& schedule, const Target& target) {
  Kernels kernels;
  kernels.add(schedule, target);
  return kernels.take();
}

}  // namespace quernel::schedule
