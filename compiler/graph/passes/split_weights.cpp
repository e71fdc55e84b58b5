#include <algorithm>
#include <optional>

#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kLanes = 64;  // parts end where whole vectors of a kernel do, if they are as long

bool mentions(const std::vector<IndexExpr>& access, int axis) {
  return std::any_of(access.begin(), access.end(), [&](const IndexExpr& e) { return uses_axis(e, axis); });
}

// The only dim of `access` that mentions the axis, where it is that axis and nothing else.
std::optional<size_t> dim_of(const std::vector<IndexExpr>& access, int axis, int axes) {
  std::optional<size_t> found;
  for (size_t d = 0; d < access.size(); ++d) {
    if (!uses_axis(access[d], axis)) continue;
    std::optional<AffineForm> form = as_affine(access[d], axes);
    if (found || !form || form->offset != Dim(0)) return std::nullopt;
    for (int i = 0; i < axes; ++i)
      if (form->coefficients[i] != Dim(i == axis ? 1 : 0)) return std::nullopt;
    found = d;
  }
  return found;
}

// How a contraction is split: an axis that the weights and the result have for themselves.
struct Split {
  int axis = 0;
  size_t weights_dim = 0, result_dim = 0;
};

std::optional<Split> find_split(const Contraction& c, bool weights_first) {
  const std::vector<IndexExpr>& weights = weights_first ? c.a : c.b;
  const std::vector<IndexExpr>& other = weights_first ? c.b : c.a;
  int axes = static_cast<int>(c.axes.size());
  for (int axis = 0; axis < axes; ++axis) {
    if (c.axes[axis].reduction || !c.axes[axis].extent.is_const() || mentions(other, axis)) continue;
    std::optional<size_t> in = dim_of(weights, axis, axes), out = dim_of(c.out, axis, axes);
    if (in && out) return Split{axis, *in, *out};
  }
  return std::nullopt;
}

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
    std::optional<Split> how = find_split(part, operand == 0);
    if (!how) return kNoValue;
    int64_t extent = weights->dims[how->weights_dim];
    int64_t bytes = byte_size(weights->dtype, weights->count()) / extent;
    int64_t step = std::clamp<int64_t>(most_bytes / bytes, 1, extent);
    if (step > kLanes) step -= step % kLanes;
    std::vector<ValueId> parts;
    for (int64_t begin = 0; begin < extent; begin += step) {
      int64_t end = std::min(begin + step, extent);
      Expected<Tensor> slice = slice_of(*weights, how->weights_dim, begin, end);
      if (!slice) {
        for (const Diagnostic& d : slice.errors()) errors.push_back(d);
        return kNoValue;
      }
      part.axes[how->axis].extent = end - begin;
      ValueId own = r.build.constant(std::move(*slice)), other = r(node.inputs[1 - operand]);
      parts.push_back(operand == 0 ? r.build.contract(own, other, part) : r.build.contract(other, own, part));
    }
    return r.build.cat(std::move(parts), static_cast<int64_t>(how->result_dim));
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
