#include <algorithm>
#include <map>

#include "graph/quantized.h"
#include "graph/rewrite.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::schedule {
namespace {

constexpr double kMost = 127;
constexpr double kLeast = 1e-30;  // of a block's largest value: blocks of zeros have a scale, too
constexpr int64_t kVector = 16;   // bytes that kernels load at a time, at most

// A product of activations, operand `operand`, whose rows share scales by `group` elements.
struct Product {
  int operand = 0;
  int64_t group = 0;
};

// Elements of the quantised constant behind operand `operand` that share a scale along axis `k`; 0: it is none, or they
// lie otherwise.
int64_t group_along(const Graph& graph, const Node& node, int operand, int k) {
  const OperandAccess access = resolve_operand(graph, node, operand);
  if (!access.direct() || !quantized_constant(graph, access.base)) return 0;
  const Contraction& c = node.attributes.contraction;
  const OperandStrides strides =
      operand_strides(graph, access, contiguous_strides(graph.shape(access.base)), 0, c.axes.size());
  const int dim = strides.dim[static_cast<size_t>(k)];
  if (dim < 0) return 0;
  const int64_t group = strides.quantized->groups[static_cast<size_t>(dim)],
                extent = c.axes[static_cast<size_t>(k)].extent.value();
  // All that share one scale are a group of whole vectors.
  return group == 0 || group >= extent ? (extent + kVector - 1) / kVector * kVector : group;
}

bool multiplies_quantised(const Graph& graph, const Node& node) {
  return node.op == OpKind::k_contract && (quantized_constant(graph, resolve_operand(graph, node, 0).base) ||
                                           quantized_constant(graph, resolve_operand(graph, node, 1).base));
}

std::optional<Product> product_of(const Graph& graph, const Node& node) {
  const Contraction& c = node.attributes.contraction;
  if (c.accumulator != DType::kF32) return std::nullopt;
  int k = -1;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    if (!c.axes[i].reduction || c.axes[i].extent == Dim(1)) continue;
    if (k >= 0 || !c.axes[i].extent.is_const()) return std::nullopt;
    k = static_cast<int>(i);
  }
  if (k < 0) return std::nullopt;
  for (int operand : {0, 1}) {
    const std::vector<IndexExpr>& map = operand == 0 ? c.a : c.b;
    const ValueId x = node.inputs[static_cast<size_t>(operand)];
    if (map.empty() || !(map.back() == IndexExpr::axis(k)) || graph.dtype(x) != DType::kF32 ||
        !(graph.shape(x).back() == c.axes[static_cast<size_t>(k)].extent))
      continue;
    const bool elsewhere =
        std::any_of(map.begin(), map.end() - 1, [&](const IndexExpr& e) { return uses_axis(e, k); });
    if (elsewhere) continue;
    if (const int64_t group = group_along(graph, node, 1 - operand, k); group > 0)
      return Product{operand, group};
  }
  return std::nullopt;
}

// Returns x with rows rounded to i8 multiples of a scale per group, as dequantize_rows gives it.
ValueId rounded_rows(GraphBuilder& build, ValueId x, int64_t group) {
  Shape shape = build.graph().shape(x);
  const Dim blocks = ceildiv(shape.back(), group);
  if (!(blocks * group == shape.back())) {
    Shape before(shape.size(), 0), after(shape.size(), 0);
    after.back() = blocks * group - shape.back();
    x = build.pad(x, before, after);
  }
  shape.back() = blocks;
  const Shape of_groups = shape;
  shape.emplace_back(group);
  x = build.reshape(x, shape);
  const auto last = static_cast<int64_t>(of_groups.size());
  ValueId most = build.reduce(OpKind::k_reduce_max, build.unary(UnaryOp::k_abs, x), {last}, true);
  most = build.binary(BinaryOp::k_max, most, kLeast);
  const ValueId inverse =
      build.binary(BinaryOp::k_div, build.full(DType::kF32, build.graph().shape(most), kMost), most);
  const ValueId rounded = build.unary(UnaryOp::k_round, build.binary(BinaryOp::k_mul, x, inverse)),
                scales = build.binary(BinaryOp::k_mul, most, 1 / kMost);
  // Divided, and not multiplied by the scales: these are read by nothing in the kernel, so that all is one kernel.
  const ValueId sums =
      build.binary(BinaryOp::k_div, build.reduce(OpKind::k_reduce_sum, rounded, {last}, true), inverse);
  shape.pop_back();
  shape.back() = blocks * group;
  return build.dequantize_rows(build.reshape(build.cast(rounded, DType::kI8), shape),
                               build.reshape(scales, of_groups), build.reshape(sums, of_groups), group);
}

}  // namespace

Expected<Graph> quantize_activations(const Graph& graph, RoundedActivations* report) {
  std::map<std::pair<ValueId, int64_t>, ValueId> rounded;  // of the new graph
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (!multiplies_quantised(r.old, node)) return kNoValue;
    const std::optional<Product> product = product_of(r.old, node);
    if (!product) {
      if (report) report->left.push_back(r.old.values[node.output].name);
      return kNoValue;
    }
    if (report) ++report->products;
    ValueId operands[] = {r(node.inputs[0]), r(node.inputs[1])};
    ValueId& rows = operands[product->operand];
    auto [it, is_new] = rounded.try_emplace({rows, product->group}, kNoValue);
    if (is_new) it->second = rounded_rows(r.build, rows, product->group);
    rows = it->second;
    return r.build.contract(operands[0], operands[1], node.attributes.contraction);
  });
}

std::vector<std::string> about_activations(const RoundedActivations& report, const Target& target) {
  constexpr size_t kMostNamed = 4;
  const std::vector<std::string>& left = report.left;
  std::vector<std::string> notes;
  if (report.products == 0 && left.empty())
    return {
        "no product has quantised weights, so no activations are rounded; --weights quantises those of "
        "floats"};
  if (!left.empty()) {
    std::string text =
        std::to_string(left.size()) + " products with quantised weights keep activations of f32:";
    for (size_t i = 0; i < std::min(left.size(), kMostNamed); ++i)
      text += (i == 0 ? " '" : ", '") + left[i] + "'";
    notes.push_back(text + (left.size() > kMostNamed ? ", ..." : "") +
                    "; they sum along several dims of theirs, or not along the last one");
  }
  if (report.products > 0 && !multiplies_bytes(target))
    notes.push_back("target " + target.name +
                    " has no int8 dot product that words of weights suit: activations are rounded to i8, and "
                    "multiplied as floats");
  return notes;
}

}  // namespace quernel::schedule
