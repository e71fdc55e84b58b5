// Operands of large products in bf16, where the target multiplies those by twos (`plan_contraction`, dot 2).
#include <algorithm>
#include <unordered_map>

#include "graph/rewrite.h"
#include "schedule/schedule.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kFewestWeights = 1 << 12, kFewestSteps = 8, kFewestColumns = 16;

// Whether elements that one sum takes lie together in the operand, enough of them.
bool sums_neighbours(const Contraction& c, const OperandAccess& access) {
  int axes = static_cast<int>(c.axes.size());
  if (!access.affine || access.indices.empty() || (!access.guards.empty() && access.fill != 0)) return false;
  AffineForm last = *as_affine(access.indices.back(), axes);
  for (int i = 0; i < axes; ++i)
    if (c.axes[i].reduction && last.coefficients[i] == Dim(1) && always_le(kFewestSteps, c.axes[i].extent))
      return true;
  return false;
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

bool should_round(const Graph& graph, const Node& node) {
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
    if (data && data->count() >= kFewestWeights && !graph.constant(moving.base) &&
        sums_neighbours(c, moving) && always_le(kFewestColumns, columns_of(c, moving)))
      return true;
  }
  return false;
}

}  // namespace

Expected<Graph> round_operands(const Graph& graph, const Target& target, DType precision) {
  if (!target.multiplies(precision)) return graph;
  std::unordered_map<ValueId, ValueId> rounded;  // values of the old graph: those of the new
  // What views lead to is rounded, so that whoever computes it may.
  std::function<ValueId(Rewriter&, ValueId)> round = [&](Rewriter& r, ValueId v) {
    if (auto it = rounded.find(v); it != rounded.end()) return it->second;
    const Node* node = r.old.def(v);
    bool is_view = node && node->op != OpKind::k_contiguous && has_index_map(*node);
    ValueId result = is_view ? r.build.add(node->op, {round(r, node->inputs[0])}, node->attributes)
                             : r.build.cast(r(v), DType::kBF16);
    return rounded[v] = result;
  };
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (!should_round(r.old, node)) return kNoValue;
    ValueId a = round(r, node.inputs[0]), b = round(r, node.inputs[1]);
    Contraction c = node.attributes.contraction;
    c.unrounded = true;
    return r.build.contract(a, b, std::move(c));
  });
}

}  // namespace quernel::schedule
