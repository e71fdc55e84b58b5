#include <algorithm>
#include <optional>

#include "graph/passes/constant_operand.h"
#include "graph/passes/own_axis.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kLanes = 64;  // parts end where whole vectors of a kernel do, if they are as long

Expected<Tensor> slice_of(const Tensor& tensor, size_t dim, int64_t begin, int64_t end) {
  Attributes attributes;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    attributes.starts.push_back(d == dim ? begin : 0);
    attributes.stops.push_back(d == dim ? end : tensor.dims[d]);
    attributes.steps.push_back(1);
  }
  return evaluate_node(OpKind::k_slice, {tensor}, attributes);
}

}  // namespace

Expected<Graph> split_weights(const Graph& graph, int64_t most_bytes) {
  Diagnostics errors;
  auto split = [&](Rewriter& r, const Node& node, size_t operand) -> ValueId {
    const Tensor* weights = r.old.constant(node.inputs[operand]);
    if (!weights || byte_size(weights->dtype, weights->count()) <= most_bytes) return kNoValue;
    Contraction part = node.attributes.contraction;
    const std::optional<OwnAxis> own_axis = find_own_axis(part, operand);
    if (!own_axis) return kNoValue;
    int64_t extent = weights->dims[own_axis->operand_dim];
    int64_t bytes = byte_size(weights->dtype, weights->count()) / extent;
    int64_t step = std::clamp<int64_t>(most_bytes / bytes, 1, extent);
    if (step > kLanes) step -= step % kLanes;
    std::vector<ValueId> parts;
    for (int64_t begin = 0; begin < extent; begin += step) {
      int64_t end = std::min(begin + step, extent);
      Expected<Tensor> slice = slice_of(*weights, own_axis->operand_dim, begin, end);
      if (!slice) {
        for (const Diagnostic& d : slice.errors()) errors.push_back(d);
        return kNoValue;
      }
      part.axes[own_axis->axis].extent = end - begin;
      ValueId own = r.build.constant(std::move(*slice)), other = r(node.inputs[1 - operand]);
      parts.push_back(operand == 0 ? r.build.contract(own, other, part) : r.build.contract(other, own, part));
    }
    return r.build.cat(std::move(parts), static_cast<int64_t>(own_axis->result_dim));
  };
  Expected<Graph> result = rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_contract) return kNoValue;
    ValueId value = split(r, node, 1);
    return value != kNoValue ? value : split(r, node, 0);
  });
  if (!errors.empty()) return errors;
  return result;
}

}  // namespace quernel
