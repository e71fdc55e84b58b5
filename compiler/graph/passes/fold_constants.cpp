// What is folded, and what is not:
//   - An expand (or a view that repeats elements) of a constant stays one: broadcast data costs nothing as an
//     index map. Elementwise ops, permutes, slices, flips and uniform reshapes of such operands are computed
//     on the small tensor, and expanded again.
//   - A contraction's operands are materialised: weights need bytes to be packed at compile time.
//   - Quantised constants stay as they are (expand_dequantize decides).
//   - Anything else is folded while its result is no larger than kMaxResult or than its operands together;
//     no contraction takes more than kMaxProducts multiplications.
//   - All results together, intermediate ones included, have a limit (FoldBudget), over all calls.
#include <algorithm>

#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"
#include "support/mapped_file.h"

namespace quernel {
namespace {

constexpr int64_t kMaxResult = int64_t{64} << 20;  // bytes
constexpr int64_t kMaxWeights = int64_t{1} << 30;  // bytes
constexpr int64_t kMaxProducts = int64_t{1} << 28;
constexpr int64_t kMaxCount = int64_t{1} << 40;  // of elements that are counted in bytes
// Of all results together, bytes: so much, or so many times the graph's constants.
constexpr int64_t kMaxTotal = int64_t{128} << 20;
constexpr int64_t kTotalPerConstant = 16;

// Bytes of a static type; nullopt when symbolic or beyond any limit.
std::optional<int64_t> byte_count(const TensorType& type) {
  if (!is_static(type.shape)) return std::nullopt;
  std::optional<int64_t> count = element_count(static_dims(type.shape));
  if (!count || *count > kMaxCount) return std::nullopt;
  return byte_size(type.dtype, *count);
}

ValueId add_or_fail(Rewriter& r, Expected<Tensor> tensor, const Shape& shape) {
  if (!tensor) return r.build.fail(tensor.take_errors().front());
  return add_constant(r.build, std::move(*tensor), shape);
}

Expected<Tensor> expanded(const Tensor& tensor, const Shape& shape) {
  if (make_shape(tensor.dims) == shape) return tensor;
  Attributes attributes;
  attributes.shape = shape;
  return evaluate_node(OpKind::k_expand, {tensor}, attributes);
}

// A slice or flip of an expanded dim is the same of its one element.
Attributes on_unexpanded(OpKind op, Attributes a, const Tensor& tensor, const Shape& shape) {
  if (op == OpKind::k_flip) return a;
  for (size_t d = 0; d < tensor.dims.size(); ++d)
    if (!(shape[d] == Dim(tensor.dims[d]))) a.starts[d] = 0, a.stops[d] = 1, a.steps[d] = 1;
  return a;
}

// Movement of `tensor` expanded to `shape`, computed without expanding; kNoValue where that is not possible.
ValueId move_unexpanded(Rewriter& r, const Node& node, const Tensor& tensor, const Shape& shape) {
  const Shape& result = r.old.shape(node.output);
  switch (node.op) {
    case OpKind::k_expand:
      return add_constant(r.build, tensor, result);
    case OpKind::k_permute:
      return add_or_fail(r, evaluate_node(node.op, {tensor}, node.attributes), result);
    case OpKind::k_slice:
    case OpKind::k_flip: {
      Attributes attributes = on_unexpanded(node.op, node.attributes, tensor, shape);
      bool is_const = std::all_of(attributes.starts.begin(), attributes.starts.end(),
                                  [](const Dim& d) { return d.is_const(); }) &&
                      std::all_of(attributes.stops.begin(), attributes.stops.end(),
                                  [](const Dim& d) { return d.is_const(); });
      if (!is_const) return kNoValue;
      return add_or_fail(r, evaluate_node(node.op, {tensor}, attributes), result);
    }
    case OpKind::k_reshape: {
      if (tensor.count() != 1) return kNoValue;
      Tensor scalar = tensor;
      scalar.dims.assign(result.size(), 1);
      return add_constant(r.build, std::move(scalar), result);
    }
    default:
      return kNoValue;
  }
}

// Gives a contraction, or a quantised constant, the expanded operands as constants.
ValueId materialise_weights(Rewriter& r, const Node& node, int64_t left) {
  std::vector<ValueId> inputs;
  bool changed = false;
  for (ValueId old : node.inputs) {
    ValueId v = r(old);
    std::optional<Tensor> tensor = constant_operand(r.graph, v);
    std::optional<int64_t> bytes = byte_count(r.graph.type(v));
    if (tensor && !r.graph.constant(v) && bytes && *bytes <= std::min(kMaxWeights, left)) {
      v = add_or_fail(r, expanded(*tensor, r.graph.shape(v)), r.graph.shape(v));
      changed = true;
    }
    inputs.push_back(v);
  }
  return changed ? r.build.add(node.op, std::move(inputs), node.attributes) : kNoValue;
}

// Bytes of an elementwise result of operands that are not expanded.
int64_t broadcast_bytes(const std::vector<Tensor>& operands, DType dtype) {
  std::vector<int64_t> dims;
  for (const Tensor& t : operands) {
    if (dims.size() < t.dims.size()) dims.insert(dims.begin(), t.dims.size() - dims.size(), 1);
    for (size_t d = 0; d < t.dims.size(); ++d) {
      int64_t& dim = dims[dims.size() - t.dims.size() + d];
      if (dim == 1) dim = t.dims[d];
    }
  }
  std::optional<int64_t> count = element_count(dims);
  return count && *count <= kMaxCount ? byte_size(dtype, *count) : INT64_MAX;
}

int64_t byte_total(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<int64_t>(t.bytes.size());
  return bytes;
}

bool within_limits(const Rewriter& r, const Node& node, const std::vector<Tensor>& operands, int64_t left) {
  std::optional<int64_t> bytes = byte_count(r.old.type(node.output));
  if (!bytes || *bytes > std::min(std::max(kMaxResult, byte_total(operands)), left)) return false;
  for (ValueId v : node.inputs) {
    std::optional<int64_t> operand = byte_count(r.old.type(v));
    if (!operand || *operand > kMaxWeights) return false;
  }
  double products = 1;
  for (const Contraction::Axis& axis : node.attributes.contraction.axes)
    products *= static_cast<double>(axis.extent.value());
  return node.op != OpKind::k_contract || products <= static_cast<double>(kMaxProducts);
}

// Whether a slice takes all of its operand, in its order.
bool takes_all(const Graph& graph, const Node& node) {
  const Attributes& a = node.attributes;
  return node.op == OpKind::k_slice && graph.shape(node.output) == graph.shape(node.inputs[0]) &&
         std::all_of(a.steps.begin(), a.steps.end(), [](int64_t step) { return step == 1; });
}

// `left`: bytes that may be made.
ValueId fold(Rewriter& r, const Node& node, int64_t left) {
  if (node.op == OpKind::k_constant || gives_token(node.op)) return kNoValue;
  if (node.op == OpKind::k_dequantize) return materialise_weights(r, node, left);
  if (takes_all(r.old, node) && r.graph.constant(r(node.inputs[0])))
    return r(node.inputs[0]);  // large weights are not copied
  if (node.op == OpKind::k_dims) {
    const Shape& elements = node.attributes.shape;
    return is_static(elements)
               ? r.build.constant(i64_tensor({static_cast<int64_t>(elements.size())}, static_dims(elements)))
               : kNoValue;
  }
  if (node.op == OpKind::k_expand && r.graph.constant(r(node.inputs[0]))) return kNoValue;
  // A view that repeats elements is an expand in another form.
  if (const Tensor* x = node.op == OpKind::k_view ? r.graph.constant(r(node.inputs[0])) : nullptr)
    if (Dim count = element_count(r.old.shape(node.output)); !count.is_const() || count.value() > x->count())
      return kNoValue;
  std::vector<Tensor> operands;
  for (ValueId old : node.inputs) {
    std::optional<Tensor> tensor = constant_operand(r.graph, r(old));
    if (!tensor) return node.op == OpKind::k_contract ? materialise_weights(r, node, left) : kNoValue;
    operands.push_back(std::move(*tensor));
  }
  const Shape& shape = r.old.shape(node.output);
  if (!is_elementwise(node.op) && !symbols_of(r.old, node).empty()) return kNoValue;
  if (is_elementwise(node.op)) {
    // What only grows by being computed stays a run-time value, like an expand.
    const int64_t most = std::min(std::max(kMaxResult, 8 * byte_total(operands)), left);
    if (broadcast_bytes(operands, r.old.dtype(node.output)) > most) return kNoValue;
    return add_or_fail(r, evaluate_node(node.op, operands, node.attributes), shape);
  }
  if (is_movement(node.op)) {
    bool is_expanded = !r.graph.constant(r(node.inputs[0]));
    if (is_expanded)
      if (ValueId v = move_unexpanded(r, node, operands[0], r.graph.shape(r(node.inputs[0]))); v != kNoValue)
        return v;
  }
  if (!within_limits(r, node, operands, left)) return kNoValue;
  for (size_t i = 0; i < operands.size(); ++i) {
    Expected<Tensor> full = expanded(operands[i], r.graph.shape(r(node.inputs[i])));
    if (!full) return r.build.fail(full.take_errors().front());
    operands[i] = std::move(*full);
  }
  return add_or_fail(r, evaluate_node(node.op, operands, node.attributes), shape);
}

// What was folded may lie in the model's file.
void release_operands(const Rewriter& r, const Node& node) {
  for (ValueId v : node.inputs)
    if (const Tensor* operand = r.graph.constant(r(v)))
      release_pages(operand->bytes.data(), operand->bytes.size());
}

}  // namespace

Expected<Graph> fold_constants(const Graph& graph, FoldBudget& budget,
                               const std::function<bool(const Graph&, const Node&)>& keep) {
  if (!budget.left) {
    int64_t constants = 0;  // bytes
    for (const Node& node : graph.nodes)
      constants += static_cast<int64_t>(node.attributes.tensor.bytes.size());
    budget.left = std::max(
        kMaxTotal, constants > INT64_MAX / kTotalPerConstant ? INT64_MAX : constants * kTotalPerConstant);
  }
  int64_t& left = *budget.left;
  QUERNEL_TRY(Graph folded, rewrite(graph, [&](Rewriter& r, const Node& node) {
                if (left <= 0 || keep(graph, node)) return kNoValue;
                const size_t first = r.graph.nodes.size();
                ValueId result = fold(r, node, left);
                if (result != kNoValue) release_operands(r, node);
                for (size_t i = first; i < r.graph.nodes.size(); ++i)
                  left -= static_cast<int64_t>(r.graph.nodes[i].attributes.tensor.bytes.size());
                return result;
              }));
  return rewrite(folded,
                 [](Rewriter&, const Node&) { return kNoValue; });  // drops constants that were folded away
}

Expected<Graph> fold_constants(const Graph& graph) {
  FoldBudget budget;
  return fold_constants(graph, budget);
}

Expected<Graph> fold_constants(const Graph& graph, FoldBudget& budget) {
  return fold_constants(graph, budget, [](const Graph&, const Node&) { return false; });
}

}  // namespace quernel
