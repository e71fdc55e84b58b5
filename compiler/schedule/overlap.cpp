#include "schedule/overlap.h"

#include <algorithm>
#include <set>

#include "schedule/contraction/operand_access.h"
#include "schedule/contraction/tile_loops.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kMostSteps = 1 << 20;

// Bytes from the beginning of a buffer to an element: a constant, and a stride along each axis of a contraction.
struct Places {
  int64_t first = 0, element = 1;
  std::vector<int64_t> strides;
};

// nullopt: not known as a number, or not ascending.
std::optional<Places> places(const Dim& offset, const Shape& strides, DType dtype) {
  Places result;
  result.element = element_size(dtype);
  if (is_packed(dtype) || !offset.is_const()) return std::nullopt;
  result.first = offset.value() * result.element;
  for (const Dim& stride : strides) {
    if (!stride.is_const() || stride.value() < 0) return std::nullopt;
    result.strides.push_back(stride.value() * result.element);
  }
  return result;
}

// Which operand of the contraction the kernel reads row by row, if it reads `v` as that one only; else -1.
int moving_operand(const Schedule& s, const Group& group, ValueId v) {
  const Graph& g = s.graph;
  const Node& node = g.nodes[group.anchor];
  const int moving = group.contraction.swapped ? 1 : 0;
  if (resolve_operand(g, node, moving).base != v || resolve_operand(g, node, 1 - moving).base == v) return -1;
  std::set<ValueId> seen{node.output};
  std::vector<ValueId> stack;
  for (int n : group.nodes)
    if (n != group.anchor) stack.insert(stack.end(), g.nodes[n].inputs.begin(), g.nodes[n].inputs.end());
  while (!stack.empty()) {
    const ValueId x = stack.back();
    stack.pop_back();
    if (x == v) return -1;
    if (!seen.insert(x).second || s.storage[x].valid() || g.constant(x)) continue;
    if (const Node* inner = g.def(x)) stack.insert(stack.end(), inner->inputs.begin(), inner->inputs.end());
  }
  return moving;
}

std::optional<Places> places_of_operand(const Schedule& s, const Node& node, int operand) {
  const Graph& g = s.graph;
  const OperandAccess access = resolve_operand(g, node, operand);
  const Storage& storage = s.storage[access.base];
  if (!access.direct() || !storage.valid()) return std::nullopt;
  const size_t axes = node.attributes.contraction.axes.size();
  const OperandStrides strides = operand_strides(g, access, storage.strides, storage.offset, axes);
  return places(strides.offset, strides.axis, g.dtype(access.base));
}

std::optional<Places> places_of_result(const Schedule& s, const Node& node, ValueId result) {
  const Contraction& c = node.attributes.contraction;
  const Storage& storage = s.storage[result];
  const int axes = static_cast<int>(c.axes.size());
  Dim offset = storage.offset;
  Shape strides(c.axes.size(), 0);
  for (size_t d = 0; d < c.out.size(); ++d) {
    std::optional<AffineForm> form = as_affine(c.out[d], axes);
    if (!form) return std::nullopt;
    offset += form->offset * storage.strides[d];
    for (size_t i = 0; i < c.axes.size(); ++i) strides[i] += form->coefficients[i] * storage.strides[d];
  }
  return places(offset, strides, s.graph.dtype(result));
}

// What the steps of the outermost loop read and write.
class Steps {
 public:
  Steps(const ContractionPlan& plan, const Target& target) : plan_(plan) {
    const size_t grid = plan.grid_axes.size();
    std::vector<TileLoop> loops = tile_loops(plan, target);
    std::erase_if(loops, [](const TileLoop& loop) { return loop.extent == Dim(1); });
    if (!loops.empty() && loops[0].place < grid) axes_ = {plan.grid_axes[loops[0].place]};
    if (!loops.empty() && loops[0].place == grid + 1) {
      axes_ = plan.row_axes;
      rows_ = plan.tile_m;
      // Of a line, where other loops come between.
      if (loops.size() > 1 && loops[1].place != grid + 1) rows_ = std::max(rows_, plan.line_rows);
    }
    const Dim count = axes_.empty() ? Dim(0) : product(plan.axes, axes_);
    const bool known = std::all_of(plan.member_extents.begin(), plan.member_extents.end(),
                                   [](const Dim& extent) { return extent.is_const(); });
    if (known && count.is_const() && count.value() <= kMostSteps) count_ = count.value();
  }

  // Positions along the outermost loop; 0: each step reads all of the operand, or it is not known what.
  int64_t count() const { return count_; }
  // The step that visits the position.
  int64_t step(int64_t position) const { return position / rows_; }

  // The first byte at the position, of the first element along the other axes.
  int64_t place(const Places& places, int64_t position) const {
    int64_t at = places.first;
    for (size_t i = axes_.size(); i-- > 0;) {
      const std::vector<int>& members = plan_.axes[axes_[i]].members;
      for (size_t k = members.size(); k-- > 0;) {
        const int64_t extent = plan_.member_extents[members[k]].value();
        at += position % extent * places.strides[members[k]];
        position /= extent;
      }
    }
    return at;
  }
  // From there on, the bytes up to the end of the last element that is written along the other axes.
  int64_t span(const Places& places) const {
    int64_t bytes = places.element;
    for (size_t i = 0; i < plan_.axes.size(); ++i)
      if (std::find(axes_.begin(), axes_.end(), static_cast<int>(i)) == axes_.end())
        for (int member : plan_.axes[i].members)
          bytes += (plan_.member_extents[member].value() - 1) * places.strides[member];
    return bytes;
  }

 private:
  const ContractionPlan& plan_;
  std::vector<int> axes_;  // that the outermost loop walks, the slowest first
  int64_t rows_ = 1, count_ = 0;
};

}  // namespace

std::optional<Overlap> find_overlap(const Schedule& s, const Group& group, ValueId result, ValueId operand,
                                    const Target& target) {
  const ContractionPlan& plan = group.contraction;
  if (group.kind != GroupKind::kContract || group.winograd.tile != 0 || group.outputs.size() != 1 ||
      group.outputs[0] != result || !plan.packed || plan.staged || !plan.windows.empty())
    return std::nullopt;
  const int moving = moving_operand(s, group, operand);
  if (moving < 0) return std::nullopt;
  const Node& node = s.graph.nodes[group.anchor];
  const std::optional<Places> read = places_of_operand(s, node, moving);
  const std::optional<Places> written = places_of_result(s, node, result);
  const Steps steps(plan, target);
  if (!read || !written || steps.count() == 0) return std::nullopt;
  const int64_t last = steps.count() - 1, written_span = steps.span(*written), read_span = steps.span(*read);
  const size_t count = static_cast<size_t>(steps.step(last)) + 1;
  // Forwards: what has been written lies before what a step and those behind it read.
  std::vector<int64_t> read_from(count, INT64_MAX), written_from(count, INT64_MAX);
  for (int64_t i = last, read_first = INT64_MAX, written_first = INT64_MAX; i >= 0; --i) {
    const auto step = static_cast<size_t>(steps.step(i));
    read_from[step] = read_first = std::min(read_first, steps.place(*read, i));
    written_from[step] = written_first = std::min(written_first, steps.place(*written, i));
  }
  Overlap overlap;
  for (int64_t i = 0; i <= last; ++i) {
    const auto step = static_cast<size_t>(steps.step(i));
    overlap.before = std::max(overlap.before, steps.place(*written, i) + written_span - read_from[step]);
    // Backwards: it lies behind what a step and those in front of it read.
    overlap.after = std::max(overlap.after, steps.place(*read, i) + read_span - written_from[step]);
  }
  return overlap;
}

}  // namespace quernel::schedule
