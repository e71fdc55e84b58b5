#include "graph/dim_values.h"

#include <algorithm>
#include <unordered_map>

namespace quernel {
namespace {

constexpr int64_t kMaxElements = 64;
constexpr int kMaxDepth = 64;  // of the chain of ops behind a value
// Of an element's text: a chain of products doubles it with each step.
constexpr size_t kMaxText = 1 << 14;

class DimValues {
 public:
  explicit DimValues(const Graph& graph) : graph_(graph) {}

  std::optional<Shape> of(ValueId v, int depth) {
    if (depth > kMaxDepth || !is_static(graph_.shape(v))) return std::nullopt;
    std::optional<int64_t> count = element_count(static_dims(graph_.shape(v)));
    if (!count || *count > kMaxElements) return std::nullopt;
    auto [it, fresh] = known_.try_emplace(v);
    if (!fresh) return it->second;
    std::optional<Shape> result = compute(v, depth);
    known_[v] = result;
    return result;
  }

 private:
  std::optional<Shape> compute(ValueId v, int depth) {
    const Node* node = graph_.def(v);
    if (!node || is_float(graph_.dtype(v))) return std::nullopt;
    if (node->op == OpKind::k_dims) return node->attributes.shape;
    if (node->op == OpKind::k_constant) {
      Shape elements;
      for (int64_t i = 0; i < node->attributes.tensor.count(); ++i)
        elements.push_back(element_as_i64(node->attributes.tensor, i));
      return elements;
    }
    std::vector<Shape> operands;
    for (ValueId operand : node->inputs) {
      std::optional<Shape> elements = of(operand, depth + 1);
      if (!elements) return std::nullopt;
      operands.push_back(std::move(*elements));
    }
    if (is_elementwise(node->op)) return elementwise(*node, operands);
    if (is_movement(node->op) && has_index_map(*node)) return moved(*node, operands[0]);
    switch (node->op) {
      case OpKind::k_cat:
        return concatenated(*node, operands);
      case OpKind::k_take:
        return taken(*node, operands);
      case OpKind::k_reduce_sum:
      case OpKind::k_reduce_prod: {
        if (static_cast<int>(node->attributes.ints.size()) != graph_.rank(node->inputs[0]))
          return std::nullopt;
        Dim total = node->op == OpKind::k_reduce_sum ? 0 : 1;
        for (const Dim& d : operands[0]) {
          total = node->op == OpKind::k_reduce_sum ? total + d : total * d;
          if (is_long(total)) return std::nullopt;
        }
        return Shape{total};
      }
      default:
        return std::nullopt;
    }
  }

  static std::optional<Shape> elementwise(const Node& node, const std::vector<Shape>& operands) {
    Shape result;
    for (size_t i = 0; i < operands[0].size(); ++i) {
      std::optional<Dim> element;
      if (operands.size() == 1)
        element = unary(node, operands[0][i]);
      else if (operands.size() == 2)
        element = binary(node.op, operands[0][i], operands[1][i]);
      else if (node.op == OpKind::k_where && operands[0][i].is_const())
        element = operands[0][i].value() ? operands[1][i] : operands[2][i];
      if (!element || is_long(*element)) return std::nullopt;
      result.push_back(std::move(*element));
    }
    return result;
  }

  static bool is_long(const Dim& d) { return !d.is_const() && to_string(d).size() > kMaxText; }

  static std::optional<Dim> unary(const Node& node, const Dim& x) {
    switch (node.op) {
      case OpKind::k_cast: {
        DType to = node.attributes.dtype;
        if (to == DType::kI64 || to == DType::kI32 || to == DType::kU64) return x;  // sizes fit
        if (to == DType::kBool && x.is_const()) return x.value() != 0;
        return std::nullopt;
      }
      case OpKind::k_neg:
        return Dim(0) - x;
      case OpKind::k_not:
        return x.is_const() ? std::optional<Dim>(x.value() == 0) : std::nullopt;
      case OpKind::k_abs:
        return always_le(0, x) ? std::optional(x) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  static std::optional<Dim> decided(bool yes, bool no) {
    if (yes) return Dim(1);
    return no ? std::optional<Dim>(0) : std::nullopt;
  }

  static std::optional<Dim> binary(OpKind op, const Dim& a, const Dim& b) {
    switch (op) {
      case OpKind::k_add:
        return a + b;
      case OpKind::k_sub:
        return a - b;
      case OpKind::k_mul:
        return a * b;
      case OpKind::k_idiv:
        if (!always_le(0, a)) return std::nullopt;
        [[fallthrough]];
      case OpKind::k_fdiv:
        return always_le(1, b) ? std::optional(floordiv(a, b)) : std::nullopt;
      case OpKind::k_fmod:
        if (!always_le(0, a)) return std::nullopt;
        [[fallthrough]];
      case OpKind::k_mod:
        return always_le(1, b) ? std::optional(floormod(a, b)) : std::nullopt;
      case OpKind::k_min:
        return min(a, b);
      case OpKind::k_max:
        return max(a, b);
      case OpKind::k_eq:
        return decided(a == b, always_lt(a, b) || always_lt(b, a));
      case OpKind::k_ne:
        return decided(always_lt(a, b) || always_lt(b, a), a == b);
      case OpKind::k_lt:
        return decided(always_lt(a, b), always_le(b, a));
      case OpKind::k_le:
        return decided(always_le(a, b), always_lt(b, a));
      case OpKind::k_gt:
        return decided(always_lt(b, a), always_le(a, b));
      case OpKind::k_ge:
        return decided(always_le(b, a), always_lt(a, b));
      case OpKind::k_and:
        return a.is_const() && b.is_const() ? std::optional<Dim>(a.value() & b.value()) : std::nullopt;
      case OpKind::k_or:
        return a.is_const() && b.is_const() ? std::optional<Dim>(a.value() | b.value()) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<Shape> moved(const Node& node, const Shape& operand) {
    const Shape& in = graph_.shape(node.inputs[0]);
    std::vector<int64_t> dims = static_dims(graph_.shape(node.output));
    IndexMap map = index_map_of(graph_, node);
    if (!map.guards.empty() || !is_static(in) || !symbols_of(graph_, node).empty()) return std::nullopt;
    Shape strides = contiguous_strides(in), result;
    std::vector<int64_t> point(std::max<size_t>(dims.size(), 1), 0);
    int64_t count = element_count(dims).value_or(0);
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, offset = 0;
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) point[d] = rest % dims[d];
      for (size_t d = 0; d < map.indices.size(); ++d)
        offset += evaluate(map.indices[d], point.data()) * strides[d].value();
      result.push_back(operand[static_cast<size_t>(offset)]);
    }
    return result;
  }

  std::optional<Shape> concatenated(const Node& node, const std::vector<Shape>& operands) {
    if (graph_.rank(node.output) != 1) return std::nullopt;
    Shape result;
    for (const Shape& operand : operands) result.insert(result.end(), operand.begin(), operand.end());
    return result;
  }

  std::optional<Shape> taken(const Node& node, const std::vector<Shape>& operands) {
    if (graph_.rank(node.inputs[0]) != 1) return std::nullopt;
    Shape result;
    int64_t size = static_cast<int64_t>(operands[0].size());
    for (const Dim& index : operands[1]) {
      if (!index.is_const() || size == 0) return std::nullopt;
      int64_t i = index.value() < 0 ? index.value() + size : index.value();
      result.push_back(operands[0][static_cast<size_t>(std::clamp<int64_t>(i, 0, size - 1))]);
    }
    return result;
  }

  const Graph& graph_;
  std::unordered_map<ValueId, std::optional<Shape>> known_;
};

}  // namespace

std::optional<Shape> dim_values(const Graph& graph, ValueId v) {
  return v < 0 ? std::nullopt : DimValues(graph).of(v, 0);
}

}  // namespace quernel
