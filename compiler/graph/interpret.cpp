#include "graph/interpret.h"

#include "graph/interpret_parts.h"

namespace quernel {
namespace {

using interpreter::Operands;
using interpreter::ResultType;

// Refused rather than attempted: nothing that is worth checking is larger.
constexpr int64_t kMaxBytes = int64_t{1} << 35;

Expected<ResultType> result_type(const Graph& graph, const Node& node) {
  const TensorType& type = graph.type(node.output);
  if (!is_static(type.shape))
    return unsupported("the interpreter expects static shapes, found " + to_string(type), node.location,
                       "bind the symbols first");
  ResultType result{type.dtype, static_dims(type.shape)};
  std::optional<int64_t> count = element_count(result.dims);
  if (!count || *count > kMaxBytes / element_size(type.dtype))
    return unsupported("the interpreter's tensors are limited to " + std::to_string(kMaxBytes) +
                           " bytes, found " + to_string(type),
                       node.location);
  return result;
}

Status check_inputs(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (inputs.size() != graph.inputs.size())
    return invalid_input("expected " + std::to_string(graph.inputs.size()) + " inputs, found " +
                         std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.values[graph.inputs[i]];
    TensorType found{inputs[i].dtype, make_shape(inputs[i].dims)};
    if (found != value.type)
      return invalid_input("input '" + value.name + "': expected " + to_string(value.type) + ", found " +
                           to_string(found));
    auto expected_bytes = static_cast<size_t>(byte_size(found.dtype, inputs[i].count()));
    if (inputs[i].bytes.size() != expected_bytes)
      return invalid_input("input '" + value.name + "': expected " + std::to_string(expected_bytes) +
                           " bytes, found " + std::to_string(inputs[i].bytes.size()));
  }
  return {};
}

}  // namespace

Expected<Tensor> interpret_node(const Graph& graph, const Node& node,
                                const std::vector<const Tensor*>& operands) {
  QUERNEL_TRY(ResultType type, result_type(graph, node));
  if (node.op == OpKind::k_constant) return node.attributes.tensor;
  if (is_elementwise(node.op)) return interpreter::run_elementwise(node, operands, type);
  if (is_movement(node.op)) return interpreter::run_movement(node, operands, type);
  if (is_reduce(node.op)) return interpreter::run_reduce(node, operands, type);
  if (is_scan(node.op)) return interpreter::run_scan(node, operands, type);
  if (is_gather(node.op)) return interpreter::run_gather(node, operands, type);
  if (is_scatter(node.op)) return interpreter::run_scatter(node, operands, type);
  switch (node.op) {
    case OpKind::k_bitcast:
      return interpreter::run_bitcast(node, operands, type);
    case OpKind::k_cat:
      return interpreter::run_cat(node, operands, type);
    case OpKind::k_contract:
      return interpreter::run_contract(node, operands, type);
    case OpKind::k_argsort:
      return interpreter::run_sort(node, operands, type);
    default:
      return internal_error("the interpreter does not know op " + std::string(to_string(node.op)),
                            node.location);
  }
}

Expected<std::vector<Tensor>> interpret(const Graph& graph, const std::vector<Tensor>& inputs) {
  QUERNEL_CHECK(check_inputs(graph, inputs));
  std::vector<int32_t> uses_left = graph.use_counts();
  std::vector<Tensor> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];

  for (const Node& node : graph.nodes) {
    if (uses_left[node.output] == 0) {
      for (ValueId v : node.inputs) --uses_left[v];
      continue;
    }
    Operands operands;
    for (ValueId v : node.inputs) operands.push_back(&values[v]);
    QUERNEL_TRY(values[node.output], interpret_node(graph, node, operands));
    for (ValueId v : node.inputs)
      if (--uses_left[v] == 0) values[v] = {};  // outputs hold a use of their own
  }

  std::vector<Tensor> outputs;
  for (const Graph::Output& output : graph.outputs) outputs.push_back(values[output.value]);
  return outputs;
}

}  // namespace quernel
