#include <algorithm>

#include "graph/passes/dequantized_operand.h"
#include "graph/passes/passes.h"
#include "graph/quantized.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kFewest = 1 << 10;  // elements that are worth a kernel of their kind

// Per value: whether something reads it, and all that does takes rows or has it as weights, perhaps through permutes and
// reshapes.
std::vector<char> read_by_products(const Graph& graph) {
  std::vector<char> products(graph.values.size(), 0), others(graph.values.size(), 0);
  for (const Graph::Output& output : graph.outputs) others[output.value] = 1;
  for (const Graph::SymbolSource& source : graph.symbol_sources) others[source.value] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool moves = node.op == OpKind::k_permute || node.op == OpKind::k_reshape;
    for (size_t n = 0; n < node.inputs.size(); ++n) {
      const bool taken = node.op == OpKind::k_take && n == 0;
      const bool product = moves ? products[node.output] && !others[node.output] : reads_weights(node, n);
      (product || taken ? products : others)[node.inputs[n]] = 1;
    }
  }
  for (size_t v = 0; v < products.size(); ++v) products[v] &= !others[v];
  return products;
}

// A parameter per element or dim of `dims`, as one with a dim of 1 or of the elements' each; nullopt if it has another rank.
std::optional<Tensor> with_rank(Tensor parameter, const std::vector<int64_t>& dims) {
  if (parameter.count() == 1) parameter.dims.assign(dims.size(), 1);
  if (parameter.dims.size() != dims.size()) return std::nullopt;
  for (size_t d = 0; d < dims.size(); ++d)
    if (parameter.dims[d] != 1 && parameter.dims[d] != dims[d]) return std::nullopt;
  return parameter;
}

// Zero points as floats of the scales' dims.
Tensor zeros_like(const Tensor& scales, const Tensor& zeros) {
  std::vector<float> values(static_cast<size_t>(scales.count()));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), place = 0, stride = 1;
    for (size_t d = scales.dims.size(); d-- > 0;) {
      place += (zeros.dims[d] == 1 ? 0 : rest % scales.dims[d]) * stride;
      stride *= zeros.dims[d];
      rest /= scales.dims[d];
    }
    values[i] = static_cast<float>(element_as_f64(zeros, place));
  }
  return f32_tensor(scales.dims, values);
}

}  // namespace

Expected<Graph> form_quantized_constants(const Graph& graph) {
  const std::vector<char> products = read_by_products(graph);
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_mul || !products[node.output]) return kNoValue;
    std::optional<Dequantized> q = find_dequantized(r.old, node.output);
    const Tensor* elements = q ? r.old.constant(q->x) : nullptr;
    if (!elements || elements->count() < kFewest || r.old.shape(node.output) != make_shape(elements->dims))
      return kNoValue;
    std::optional<Tensor> scales = with_rank(q->scale, elements->dims);
    if (!scales || scales->dtype != DType::kF32) return kNoValue;
    std::vector<int64_t> groups;
    for (size_t d = 0; d < elements->dims.size(); ++d)
      groups.push_back(scales->dims[d] == 1 ? std::max<int64_t>(elements->dims[d], 1) : 1);
    ValueId zeros = kNoValue;
    if (q->zero) {
      std::optional<Tensor> zero = with_rank(*q->zero, elements->dims);
      if (!zero) return kNoValue;
      for (size_t d = 0; d < groups.size(); ++d)
        if (zero->dims[d] != 1 && scales->dims[d] == 1) return kNoValue;  // finer than scales
      zeros = r.build.constant(zeros_like(*scales, *zero));
    }
    return r.build.dequantize(r(q->x), r.build.constant(std::move(*scales)), zeros, std::move(groups));
  });
}

}  // namespace quernel
