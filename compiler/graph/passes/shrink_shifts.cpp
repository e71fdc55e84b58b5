#include <algorithm>
#include <optional>
#include <vector>

#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// The counts in bytes, or nullopt where they are not those of words, or all equal (code has them).
std::optional<Tensor> in_bytes(const Tensor& counts) {
  constexpr int64_t kWordBits = 32;
  if (counts.dtype != DType::kI32 || all_elements_equal(counts)) return std::nullopt;
  std::vector<int8_t> bytes;
  for (int64_t i = 0; i < counts.count(); ++i) {
    const int64_t count = element_as_i64(counts, i);
    if (count < 0 || count >= kWordBits) return std::nullopt;
    bytes.push_back(static_cast<int8_t>(count));
  }
  return make_tensor(DType::kI8, counts.dims, bytes);
}

}  // namespace

Expected<Graph> shrink_shifts(const Graph& graph) {
  return rewrite(graph, [](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_shr) return kNoValue;
    std::optional<Tensor> counts = constant_operand(r.old, node.inputs[1]);
    if (counts) counts = in_bytes(*counts);
    if (!counts) return kNoValue;
    const ValueId bytes = add_constant(r.build, std::move(*counts), r.old.shape(node.inputs[1]));
    return r.build.binary(BinaryOp::k_shr, r(node.inputs[0]), r.build.cast(bytes, DType::kI32));
  });
}

}  // namespace quernel
