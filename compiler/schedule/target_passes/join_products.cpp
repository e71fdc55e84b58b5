#include <algorithm>
#include <unordered_map>

#include "graph/passes/joined_tensor.h"
#include "graph/passes/own_axis.h"
#include "graph/quantized.h"
#include "graph/rewrite.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::schedule {
namespace {

// A product of a run-time operand with a quantised constant, which has columns for itself, each with its own scales.
struct Product {
  const Node* node = nullptr;
  size_t constant = 0;  // the operand that is one
  OwnAxis columns;
  QuantizedConstant weights;
  QuantizedOperand format;
  std::vector<int64_t> order;  // of the constant's dims, as a permute moves them; empty: none does

  ValueId other() const { return node->inputs[1 - constant]; }
  // The dim of the constant along which columns lie.
  size_t dim() const {
    return order.empty() ? columns.operand_dim : static_cast<size_t>(order[columns.operand_dim]);
  }
};

std::optional<Product> find_product(const Graph& graph, const Node& node) {
  if (node.op != OpKind::k_contract) return std::nullopt;
  const Contraction& c = node.attributes.contraction;
  for (size_t operand : {size_t{0}, size_t{1}}) {
    ValueId value = node.inputs[operand];
    Product product{.node = &node, .constant = operand};
    if (const Node* moved = graph.def(value); moved && moved->op == OpKind::k_permute)
      value = moved->inputs[0], product.order = moved->attributes.ints;
    const std::optional<QuantizedConstant> weights = quantized_constant(graph, value);
    const std::optional<OwnAxis> columns = weights ? find_own_axis(c, operand) : std::nullopt;
    if (!columns) continue;
    product.weights = *weights, product.columns = *columns;
    const size_t d = product.dim();
    const bool whole = c.axes[static_cast<size_t>(columns->axis)].extent == Dim(weights->elements->dims[d]);
    if (!whole || (*weights->groups)[d] != 1) continue;
    product.format = quantized_operand(graph, value);
    return product;
  }
  return std::nullopt;
}

// Whether both have one dtype, and dims that differ along `dim` at most.
bool are_alike(const Tensor& a, const Tensor& b, size_t dim) {
  if (a.dtype != b.dtype || a.dims.size() != b.dims.size()) return false;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (d != dim && a.dims[d] != b.dims[d]) return false;
  return true;
}

Contraction without_columns(const Product& p) {
  Contraction c = p.node->attributes.contraction;
  for (Contraction::Axis& axis : c.axes) axis.name.clear();
  c.axes[static_cast<size_t>(p.columns.axis)].extent = 0;
  return c;
}

// Whether the two differ in the number of columns, and in the bytes of constants, at most.
bool are_alike(const Product& p, const Product& q) {
  const size_t d = p.dim();
  const Tensor *a = p.weights.zeros, *b = q.weights.zeros;
  return p.format == q.format && p.other() == q.other() && p.constant == q.constant &&
         p.columns == q.columns && p.order == q.order &&
         are_alike(*p.weights.elements, *q.weights.elements, d) &&
         are_alike(*p.weights.scales, *q.weights.scales, d) && *p.weights.groups == *q.weights.groups &&
         (a == nullptr) == (b == nullptr) && (!a || are_alike(*a, *b, d)) &&
         without_columns(p) == without_columns(q);
}

using Products = std::vector<Product>;

// Those that are alike, in the order of the graph, as long as their elements together take no more than `most_bytes`.
std::vector<Products> alike_products(const Graph& graph, int64_t most_bytes) {
  struct Group {
    Products products;
    int64_t bytes = 0;
  };
  std::vector<Group> groups;
  std::unordered_map<ValueId, std::vector<size_t>> of_operand;
  for (const Node& node : graph.nodes) {
    const std::optional<Product> product = find_product(graph, node);
    if (!product) continue;
    const auto bytes = static_cast<int64_t>(product->weights.elements->bytes.size());
    std::vector<size_t>& known = of_operand[product->other()];
    auto fits = [&](size_t g) {
      return are_alike(groups[g].products[0], *product) && groups[g].bytes + bytes <= most_bytes;
    };
    const auto it = std::find_if(known.begin(), known.end(), fits);
    const size_t g = it == known.end() ? groups.size() : *it;
    if (it == known.end()) {
      groups.emplace_back();
      known.push_back(g);
    }
    groups[g].products.push_back(*product);
    groups[g].bytes += bytes;
  }
  std::vector<Products> result;
  for (Group& group : groups)
    if (group.products.size() > 1) result.push_back(std::move(group.products));
  return result;
}

class Join {
 public:
  Join(const Graph& graph, int64_t most_bytes) : joined_(alike_products(graph, most_bytes)) {
    for (size_t j = 0; j < joined_.size(); ++j)
      for (const Product& product : joined_[j]) of_node_[product.node] = j;
    results_.resize(joined_.size(), kNoValue);
  }
  bool empty() const { return joined_.empty(); }

  ValueId rule(Rewriter& r, const Node& node) {
    const auto it = of_node_.find(&node);
    if (it == of_node_.end()) return kNoValue;
    const Products& products = joined_[it->second];
    ValueId& result = results_[it->second];
    if (result == kNoValue) result = product_of_all(r, products);
    if (!r.build.ok()) return kNoValue;
    const size_t d = products[0].columns.result_dim;
    Shape stops = r.graph.shape(result), starts(stops.size(), 0);
    for (const Product& p : products) {
      stops[d] = starts[d] + r.old.shape(p.node->output)[d];
      if (p.node == &node) break;
      starts[d] = stops[d];
    }
    return r.build.slice(result, starts, stops);
  }

 private:
  static ValueId joined_constant(Rewriter& r, const Products& products,
                                 const Tensor* QuantizedConstant::*part) {
    std::vector<Tensor> parts;
    for (const Product& p : products) parts.push_back(*(p.weights.*part));
    Expected<Tensor> tensor = joined_tensor(parts, products[0].dim());
    return tensor ? r.build.constant(std::move(*tensor)) : r.build.fail(tensor.take_errors().front());
  }

  static ValueId product_of_all(Rewriter& r, const Products& products) {
    const Product& first = products[0];
    ValueId weights = r.build.dequantize(
        joined_constant(r, products, &QuantizedConstant::elements),
        joined_constant(r, products, &QuantizedConstant::scales),
        first.weights.zeros ? joined_constant(r, products, &QuantizedConstant::zeros) : kNoValue,
        *first.weights.groups);
    if (!first.order.empty()) weights = r.build.permute(weights, first.order);
    if (!r.build.ok()) return kNoValue;
    Contraction c = first.node->attributes.contraction;
    c.axes[static_cast<size_t>(first.columns.axis)].extent =
        r.graph.shape(weights)[first.columns.operand_dim];
    const ValueId other = r(first.other());
    return first.constant == 0 ? r.build.contract(weights, other, c) : r.build.contract(other, weights, c);
  }

  std::vector<Products> joined_;
  std::unordered_map<const Node*, size_t> of_node_;
  std::vector<ValueId> results_;  // per element of joined_
};

}  // namespace

Expected<Graph> join_products(const Graph& graph, const Target& target) {
  if (target.memory_is_dear()) return graph;
  Join join(graph, target.bindings_are_few() ? Target::kBindingBytes : INT64_MAX);
  if (join.empty()) return graph;
  QUERNEL_TRY(const Graph joined,
              rewrite(graph, [&](Rewriter& r, const Node& node) { return join.rule(r, node); }));
  return rewrite(joined, [](Rewriter&, const Node&) { return kNoValue; });  // drops the constants
}

}  // namespace quernel::schedule
