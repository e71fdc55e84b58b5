#include "graph/passes/constant_operand.h"

#include <cmath>
#include <cstring>

#include "graph/interpret.h"

namespace quernel {

std::optional<Tensor> constant_operand(const Graph& graph, ValueId v) {
  if (const Tensor* tensor = graph.constant(v)) return *tensor;
  const Node* node = graph.def(v);
  if (!node || node->op != OpKind::k_expand) return std::nullopt;
  const Tensor* tensor = graph.constant(node->inputs[0]);
  return tensor ? std::optional(*tensor) : std::nullopt;
}

std::optional<std::pair<ValueId, Tensor>> with_constant(const Graph& graph, const Node& node, bool commutes) {
  for (size_t i = 2; i-- > (commutes ? 0u : 1u);)
    if (std::optional<Tensor> known = constant_operand(graph, node.inputs[i]))
      return std::pair(node.inputs[1 - i], std::move(*known));
  return std::nullopt;
}

bool all_elements_equal(const Tensor& tensor) {
  if (bit_width(tensor.dtype) < 8) {
    for (int64_t i = 1; i < tensor.count(); ++i)
      if (element_as_i64(tensor, i) != element_as_i64(tensor, 0)) return false;
    return true;
  }
  size_t size = static_cast<size_t>(element_size(tensor.dtype)), total = tensor.bytes.size();
  return total <= size || std::memcmp(tensor.bytes.data(), tensor.bytes.data() + size, total - size) == 0;
}

std::optional<Tensor> uniform_operand(const Graph& graph, ValueId v) {
  std::optional<Tensor> tensor = constant_operand(graph, v);
  if (!tensor || tensor->count() == 0 || !all_elements_equal(*tensor)) return std::nullopt;
  std::vector<uint8_t> element(tensor->bytes.data(), tensor->bytes.data() + element_size(tensor->dtype));
  return Tensor{tensor->dtype, {}, Bytes::own(std::move(element))};
}

namespace {

bool non_negative(const Graph& graph, ValueId v, int depth) {
  if (std::optional<Tensor> c = uniform_operand(graph, v))
    return element_as_f64(*c, 0) >= 0 && !std::signbit(element_as_f64(*c, 0));
  const Node* node = graph.def(v);
  if (!node || depth > 6) return false;
  auto operand = [&](size_t i) { return non_negative(graph, node->inputs[i], depth + 1); };
  switch (node->op) {
    case OpKind::k_abs:
    case OpKind::k_exp:
    case OpKind::k_exp2:
      return true;
    case OpKind::k_mul:
      return node->inputs[0] == node->inputs[1] || (operand(0) && operand(1));
    case OpKind::k_add:
    case OpKind::k_div:
      return operand(0) && operand(1);
    case OpKind::k_sqrt:
    case OpKind::k_reshape:
    case OpKind::k_permute:
    case OpKind::k_expand:
    case OpKind::k_slice:
    case OpKind::k_flip:
    case OpKind::k_reduce_sum:
      return operand(0);
    case OpKind::k_pad:
    case OpKind::k_view:  // outside its guards
      return operand(0) && node->attributes.fill >= 0 && !std::signbit(node->attributes.fill);
    default:
      return false;
  }
}

}  // namespace

bool known_non_negative(const Graph& graph, ValueId v) { return non_negative(graph, v, 0); }

Expected<Tensor> evaluate_node(OpKind op, const std::vector<Tensor>& operands, const Attributes& attributes) {
  Graph graph;
  GraphBuilder build(graph);
  std::vector<ValueId> values;
  Shape shape;
  for (const Tensor& tensor : operands) {
    values.push_back(build.constant(tensor));
    if (is_elementwise(op) && build.ok()) {
      QUERNEL_TRY(shape, broadcast_shapes(shape, graph.shape(values.back())));
    }
  }
  if (is_elementwise(op))
    for (ValueId& v : values) v = build.broadcast_to(v, shape);
  ValueId result = build.add(op, std::move(values), attributes);
  QUERNEL_CHECK(build.take_status());
  graph.outputs.push_back({"result", result});
  QUERNEL_TRY(std::vector<Tensor> tensors, interpret(graph, {}));
  return std::move(tensors[0]);
}

ValueId add_constant(GraphBuilder& build, Tensor tensor, const Shape& shape) {
  if (make_shape(tensor.dims) == shape) return build.constant(std::move(tensor));
  if (tensor.dims.empty()) tensor.dims.assign(shape.size(), 1);
  Attributes attributes;
  attributes.shape = shape;
  return build.add(OpKind::k_expand, {build.constant(std::move(tensor))}, std::move(attributes));
}

}  // namespace quernel
