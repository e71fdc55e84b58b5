// Quantised constants stay where contractions read them; what else reads quantised values reads floats.
#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/quantized.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

std::vector<char> derived_from_constants(const Graph& graph) {
  std::vector<char> derived(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    derived[node.output] =
        !gives_token(node.op) && node.op != OpKind::k_result &&
        std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return derived[v] != 0; });
  return derived;
}

bool is_float_contraction(const Node& node) {
  return node.op == OpKind::k_contract && node.attributes.contraction.accumulator == DType::kF32;
}

// Per value: whether it is read by nothing but contractions in f32, through movement.
std::vector<char> read_by_contractions(const Graph& graph) {
  std::vector<char> only(graph.values.size(), 1);
  for (const Graph::Output& output : graph.outputs) only[output.value] = 0;
  for (const Graph::SymbolSource& source : graph.symbol_sources) only[source.value] = 0;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool moves = has_index_map(node) && node.op != OpKind::k_contiguous;
    for (size_t n = 0; n < node.inputs.size(); ++n) {
      const bool taken = node.op == OpKind::k_take && n == 0;  // which reads elements and scales itself
      if (!is_float_contraction(node) && !taken && !(moves && only[node.output])) only[node.inputs[n]] = 0;
    }
  }
  return only;
}

// Rows of a quantised value: taken as they are stored, and then widened.
//   take(dequantize x, s, z {g}, i) -> mul(sub(cast(take(x, i)), take(z, i)), take(s, i))
ValueId take_stored(Rewriter& r, const Node& node) {
  const Node* quantized = node.op == OpKind::k_take ? r.old.def(node.inputs[0]) : nullptr;
  if (!quantized || quantized->op != OpKind::k_dequantize) return kNoValue;
  const auto axis = static_cast<size_t>(node.attributes.ints[0]);
  const std::vector<int64_t>& groups = quantized->attributes.ints;
  const bool own = groups[axis] == 1, shared = r.old.shape(quantized->inputs[1])[axis] == Dim(1);
  if (!own && !shared) return kNoValue;
  const ValueId indices = r(node.inputs[1]);
  const auto inserted = static_cast<size_t>(r.old.rank(node.inputs[1]));
  const Shape& shape = r.old.shape(node.output);
  ValueId y =
      r.build.cast(r.build.take(r(quantized->inputs[0]), indices, node.attributes.ints[0]), DType::kF32);
  auto spread = [&](ValueId v) {
    IndexMap map;
    for (size_t d = 0; d < shape.size(); ++d) {
      IndexExpr place = IndexExpr::axis(static_cast<int>(d));
      if (d < axis)
        map.indices.push_back(floordiv(place, groups[d]));
      else if (d >= axis + inserted)
        map.indices.push_back(floordiv(place, groups[d - inserted + 1]));
      else if (own)
        map.indices.push_back(place);
    }
    if (!own) map.indices.insert(map.indices.begin() + static_cast<std::ptrdiff_t>(axis), IndexExpr(0));
    ValueId rows = own ? r.build.take(r(v), indices, node.attributes.ints[0]) : r(v);
    return r.build.view(r.build.cast(rows, DType::kF32), shape, map);
  };
  if (quantized->inputs.size() > 2) y = r.build.add(OpKind::k_sub, {y, spread(quantized->inputs[2])});
  return r.build.add(OpKind::k_mul, {y, spread(quantized->inputs[1])});
}

}  // namespace

Expected<Graph> expand_dequantize(const Graph& graph) {
  const std::vector<char> constant = derived_from_constants(graph), only = read_by_contractions(graph);
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (ValueId rows = take_stored(r, node); rows != kNoValue) return rows;
    if (node.op != OpKind::k_dequantize || (constant[node.output] && only[node.output])) return kNoValue;
    return dequantized(r.build, r(node.inputs[0]), r(node.inputs[1]),
                       node.inputs.size() > 2 ? r(node.inputs[2]) : kNoValue, node.attributes.ints);
  });
}

}  // namespace quernel
