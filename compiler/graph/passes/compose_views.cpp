#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// Movement that an index map over static shapes describes. Edge and reflect padding have no map; contiguous
// asks for a copy.
bool has_map(const Graph& graph, const Node& node) {
  if (!is_movement(node.op) || node.op == OpKind::k_contiguous) return false;
  if (node.op == OpKind::k_pad && node.attributes.mode != PadMode::kConstant) return false;
  auto no_elements = [](const Shape& shape) {
    return std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
  };
  const Shape &in = graph.shape(node.inputs[0]), &out = graph.shape(node.output);
  return !no_elements(in) && !no_elements(out);
}

bool is_affine(const IndexMap& map, int axes) {
  auto affine = [&](const IndexExpr& e) { return as_affine(e, axes).has_value(); };
  return std::all_of(map.indices.begin(), map.indices.end(), affine) &&
         std::all_of(map.guards.begin(), map.guards.end(),
                     [&](const IndexGuard& g) { return affine(g.expr); });
}

bool same_value(double a, double b) { return a == b || (a != a && b != b); }

// Two accesses as one, when at most one of them fills, or both with the same value.
ValueId compose_with_operand(Rewriter& r, const Node& node) {
  const Node* inner = r.graph.def(r(node.inputs[0]));
  if (!inner || !has_map(r.graph, *inner)) return kNoValue;
  IndexMap outer_map = index_map_of(r.old, node), inner_map = index_map_of(r.graph, *inner);
  if (!outer_map.guards.empty() && !inner_map.guards.empty() &&
      !same_value(node.attributes.fill, inner->attributes.fill))
    return kNoValue;
  double fill = inner_map.guards.empty() ? node.attributes.fill : inner->attributes.fill;
  const Shape& shape = r.old.shape(node.output);
  IndexMap map = compose(inner_map, outer_map, shape);
  if (!is_affine(map, static_cast<int>(shape.size()))) return kNoValue;
  return r.build.view(inner->inputs[0], shape, std::move(map), fill);
}

}  // namespace

Expected<Graph> compose_views(const Graph& graph) {
  QUERNEL_TRY(Graph live, rewrite(graph, [](Rewriter&, const Node&) { return kNoValue; }));
  std::vector<int32_t> uses = live.use_counts();
  QUERNEL_TRY(Graph result, rewrite(live, [&](Rewriter& r, const Node& node) {
                bool composes = has_map(r.old, node) && uses[node.inputs[0]] == 1;
                return composes ? compose_with_operand(r, node) : kNoValue;
              }));
  return rewrite(result, [](Rewriter&, const Node&) { return kNoValue; });
}

}  // namespace quernel
