// Products of activations with quantised constants, and rows of activations as bytes.
#include "schedule/target_passes/bytes_of_activations.h"

#include <algorithm>

#include "graph/quantized.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/contraction/plan_contraction.h"

namespace quernel::schedule {
namespace {

constexpr double kLeast = 1e-30;  // of a block's largest value: blocks of zeros have a scale, too
constexpr int64_t kVector = 16;   // bytes that kernels load at a time, at most

struct Group {
  int64_t size = 0;
  int bits = 0;
};

// Elements of the quantised constant behind operand `operand` that share a scale along axis `k`, and their bits; size 0: it
// is none, or they lie otherwise.
Group group_along(const Graph& graph, const Node& node, int operand, int k) {
  const OperandAccess access = resolve_operand(graph, node, operand);
  if (!access.direct() || !quantized_constant(graph, access.base)) return {};
  const Contraction& c = node.attributes.contraction;
  const OperandStrides strides =
      operand_strides(graph, access, contiguous_strides(graph.shape(access.base)), 0, c.axes.size());
  const int dim = strides.dim[static_cast<size_t>(k)];
  if (dim < 0) return {};
  const int64_t group = strides.quantized->groups[static_cast<size_t>(dim)],
                extent = c.axes[static_cast<size_t>(k)].extent.value();
  // All that share one scale are a group of whole vectors.
  const bool is_one = group == 0 || group >= extent;
  return {is_one ? (extent + kVector - 1) / kVector * kVector : group, strides.quantized->bits};
}

}  // namespace

bool multiplies_quantised(const Graph& graph, const Node& node) {
  return node.op == OpKind::k_contract && (quantized_constant(graph, resolve_operand(graph, node, 0).base) ||
                                           quantized_constant(graph, resolve_operand(graph, node, 1).base));
}

std::optional<QuantisedProduct> quantised_product(const Graph& graph, const Node& node) {
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
    if (const Group group = group_along(graph, node, 1 - operand, k); group.size > 0)
      return QuantisedProduct{operand, k, group.size, group.bits};
  }
  return std::nullopt;
}

namespace {

// x, whose rows end with zeros that fill up a group.
ValueId in_whole_groups(GraphBuilder& build, ValueId x, int64_t group) {
  const Shape shape = build.graph().shape(x);
  const Dim missing = ceildiv(shape.back(), group) * group - shape.back();
  if (missing == Dim(0)) return x;
  Shape before(shape.size(), 0), after(shape.size(), 0);
  after.back() = missing;
  return build.pad(x, before, after);
}

// The largest magnitude along dim `axis` of x, and what it is multiplied by to be `most`.
struct Magnitudes {
  ValueId largest = kNoValue, inverse = kNoValue;
};
Magnitudes magnitudes_along(GraphBuilder& build, ValueId x, int64_t axis, double most) {
  ValueId largest = build.reduce(OpKind::k_reduce_max, build.unary(UnaryOp::k_abs, x), {axis}, true);
  largest = build.binary(BinaryOp::k_max, largest, kLeast);
  const ValueId ones = build.full(DType::kF32, build.graph().shape(largest), most);
  return {largest, build.binary(BinaryOp::k_div, ones, largest)};
}

ValueId times(GraphBuilder& build, ValueId x, int64_t factor) {
  return factor == 1 ? x : build.binary(BinaryOp::k_mul, x, static_cast<double>(factor));
}

}  // namespace

ValueId bytes_of_rows(GraphBuilder& build, ValueId x, int64_t group, const Digits& digits, int64_t factor) {
  Shape shape = build.graph().shape(x);
  const Dim blocks = ceildiv(shape.back(), group);
  x = in_whole_groups(build, x, group);
  shape.back() = blocks;
  const Shape of_groups = shape;
  // All groups of all rows are rows of one matrix, so that a kernel can reduce many together.
  Dim all = 1;
  for (const Dim& d : of_groups) all = all * d;
  x = build.reshape(x, {all, group});
  constexpr int64_t last = 1;
  const auto [most, inverse] = magnitudes_along(build, x, last, digits.most);
  x = build.binary(BinaryOp::k_mul, x, inverse);
  const ValueId rounded = build.unary(UnaryOp::k_round, x),
                scales = build.binary(BinaryOp::k_mul, most, 1 / digits.most);
  // Divided, and not multiplied by the scales: these are read by nothing in the kernel, so that all is one kernel.
  const ValueId sums =
      build.binary(BinaryOp::k_div,
                   times(build, build.reduce(OpKind::k_reduce_sum, rounded, {last}, true), factor), inverse);
  shape.back() = blocks * group;
  auto byte = [&](ValueId v) { return build.reshape(build.cast(v, DType::kI8), shape); };
  // A digit is what the element, in units of the digit, is above a whole number of the next one.
  std::vector<ValueId> bytes;
  ValueId whole = rounded;
  const auto base = static_cast<double>(digits.base);
  double unit = 1;
  for (int d = 1; d < digits.count; ++d) {
    unit *= base;
    const ValueId next = build.unary(UnaryOp::k_round, build.binary(BinaryOp::k_mul, x, 1 / unit));
    bytes.insert(bytes.begin(),
                 byte(build.binary(BinaryOp::k_sub, whole, build.binary(BinaryOp::k_mul, next, base))));
    whole = next;
  }
  bytes.insert(bytes.begin(), byte(whole));
  const ValueId of_rows = build.reshape(scales, of_groups), totals = build.reshape(sums, of_groups);
  return build.dequantize_rows(std::move(bytes), digits.base, of_rows, totals, group, factor);
}

ValueId bytes_of_whole_rows(GraphBuilder& build, ValueId x, int64_t group, int64_t factor) {
  const Shape shape = build.graph().shape(x);
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const double most = Digits{}.most;
  const auto [largest, inverse] = magnitudes_along(build, x, last, most);
  const ValueId rounded = build.unary(UnaryOp::k_round, build.binary(BinaryOp::k_mul, x, inverse)),
                scales = build.binary(BinaryOp::k_mul, largest, 1 / most),
                bytes = in_whole_groups(build, build.cast(rounded, DType::kI8), group);
  Shape groups = build.graph().shape(bytes);
  groups.back() = ceildiv(shape.back(), group);
  groups.emplace_back(group);
  const ValueId sums = build.reduce(OpKind::k_reduce_sum,
                                    build.cast(build.reshape(bytes, groups), DType::kI32), {last + 1}, false);
  return build.dequantize_rows({bytes}, 0, scales, times(build, sums, factor), group, factor);
}

int64_t factor_of_sums(const Target& target, int bits) {
  const int64_t middle = multiplies_bytes(target, bits) ? middle_of_bytes(target, bits) : 0;
  return middle == 0 ? 1 : -middle;
}

}  // namespace quernel::schedule
