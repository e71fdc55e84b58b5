#include "frontends/shared/fold_value.h"

#include <algorithm>

#include "graph/interpret.h"

namespace quernel {

bool ConstantFolder::is_cheap(const Node& node) const {
  if (gives_token(node.op) || node.op == OpKind::k_result) return false;
  auto count = [&](ValueId v) -> std::optional<int64_t> {
    if (!is_static(graph_.shape(v))) return std::nullopt;
    return element_count(static_dims(graph_.shape(v)));
  };
  if (node.op != OpKind::k_constant && !symbols_of(graph_, node).empty()) return false;
  std::optional<int64_t> result = count(node.output);
  if (!result || *result > kMaxElements) return false;
  if (node.op == OpKind::k_contract) {
    int64_t work = 1;
    for (const auto& axis : node.attributes.contraction.axes)
      if (__builtin_mul_overflow(work, std::max<int64_t>(axis.extent.value(), 1), &work) || work > kMaxWork)
        return false;
  }
  if (is_reduce(node.op)) {
    std::optional<int64_t> operand = count(node.inputs[0]);
    return operand && *operand <= kMaxWork;
  }
  return true;
}

bool ConstantFolder::is_known(ValueId value) {
  for (size_t v = known_.size(); v < graph_.values.size(); ++v) {
    const Node* node = graph_.def(static_cast<ValueId>(v));
    bool known = node != nullptr;
    if (known && node->op != OpKind::k_constant)
      known = std::all_of(node->inputs.begin(), node->inputs.end(),
                          [&](ValueId operand) { return known_[operand]; }) &&
              is_cheap(*node);
    known_.push_back(known);
  }
  return known_[value];
}

const Tensor* ConstantFolder::evaluate(ValueId value) {
  if (value == kNoValue || !is_known(value)) return nullptr;
  std::vector<ValueId> stack{value};
  while (!stack.empty()) {
    ValueId v = stack.back();
    Node& node = graph_.nodes[graph_.values[v].node];
    if (node.op == OpKind::k_constant) {
      stack.pop_back();
      continue;
    }
    bool ready = true;
    std::vector<const Tensor*> operands;
    for (ValueId operand : node.inputs) {
      const Tensor* tensor = graph_.constant(operand);
      if (!tensor) {
        stack.push_back(operand);
        ready = false;
      }
      operands.push_back(tensor);
    }
    if (!ready) continue;
    Expected<Tensor> result = interpret_node(graph_, node, operands);
    if (!result) {
      known_[v] = known_[value] = false;
      return nullptr;
    }
    node.op = OpKind::k_constant;
    node.inputs.clear();
    node.attributes = {};
    node.attributes.tensor = std::move(*result);
    stack.pop_back();
  }
  return graph_.constant(value);
}

void ConstantFolder::collect_inputs(ValueId value, std::set<ValueId>& inputs) {
  std::vector<ValueId> stack{value};
  collected_.resize(graph_.values.size(), false);
  while (!stack.empty()) {
    ValueId v = stack.back();
    stack.pop_back();
    if (v == kNoValue || collected_[v]) continue;
    collected_[v] = true;
    if (const Node* node = graph_.def(v))
      stack.insert(stack.end(), node->inputs.begin(), node->inputs.end());
    else
      inputs.insert(v);
  }
}

}  // namespace quernel
