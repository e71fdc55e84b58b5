#include "schedule/tunable_contractions.h"

#include <algorithm>

#include "schedule/contraction/contraction_text.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/contraction/tile_estimates.h"
#include "schedule/winograd/expand_winograd.h"

namespace quernel::schedule {
namespace {

constexpr size_t kTilesPerAlgorithm = 4;

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

void add(const Schedule& s, const Target& target, std::vector<TunableContraction>& result) {
  for (const Group& group : s.groups) {
    for (const Schedule& body : group.bodies) add(body, target, result);
    if (group.kind != GroupKind::kContract) continue;
    auto append = [&](std::string text, std::vector<Tiling> tilings) {
      TunableContraction tunable{std::move(text), group.contraction_text, std::move(tilings)};
      bool known = std::any_of(result.begin(), result.end(), [&](const TunableContraction& t) {
        return t.text == tunable.text && t.kernel_text == tunable.kernel_text;
      });
      if (!known) result.push_back(std::move(tunable));
    };
    const Node& node = s.graph.nodes[group.anchor];
    if (std::optional<WinogradForm> form = winograd_form(s.graph, node, target.lanes_are_invocations()))
      append(contraction_text(node.attributes.contraction, *form), algorithms(s, group, *form, target));
    if (group.winograd.tile == 0) append(group.contraction_text, tilings(group.contraction, target));
  }
}

}  // namespace

std::vector<TunableContraction> tunable_contractions(const Schedule& schedule, const Target& target) {
  std::vector<TunableContraction> result;
  add(schedule, target, result);
  return result;
}

}  // namespace quernel::schedule
