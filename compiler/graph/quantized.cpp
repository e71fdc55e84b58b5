#include "graph/quantized.h"

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
