// Operands of large products in bf16, where the target multiplies those by twos (`plan_contraction`, dot 2).
#include <algorithm>
#include <unordered_map>

#include "graph/rewrite.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/contraction/sliding_windows.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kFewestWeights = 1 << 12, kFewestSteps = 4, kFewestColumns = 16;

// Whether elements that one sum takes lie together as the operand is read, enough of them: along an axis, or
// along several, each of which goes on where the one before ends.
bool sums_neighbours(const Graph& graph, const Contraction& c, const OperandAccess& access) {
  OperandStrides strides =
      operand_strides(graph, access, contiguous_strides(graph.shape(access.base)), 0, c.axes.size());
  Dim together = 1;
  for (size_t i = 0; i < c.axes.size();) {
    bool goes_on = c.axes[i].reduction && !(c.axes[i].extent == Dim(1)) && strides.axis[i] == together;
    if (goes_on) together *= c.axes[i].extent;
    i = goes_on ? 0 : i + 1;
  }
  return always_le(kFewestSteps, together);
}

// Results that each element of operand `moving` takes part in: those along axes that only the weights have.
Dim columns_of(const Contraction& c, const OperandAccess& moving) {
  Dim columns = 1;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    bool seen = std::any_of(moving.indices.begin(), moving.indices.end(),
                            [&](const IndexExpr& e) { return uses_axis(e, static_cast<int>(i)); });
    if (!c.axes[i].reduction && !seen) columns *= c.axes[i].extent;
  }
  return columns;
}

}  // namespace

bool rounds_operands(const Graph& graph, const Node& node, const Target& target, DType precision) {
  if (!target.multiplies(precision)) return false;
  const Contraction& c = node.attributes.contraction;
  if (node.op != OpKind::k_contract || c.winograd != 0 || c.accumulator != DType::kF32) return false;
  OperandAccess access[2];
  for (int i = 0; i < 2; ++i) {
    access[i] = resolve_operand(graph, node, i);
    if (graph.dtype(node.inputs[i]) != DType::kF32) return false;
  }
  for (int weights : {1, 0}) {
    const Tensor* data = graph.constant(access[weights].base);
    const OperandAccess& moving = access[1 - weights];
    if (!data || data->count() < kFewestWeights || graph.constant(moving.base) || !moving.affine ||
        (!moving.guards.empty() && moving.fill != 0))
      continue;
    Dim columns = columns_of(c, moving);
    // In its own order, if only with a copy (`materialize_operands`).
    OperandAccess copied{node.inputs[1 - weights], weights == 1 ? c.a : c.b, {}, 0, true};
    if ((always_le(kFewestColumns, columns) && sums_neighbours(graph, c, moving)) ||
        (always_le(staged_images(target).fewest_dot_columns, columns) && sums_neighbours(graph, c, copied)))
      return true;
  }
  return false;
}

Expected<Graph> round_operands(const Graph& graph, const Target& target, DType precision) {
  std::unordered_map<ValueId, ValueId> rounded;  // values of the old graph: those of the new
  // What views lead to is rounded, so that whoever computes it may.
  std::function<ValueId(Rewriter&, ValueId)> round = [&](Rewriter& r, ValueId v) {
    if (auto it = rounded.find(v); it != rounded.end()) return it->second;
    const Node* node = r.old.def(v);
    bool is_view = node && node->op != OpKind::k_contiguous && has_index_map(*node);
    ValueId result = is_view ? r.build.add(node->op, {round(r, node->inputs[0])}, node->attributes)
                             : r.build.cast(r(v), precision);
    return rounded[v] = result;
  };
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (!rounds_operands(r.old, node, target, precision)) return kNoValue;
    ValueId a = round(r, node.inputs[0]), b = round(r, node.inputs[1]);
    Contraction c = node.attributes.contraction;
    c.unrounded = true;
    return r.build.contract(a, b, std::move(c));
  });
}

}  // namespace quernel::schedule
