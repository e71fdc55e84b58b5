#include <cstring>
#include <optional>
#include <vector>

#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// The elements in 32 bits, or nullopt where they are of another dtype, all equal (code has them), or one of
// them does not fit.
std::optional<Tensor> narrowed(const Tensor& wide) {
  if (wide.dtype != DType::kI64 || all_elements_equal(wide)) return std::nullopt;
  std::vector<int32_t> elements;
  for (int64_t i = 0; i < wide.count(); ++i) {
    int64_t element = element_as_i64(wide, i);
    if (element != static_cast<int32_t>(element)) return std::nullopt;
    elements.push_back(static_cast<int32_t>(element));
  }
  std::vector<uint8_t> bytes(elements.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return Tensor{DType::kI32, wide.dims, Bytes::own(std::move(bytes))};
}

bool is_widened(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  return node && node->op == OpKind::k_cast && graph.dtype(node->inputs[0]) == DType::kI32;
}

}  // namespace

Expected<Graph> narrow_multipliers(const Graph& graph) {
  return rewrite(graph, [](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_mul) return kNoValue;
    for (size_t i : {1, 0}) {
      if (!is_widened(r.old, node.inputs[1 - i])) continue;
      std::optional<Tensor> wide = constant_operand(r.old, node.inputs[i]);
      std::optional<Tensor> narrow = wide ? narrowed(*wide) : std::nullopt;
      if (!narrow) continue;
      ValueId factor = add_constant(r.build, std::move(*narrow), r.old.shape(node.inputs[i]));
      return r.build.binary(BinaryOp::k_mul, r(node.inputs[1 - i]), r.build.cast(factor, DType::kI64));
    }
    return kNoValue;
  });
}

}  // namespace quernel
