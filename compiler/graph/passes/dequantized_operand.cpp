#include "graph/passes/dequantized_operand.h"

#include "graph/passes/constant_operand.h"

namespace quernel {
namespace {

bool is_quantised(DType dtype) { return is_byte(dtype) || is_packed(dtype); }

}  // namespace

std::optional<Dequantized> find_dequantized(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  if (!node || node->op != OpKind::k_mul || graph.dtype(v) != DType::kF32) return std::nullopt;
  auto scaled = with_constant(graph, *node, true);
  if (!scaled) return std::nullopt;
  Dequantized result{kNoValue, std::nullopt, std::move(scaled->second)};
  const Node* cast = graph.def(scaled->first);
  if (!cast || cast->op != OpKind::k_cast) return std::nullopt;
  result.x = cast->inputs[0];
  if (is_quantised(graph.dtype(result.x))) return result;
  const Node* centred = graph.def(result.x);
  if (!centred || centred->op != OpKind::k_sub || graph.dtype(result.x) != DType::kI32) return std::nullopt;
  auto shifted = with_constant(graph, *centred, false);
  if (!shifted) return std::nullopt;
  result.zero = std::move(shifted->second);
  cast = graph.def(shifted->first);
  if (!cast || cast->op != OpKind::k_cast || !is_quantised(graph.dtype(cast->inputs[0]))) return std::nullopt;
  result.x = cast->inputs[0];
  return result;
}

}  // namespace quernel
