#include <algorithm>
#include <optional>
#include <vector>

#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// The counts by which words are shifted; nullopt where they are all equal (code has them).
std::optional<Tensor> shift_counts(const Graph& graph, ValueId v) {
  constexpr int64_t kWordBits = 32;
  std::optional<Tensor> counts = constant_operand(graph, v);
  if (!counts || counts->dtype != DType::kI32 || all_elements_equal(*counts)) return std::nullopt;
  for (int64_t i = 0; i < counts->count(); ++i)
    if (element_as_i64(*counts, i) < 0 || element_as_i64(*counts, i) >= kWordBits) return std::nullopt;
  return counts;
}

// Each count plus `added`, as a byte.
Tensor as_bytes(const Tensor& counts, int64_t added) {
  std::vector<int8_t> bytes;
  for (int64_t i = 0; i < counts.count(); ++i)
    bytes.push_back(static_cast<int8_t>(element_as_i64(counts, i) + added));
  return make_tensor(DType::kI8, counts.dims, bytes);
}

// The n of which all addends are n * 2^(count - 1); nullopt where there is none.
std::optional<int64_t> halves(const Tensor& addends, const Tensor& counts) {
  if (addends.dtype != DType::kI32 || addends.dims != counts.dims) return std::nullopt;
  std::optional<int64_t> n;
  for (int64_t i = 0; i < counts.count(); ++i) {
    const int64_t count = element_as_i64(counts, i), addend = element_as_i64(addends, i);
    if (count == 0) return std::nullopt;
    const int64_t half = int64_t{1} << (count - 1);
    if (addend % half != 0 || n.value_or(addend / half) != addend / half) return std::nullopt;
    n = addend / half;
  }
  return n;
}

// The sum of a value and such addends.
struct Rounding {
  ValueId x;
  int64_t n;
};
std::optional<Rounding> rounding(const Graph& graph, ValueId sum, const Tensor& counts) {
  const Node* add = graph.def(sum);
  if (!add || add->op != OpKind::k_add) return std::nullopt;
  for (size_t i : {1, 0}) {
    const std::optional<Tensor> addends = constant_operand(graph, add->inputs[i]);
    if (const std::optional<int64_t> n = addends ? halves(*addends, counts) : std::nullopt)
      return Rounding{add->inputs[1 - i], *n};
  }
  return std::nullopt;
}

}  // namespace

Expected<Graph> shrink_shifts(const Graph& graph) {
  return rewrite(graph, [](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_shr) return kNoValue;
    const std::optional<Tensor> counts = shift_counts(r.old, node.inputs[1]);
    if (!counts) return kNoValue;
    const Shape& shape = r.old.shape(node.inputs[1]);
    auto words = [&](int64_t added) {
      return r.build.cast(add_constant(r.build, as_bytes(*counts, added), shape), DType::kI32);
    };
    const std::optional<Rounding> rounds = rounding(r.old, node.inputs[0], *counts);
    if (!rounds) return r.build.binary(BinaryOp::k_shr, r(node.inputs[0]), words(0));
    auto number = [&](int64_t n) {
      const std::vector<int64_t> ones(shape.size(), 1);
      const std::vector<int32_t> element{static_cast<int32_t>(n)};
      return add_constant(r.build, make_tensor(DType::kI32, ones, element), shape);
    };
    const ValueId fewer = words(-1);
    const ValueId addend = r.build.binary(BinaryOp::k_shl, number(rounds->n), fewer);
    const ValueId sum = r.build.binary(BinaryOp::k_add, r(rounds->x), addend);
    return r.build.binary(BinaryOp::k_shr, r.build.binary(BinaryOp::k_shr, sum, fewer), number(1));
  });
}

}  // namespace quernel
