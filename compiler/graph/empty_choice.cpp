#include "graph/empty_choice.h"

#include "graph/nonzero_dim.h"

namespace quernel {
namespace {

Dim product(const Shape& dims, size_t first, size_t count) {
  Dim n = 1;
  for (size_t d = first; d < first + count && d < dims.size(); ++d) n *= dims[d];
  return n;
}

std::optional<Dim> padded_from(const TensorType& x, const Attributes& a) {
  if (a.mode == PadMode::kConstant) return std::nullopt;
  Dim n = 1;
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (!(a.starts[d] == Dim(0) && a.stops[d] == Dim(0))) n *= x.shape[d];
  return n;
}

}  // namespace

std::optional<Dim> choices(OpKind op, const TensorType& x, const Attributes& a, const Shape& indices) {
  switch (op) {
    case OpKind::k_reduce_argmax:
    case OpKind::k_reduce_argmin:
    case OpKind::k_take:
    case OpKind::k_gather_elements:
      return x.shape[static_cast<size_t>(a.ints[0])];
    case OpKind::k_gather_nd:
      return product(x.shape, static_cast<size_t>(a.ints[0]), static_cast<size_t>(indices.back().value()));
    case OpKind::k_argsort:  // of so many; a computed count is never more
      if (!a.shape[0].is_const()) return std::nullopt;
      return x.shape[static_cast<size_t>(a.ints[0])] - a.shape[0] + 1;
    case OpKind::k_pad:
      return padded_from(x, a);
    default:
      return std::nullopt;
  }
}

Dim empty_choice(const Graph& graph, const Node& node) {
  if (node.inputs.empty()) return 0;
  std::optional<Dim> n = choices(node.op, graph.type(node.inputs[0]), node.attributes,
                                 node.inputs.size() > 1 ? graph.shape(node.inputs[1]) : Shape());
  if (!n) return 0;
  Dim elements = as_declared(*n, graph.symbols);
  Dim results = as_declared(element_count(graph.shape(node.output)), graph.symbols);
  return min(results, 1) * min(elements - 1, 0);
}

}  // namespace quernel
