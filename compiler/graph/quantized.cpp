#include "graph/quantized.h"

#include <algorithm>

namespace quernel {

std::optional<QuantizedConstant> quantized_constant(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  if (!node || node->op != OpKind::k_dequantize) return std::nullopt;
  QuantizedConstant q{.elements = graph.constant(node->inputs[0]),
                      .scales = graph.constant(node->inputs[1]),
                      .groups = &node->attributes.ints};
  if (!q.elements || !q.scales) return std::nullopt;
  if (node->inputs.size() > 2) {
    q.zeros = graph.constant(node->inputs[2]);
    if (!q.zeros) return std::nullopt;
  }
  return q;
}

bool is_constant_operand(const Graph& graph, ValueId v) {
  return graph.constant(v) || quantized_constant(graph, v);
}

bool reads_weights(const Node& node, size_t operand) {
  const Contraction& c = node.attributes.contraction;
  if (node.op != OpKind::k_contract || operand > 1 || c.accumulator != DType::kF32) return false;
  auto uses = [](const std::vector<IndexExpr>& map, int axis) {
    return std::any_of(map.begin(), map.end(), [&](const IndexExpr& e) { return uses_axis(e, axis); });
  };
  const std::vector<IndexExpr>&own = operand == 0 ? c.a : c.b, &other = operand == 0 ? c.b : c.a;
  int sums = 0, columns = 0;
  for (int i = 0; i < static_cast<int>(c.axes.size()); ++i) {
    if (c.axes[static_cast<size_t>(i)].extent == Dim(1)) continue;
    if (c.axes[static_cast<size_t>(i)].reduction)
      ++sums;
    else
      columns += uses(own, i) && !uses(other, i);
  }
  return sums == 1 || (sums > 1 && columns > 0);
}

namespace {

// The parameter of each element of `shape`.
ValueId spread_groups(GraphBuilder& build, ValueId v, const Shape& shape,
                      const std::vector<int64_t>& groups) {
  const Shape own = build.graph().shape(v);
  Shape split, grown, merged;
  bool whole = true;
  for (size_t d = 0; d < groups.size(); ++d) {
    const bool shared = own[d] == Dim(1);
    split.insert(split.end(), {own[d], Dim(1)});
    grown.insert(grown.end(), {own[d], shared ? shape[d] : Dim(groups[d])});
    merged.push_back(shared ? shape[d] : own[d] * groups[d]);
    whole &= merged.back() == shape[d];
  }
  v = build.reshape(build.broadcast_to(build.reshape(v, split), grown), merged);
  return whole ? v : build.slice(v, Shape(shape.size(), Dim(0)), shape);
}

}  // namespace

ValueId dequantized(GraphBuilder& build, ValueId x, ValueId scales, ValueId zeros,
                    const std::vector<int64_t>& groups) {
  const Shape shape = build.graph().shape(x);
  auto spread = [&](ValueId v) { return spread_groups(build, build.cast(v, DType::kF32), shape, groups); };
  ValueId y = build.cast(x, DType::kF32);
  if (zeros != kNoValue) y = build.add(OpKind::k_sub, {y, spread(zeros)});
  return build.add(OpKind::k_mul, {y, spread(scales)});
}

}  // namespace quernel
