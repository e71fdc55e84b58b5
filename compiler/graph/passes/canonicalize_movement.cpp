#include <algorithm>
#include <numeric>

#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

bool is_zero(const Dim& d) { return d.is_const() && d.value() == 0; }
bool all_const(const Shape& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_const(); });
}
bool all_zero(const Shape& dims) { return std::all_of(dims.begin(), dims.end(), is_zero); }

// The operand's node if it is an `op`.
const Node* operand_node(const Rewriter& r, const Node& node, OpKind op) {
  const Node* inner = r.graph.def(r(node.inputs[0]));
  return inner && inner->op == op ? inner : nullptr;
}

ValueId canonical_reshape(Rewriter& r, const Node& node) {
  ValueId x = r(node.inputs[0]);
  while (const Node* inner = r.graph.def(x)) {
    if (inner->op != OpKind::k_reshape) break;
    x = inner->inputs[0];  // one step at most: what stands before it was canonical already
  }
  if (r.graph.shape(x) == node.attributes.shape) return x;
  return x == r(node.inputs[0]) ? kNoValue : r.build.reshape(x, node.attributes.shape);
}

ValueId canonical_permute(Rewriter& r, const Node& node) {
  ValueId x = r(node.inputs[0]);
  std::vector<int64_t> perm = node.attributes.ints;
  if (const Node* inner = operand_node(r, node, OpKind::k_permute)) {
    for (int64_t& p : perm) p = inner->attributes.ints[p];
    x = inner->inputs[0];
  } else if (!std::is_sorted(perm.begin(), perm.end())) {
    return kNoValue;
  }
  return r.build.permute(x, std::move(perm));  // gives x for the identity
}

ValueId canonical_expand(Rewriter& r, const Node& node) {
  ValueId x = r(node.inputs[0]);
  if (r.graph.shape(x) == node.attributes.shape) return x;
  const Node* inner = operand_node(r, node, OpKind::k_expand);
  return inner ? r.build.broadcast_to(inner->inputs[0], node.attributes.shape) : kNoValue;
}

ValueId canonical_flip(Rewriter& r, const Node& node) {
  ValueId x = r(node.inputs[0]);
  std::vector<int64_t> axes = node.attributes.ints;
  const Node* inner = operand_node(r, node, OpKind::k_flip);
  if (inner) {
    x = inner->inputs[0];
    axes.insert(axes.end(), inner->attributes.ints.begin(), inner->attributes.ints.end());
  }
  // Twice is none, and so is a dim of one element.
  std::vector<int64_t> kept;
  for (int64_t axis = 0; axis < r.graph.rank(x); ++axis)
    if (std::count(axes.begin(), axes.end(), axis) % 2 == 1 && !(r.graph.shape(x)[axis] == Dim(1)))
      kept.push_back(axis);
  if (kept.empty()) return x;
  return !inner && kept == node.attributes.ints ? kNoValue : r.build.flip(x, std::move(kept));
}

// ---- pad ----
bool same_fill(const Attributes& a, const Attributes& b) {
  if (a.mode != b.mode) return false;
  if (a.mode == PadMode::kConstant) return a.fill == b.fill || (a.fill != a.fill && b.fill != b.fill);
  return a.mode == PadMode::kEdge;
}

ValueId canonical_pad(Rewriter& r, const Node& node) {
  const Attributes& a = node.attributes;
  ValueId x = r(node.inputs[0]);
  if (all_zero(a.starts) && all_zero(a.stops)) return x;
  const Node* inner = operand_node(r, node, OpKind::k_pad);
  if (!inner || !same_fill(a, inner->attributes)) return kNoValue;
  Shape before = a.starts, after = a.stops;
  for (size_t d = 0; d < before.size(); ++d) {
    before[d] = before[d] + inner->attributes.starts[d];
    after[d] = after[d] + inner->attributes.stops[d];
  }
  return r.build.pad(inner->inputs[0], std::move(before), std::move(after), a.mode, a.fill);
}

// ---- slice ----
ValueId slice_of_slice(Rewriter& r, const Node& node, const Node& inner) {
  const Attributes &outer_at = node.attributes, &inner_at = inner.attributes;
  if (!all_const(outer_at.starts) || !all_const(inner_at.starts) || !is_static(r.old.shape(node.output)))
    return kNoValue;
  Shape starts, stops;
  std::vector<int64_t> steps;
  for (size_t d = 0; d < outer_at.starts.size(); ++d) {
    int64_t count = r.old.shape(node.output)[d].value();
    int64_t step = count > 1 ? outer_at.steps[d] * inner_at.steps[d] : 1;
    int64_t start =
        count == 0 ? 0 : inner_at.starts[d].value() + outer_at.starts[d].value() * inner_at.steps[d];
    starts.push_back(start);
    stops.push_back(count == 0 ? 0 : start + (count - 1) * step + 1);
    steps.push_back(step);
  }
  return r.build.slice(inner.inputs[0], std::move(starts), std::move(stops), std::move(steps));
}

bool is_identity_slice(const Attributes& a, const Shape& shape) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (!is_zero(a.starts[d]) || !(a.stops[d] == shape[d]) || a.steps[d] != 1) return false;
  return true;
}

// A window of padded data with steps of 1: less padding, and a slice only where the window cuts into the data
// itself.
//   slice(pad(x: 4, 2 before, 2 after), 1:8) -> pad(x, 1 before, 2 after)
ValueId slice_of_pad(Rewriter& r, const Node& node, const Node& inner) {
  const Attributes &window = node.attributes, &pad = inner.attributes;
  ValueId x = inner.inputs[0];
  const Shape& shape = r.graph.shape(x);
  if (pad.mode != PadMode::kConstant || !is_static(shape) || !all_const(pad.starts) || !all_const(pad.stops))
    return kNoValue;
  if (!all_const(window.starts) || !all_const(window.stops)) return kNoValue;
  Shape starts, stops, before, after;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (window.steps[d] != 1) return kNoValue;
    int64_t size = shape[d].value(), first = window.starts[d].value() - pad.starts[d].value(),
            last = window.stops[d].value() - pad.starts[d].value();
    if (last <= 0 || first >= size || first >= last) return kNoValue;  // nothing of the data is left
    starts.push_back(std::max<int64_t>(first, 0));
    stops.push_back(std::min(last, size));
    before.push_back(std::max<int64_t>(-first, 0));
    after.push_back(std::max<int64_t>(last - size, 0));
  }
  bool slices = starts != Shape(shape.size(), Dim(0)) || stops != shape,
       pads = !all_zero(before) || !all_zero(after);
  if (slices && pads) return kNoValue;
  if (slices) return r.build.slice(x, std::move(starts), std::move(stops));
  return r.build.pad(x, std::move(before), std::move(after), PadMode::kConstant, pad.fill);
}

// A slice that stays within one operand of a cat reads that operand.
ValueId slice_of_cat(Rewriter& r, const Node& node, const Node& inner) {
  size_t axis = static_cast<size_t>(inner.attributes.ints[0]);
  const Attributes& a = node.attributes;
  if (!a.starts[axis].is_const() || !a.stops[axis].is_const()) return kNoValue;
  int64_t start = a.starts[axis].value(), stop = a.stops[axis].value(), first = 0;
  std::vector<ValueId> operands = inner.inputs;
  for (ValueId x : operands) {
    const Dim& size = r.graph.shape(x)[axis];
    if (!size.is_const() || start < first) return kNoValue;
    if (start < first + size.value() && stop <= first + size.value()) {
      Shape starts = a.starts, stops = a.stops;
      starts[axis] = start - first;
      stops[axis] = stop - first;
      Attributes shifted = a;
      shifted.starts = starts, shifted.stops = stops;
      return is_identity_slice(shifted, r.graph.shape(x))
                 ? x
                 : r.build.slice(x, std::move(starts), std::move(stops), a.steps);
    }
    first += size.value();
  }
  return kNoValue;
}

ValueId canonical_slice(Rewriter& r, const Node& node) {
  ValueId x = r(node.inputs[0]);
  if (is_identity_slice(node.attributes, r.graph.shape(x))) return x;
  const Node* inner = r.graph.def(x);
  if (!inner) return kNoValue;
  Node copy;  // building appends to the graph, and moves its nodes
  switch (inner->op) {
    case OpKind::k_slice:
      copy = *inner;
      return slice_of_slice(r, node, copy);
    case OpKind::k_pad:
      copy = *inner;
      return slice_of_pad(r, node, copy);
    case OpKind::k_cat:
      copy = *inner;
      return slice_of_cat(r, node, copy);
    default:
      return kNoValue;
  }
}

// ---- cat ----
constexpr size_t kMaxOperands = 64;  // of a flattened cat: a chain of cats must not take quadratic time

// Operands that are cats along the same axis, and used only here, give their own operands; empty operands
// vanish.
ValueId canonical_cat(Rewriter& r, const Node& node, const std::vector<int32_t>& uses) {
  std::vector<ValueId> operands;
  size_t axis = static_cast<size_t>(node.attributes.ints[0]);
  bool changed = false;
  for (ValueId old : node.inputs) {
    ValueId x = r(old);
    const Node* inner = r.graph.def(x);
    if (inner && inner->op == OpKind::k_cat && inner->attributes.ints == node.attributes.ints &&
        uses[old] == 1 && inner->inputs.size() + node.inputs.size() <= kMaxOperands) {
      operands.insert(operands.end(), inner->inputs.begin(), inner->inputs.end());
      changed = true;
    } else if (is_zero(r.graph.shape(x)[axis]) && node.inputs.size() > 1) {
      changed = true;
    } else {
      operands.push_back(x);
    }
  }
  if (operands.empty()) return r(node.inputs[0]);
  return changed || operands.size() == 1 ? r.build.cat(std::move(operands), node.attributes.ints[0])
                                         : kNoValue;
}

}  // namespace

Expected<Graph> canonicalize_movement(const Graph& graph) {
  QUERNEL_TRY(Graph live,
              rewrite(graph, [](Rewriter&, const Node&) { return kNoValue; }));  // dead uses do not count
  std::vector<int32_t> uses = live.use_counts();
  QUERNEL_TRY(Graph result, rewrite(live, [&](Rewriter& r, const Node& node) {
                switch (node.op) {
                  case OpKind::k_reshape:
                    return canonical_reshape(r, node);
                  case OpKind::k_permute:
                    return canonical_permute(r, node);
                  case OpKind::k_expand:
                    return canonical_expand(r, node);
                  case OpKind::k_flip:
                    return canonical_flip(r, node);
                  case OpKind::k_pad:
                    return canonical_pad(r, node);
                  case OpKind::k_slice:
                    return canonical_slice(r, node);
                  case OpKind::k_cat:
                    return canonical_cat(r, node, uses);
                  case OpKind::k_contiguous:
                    return operand_node(r, node, OpKind::k_contiguous) ? r(node.inputs[0]) : kNoValue;
                  default:
                    return kNoValue;
                }
              }));
  return rewrite(result, [](Rewriter&, const Node&) { return kNoValue; });
}

}  // namespace quernel
