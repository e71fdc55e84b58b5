// Contractions of dequantised 8-bit operands as integer contractions. With activations x of one scale and
// zero point, and constant weights w whose zero point is 0 (or 128 of u8, which is 0 of i8):
//   sum (x - zx) * sx * w * sw  =  (sum x * w  -  zx * sum w) * (sx * sw)
// Padding that fills with 0 fills the integers with zx, whose products the constant sum takes away again.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/passes/constant_operand.h"
#include "graph/passes/dequantized_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kLargestProduct = 255 * 128;  // of a centred activation and a weight

// The movement of a dequantised value before a contraction reads it, the last first.
struct Operand {
  Dequantized value;
  std::vector<Node> movement;
  bool fills = false;  // some of it fills with 0
};

std::optional<Operand> quantised_operand(const Graph& graph, ValueId v) {
  Operand result;
  while (const Node* node = graph.def(v)) {
    if (!is_movement(node->op)) break;
    bool fills = node->op == OpKind::k_pad
                     ? node->attributes.mode == PadMode::kConstant
                     : node->op == OpKind::k_view && !node->attributes.map.guards.empty();
    if (fills && node->attributes.fill != 0) return std::nullopt;
    result.fills |= fills;
    result.movement.push_back(*node);
    v = node->inputs[0];
  }
  std::optional<Dequantized> value = find_dequantized(graph, v);
  if (!value || !is_byte(graph.dtype(value->x))) return std::nullopt;
  result.value = std::move(*value);
  return result;
}

// The one value of a zero point; nullopt where there are several.
std::optional<int64_t> one_zero(const std::optional<Tensor>& zero) {
  if (!zero) return 0;
  if (zero->count() == 0 || !all_elements_equal(*zero)) return std::nullopt;
  return element_as_i64(*zero, 0);
}

ValueId moved(Rewriter& r, const Operand& operand, ValueId x, int64_t fill) {
  for (size_t i = operand.movement.size(); i-- > 0;) {
    Attributes attributes = operand.movement[i].attributes;
    attributes.fill = static_cast<double>(fill);
    x = r.build.add(operand.movement[i].op, {x}, std::move(attributes));
  }
  return x;
}

// The tensor's elements as the contraction's results see them: `contraction` with its reduction over `b`
// alone, of the result's rank, dims of 1 where b does not depend on the dim. nullopt where a dim mixes axes
// that b has with others.
std::optional<Tensor> over_outputs(Contraction c, const Tensor& b) {
  std::vector<IndexExpr> renamed;
  std::vector<Contraction::Axis> axes;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    bool used = std::any_of(c.b.begin(), c.b.end(),
                            [&](const IndexExpr& e) { return uses_axis(e, static_cast<int>(i)); });
    bool counts = used && !(c.axes[i].extent == Dim(1));
    if (!used && c.axes[i].reduction && !(c.axes[i].extent == Dim(1))) return std::nullopt;
    if (counts && !c.axes[i].extent.is_const()) return std::nullopt;
    for (const IndexExpr& e : c.out)
      for (size_t j = 0; counts && j < c.axes.size(); ++j)
        if (uses_axis(e, static_cast<int>(i)) && uses_axis(e, static_cast<int>(j)) &&
            !(c.axes[j].extent == Dim(1)) &&
            std::none_of(c.b.begin(), c.b.end(),
                         [&](const IndexExpr& other) { return uses_axis(other, static_cast<int>(j)); }))
          return std::nullopt;
    renamed.push_back(counts ? IndexExpr::axis(static_cast<int>(axes.size())) : IndexExpr(0));
    if (counts) axes.push_back(c.axes[i]);
  }
  c.axes = std::move(axes);
  for (std::vector<IndexExpr>* map : {&c.b, &c.out})
    for (IndexExpr& e : *map) e = substitute(e, renamed);
  c.a = {0};
  c.accumulator = is_float(b.dtype) ? DType::kF32 : DType::kI32;
  Attributes attributes;
  attributes.contraction = std::move(c);
  Tensor one = scalar_tensor(b.dtype, 1);
  one.dims = {1};
  Expected<Tensor> result = evaluate_node(OpKind::k_contract, {std::move(one), b}, attributes);
  return result ? std::optional(std::move(*result)) : std::nullopt;
}

// The weights' scale as over_outputs gives it; nullopt where it varies along a reduction axis.
std::optional<Tensor> scale_over_outputs(const Contraction& c, const Operand& weights, const Tensor& data) {
  const Tensor& scale = weights.value.scale;
  if (scale.count() == 0) return std::nullopt;
  if (all_elements_equal(scale)) return scalar_tensor(DType::kF32, element_as_f64(scale, 0));
  if (weights.fills) return std::nullopt;
  Attributes whole;
  whole.shape = make_shape(data.dims);
  Expected<Tensor> spread = evaluate_node(OpKind::k_expand, {scale}, whole);
  for (size_t i = weights.movement.size(); spread && i-- > 0;)
    spread = evaluate_node(weights.movement[i].op, {*spread}, weights.movement[i].attributes);
  if (!spread) return std::nullopt;
  // By axis, to see along which of them it varies.
  Attributes by_axis;
  std::vector<IndexExpr> renamed;
  Attributes reduction;
  Contraction outputs = c;
  outputs.axes.clear();
  outputs.b.clear();
  std::vector<IndexExpr> output_axes;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    bool used = std::any_of(c.b.begin(), c.b.end(),
                            [&](const IndexExpr& e) { return uses_axis(e, static_cast<int>(i)); });
    if (used && !c.axes[i].extent.is_const()) return std::nullopt;
    int64_t dim = static_cast<int64_t>(by_axis.shape.size());
    renamed.push_back(used ? IndexExpr::axis(static_cast<int>(dim)) : IndexExpr(0));
    if (used) by_axis.shape.push_back(c.axes[i].extent);
    if (used && c.axes[i].reduction) reduction.ints.push_back(dim);
    if (c.axes[i].reduction) continue;
    IndexExpr axis = IndexExpr::axis(static_cast<int>(outputs.axes.size()));
    output_axes.push_back(axis);
    outputs.axes.push_back(c.axes[i]);
    if (used) outputs.b.push_back(axis);
  }
  for (const IndexExpr& e : c.b) by_axis.map.indices.push_back(substitute(e, renamed));
  Expected<Tensor> values = evaluate_node(OpKind::k_view, {*spread}, by_axis);
  if (!values) return std::nullopt;
  Expected<Tensor> most = evaluate_node(OpKind::k_reduce_max, {*values}, reduction);
  Expected<Tensor> least = evaluate_node(OpKind::k_reduce_min, {*values}, reduction);
  if (!most || !least || most->bytes.size() != least->bytes.size() ||
      std::memcmp(most->bytes.data(), least->bytes.data(), most->bytes.size()) != 0)
    return std::nullopt;
  return over_outputs(std::move(outputs), *most);
}

// u8 around 128 is i8 around 0.
std::optional<Tensor> symmetric_weights(const Tensor& data, const std::optional<Tensor>& zero) {
  std::optional<int64_t> origin = one_zero(zero);
  if (origin == 0) return data;
  if (origin != 128 || data.dtype != DType::kU8) return std::nullopt;
  std::vector<uint8_t> bytes(data.bytes.data(), data.bytes.data() + data.bytes.size());
  for (uint8_t& byte : bytes) byte ^= 0x80;
  return Tensor{DType::kI8, data.dims, Bytes::own(std::move(bytes))};
}

// Whether sums of the contraction's products are at most `most`, whatever the operands.
bool within(const Contraction& c, int32_t most) {
  double products = 1;
  for (const Contraction::Axis& axis : c.axes) {
    if (!axis.reduction) continue;
    if (!axis.extent.is_const()) return false;
    products *= static_cast<double>(axis.extent.value());
  }
  return products * kLargestProduct <= most;
}

ValueId form_integer_contraction(Rewriter& r, const Node& node) {
  if (node.op != OpKind::k_contract || r.old.dtype(node.output) != DType::kF32) return kNoValue;
  for (size_t b = 2; b-- > 0;) {
    Contraction c = node.attributes.contraction;
    if (!within(c, std::numeric_limits<int32_t>::max())) return kNoValue;
    if (b == 0) std::swap(c.a, c.b);
    std::optional<Operand> weights = quantised_operand(r.old, node.inputs[b]);
    const Tensor* data = weights ? r.old.constant(weights->value.x) : nullptr;
    if (!data || data->count() == 0) continue;
    std::optional<Operand> x = quantised_operand(r.old, node.inputs[1 - b]);
    if (!x || r.old.constant(x->value.x)) continue;
    std::optional<int64_t> zero = one_zero(x->value.zero);
    bool is_signed = r.old.dtype(x->value.x) == DType::kI8;
    if (!zero || *zero < (is_signed ? -128 : 0) || *zero > (is_signed ? 127 : 255)) continue;
    if (x->value.scale.count() == 0 || !all_elements_equal(x->value.scale)) continue;
    std::optional<Tensor> symmetric = symmetric_weights(*data, weights->value.zero);
    if (!symmetric) continue;
    std::optional<Tensor> scale = scale_over_outputs(c, *weights, *data);
    if (!scale) continue;
    Expected<Tensor> moved_weights = *symmetric;
    for (size_t i = weights->movement.size(); moved_weights && i-- > 0;)
      moved_weights =
          evaluate_node(weights->movement[i].op, {*moved_weights}, weights->movement[i].attributes);
    if (!moved_weights) continue;
    std::optional<Tensor> sums;
    if (*zero != 0 && !(sums = over_outputs(c, *moved_weights))) continue;
    Tensor factor = scalar_tensor(DType::kF32, element_as_f64(x->value.scale, 0));
    Expected<Tensor> multiplier = evaluate_node(OpKind::k_mul, {*scale, factor});
    if (!multiplier) continue;

    c.accumulator = DType::kI32;
    ValueId y = r.build.contract(moved(r, *x, r(x->value.x), *zero),
                                 r.build.constant(std::move(*moved_weights)), std::move(c));
    if (sums) {
      Expected<Tensor> shift =
          evaluate_node(OpKind::k_mul, {*sums, scalar_tensor(DType::kI32, static_cast<double>(-*zero))});
      if (!shift) return r.build.fail(shift.take_errors().front());
      y = r.build.add(OpKind::k_add, {y, add_constant(r.build, std::move(*shift), r.old.shape(node.output))});
    }
    return r.build.add(OpKind::k_mul,
                       {r.build.cast(y, DType::kF32),
                        add_constant(r.build, std::move(*multiplier), r.old.shape(node.output))});
  }
  return kNoValue;
}

//   contract(x of i8, w) -> add(contract(x + 128 of u8, w), -128 * sum w), or the other way round
ValueId with_activations(Rewriter& r, const Node& node, DType wanted) {
  if (node.op != OpKind::k_contract || node.attributes.contraction.accumulator != DType::kI32)
    return kNoValue;
  DType other = wanted == DType::kU8 ? DType::kI8 : DType::kU8;
  double added = wanted == DType::kU8 ? 128 : -128;
  for (size_t b = 2; b-- > 0;) {
    Contraction c = node.attributes.contraction;
    if (b == 0) std::swap(c.a, c.b);
    const Tensor* weights = r.old.constant(node.inputs[b]);
    if (!weights || weights->dtype != DType::kI8 || r.old.dtype(node.inputs[1 - b]) != other) continue;
    std::vector<Node> movement;
    ValueId x = node.inputs[1 - b];
    for (const Node* from = r.old.def(x); from && is_movement(from->op); from = r.old.def(x)) {
      movement.push_back(*from);
      x = from->inputs[0];
    }
    if (r.old.constant(x)) continue;
    std::optional<Tensor> sums = over_outputs(c, *weights);
    if (!sums) continue;
    Expected<Tensor> shift = evaluate_node(OpKind::k_mul, {*sums, scalar_tensor(DType::kI32, -added)});
    if (!shift) return r.build.fail(shift.take_errors().front());
    Attributes to;
    to.dtype = wanted;
    ValueId y =
        r.build.add(OpKind::k_bitcast, {r.build.binary(BinaryOp::k_xor, r(x), -added)}, std::move(to));
    for (size_t i = movement.size(); i-- > 0;) {
      Attributes attributes = movement[i].attributes;
      attributes.fill += added;
      y = r.build.add(movement[i].op, {y}, std::move(attributes));
    }
    y = r.build.contract(y, r(node.inputs[b]), std::move(c));
    return r.build.add(OpKind::k_add,
                       {y, add_constant(r.build, std::move(*shift), r.old.shape(node.output))});
  }
  return kNoValue;
}

// Whether the node is cast(add(contract, constant)) to a float, or cast(contract).
bool is_integer_sum(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  if (!node || node->op != OpKind::k_cast || graph.dtype(node->inputs[0]) != DType::kI32) return false;
  node = graph.def(node->inputs[0]);
  while (node && node->op == OpKind::k_add) {
    auto operands = with_constant(graph, *node, true);
    node = operands ? graph.def(operands->first) : nullptr;
  }
  return node && node->op == OpKind::k_contract;
}

// The integers q with f32(q) * scale == bias for every element; nullopt where there are none, or so large
// ones that the quotient does not tell them, or that their sum with a contraction's might not fit.
std::optional<Tensor> as_multiple(const Tensor& bias, const Tensor& scale) {
  constexpr double kLargest = 1 << 21;
  Expected<Tensor> quotient = evaluate_node(OpKind::k_div, {bias, scale});
  if (!quotient) return std::nullopt;
  Expected<Tensor> whole = evaluate_node(OpKind::k_round, {*quotient});
  if (!whole) return std::nullopt;
  for (int64_t i = 0; i < whole->count(); ++i)
    if (!(std::abs(element_as_f64(*whole, i)) <= kLargest)) return std::nullopt;
  Expected<Tensor> again = evaluate_node(OpKind::k_mul, {*whole, scale});
  if (!again) return std::nullopt;
  Expected<Tensor> difference = evaluate_node(OpKind::k_sub, {*again, bias});
  if (!difference || difference->count() == 0 || !all_elements_equal(*difference) ||
      element_as_f64(*difference, 0) != 0)
    return std::nullopt;
  Attributes to;
  to.dtype = DType::kI32;
  Expected<Tensor> result = evaluate_node(OpKind::k_cast, {*whole}, to);
  return result ? std::optional(std::move(*result)) : std::nullopt;
}

// A dequantised bias of the scale that the sum has joins the sum:
//   add(mul(cast(sum), s), b) -> mul(cast(add(sum, b / s)), s)
ValueId integer_bias(Rewriter& r, const Node& node, const std::vector<int32_t>& uses) {
  if (node.op != OpKind::k_add || r.old.dtype(node.output) != DType::kF32) return kNoValue;
  auto biased = with_constant(r.old, node, true);
  const Node* mul = biased ? r.old.def(biased->first) : nullptr;
  if (!mul || mul->op != OpKind::k_mul || uses[mul->output] != 1) return kNoValue;
  auto scaled = with_constant(r.old, *mul, true);
  if (!scaled || !is_integer_sum(r.old, scaled->first) || scaled->second.count() == 0) return kNoValue;
  const Node* contract = r.old.def(r.old.def(scaled->first)->inputs[0]);
  while (contract->op == OpKind::k_add) contract = r.old.def(with_constant(r.old, *contract, true)->first);
  if (!within(contract->attributes.contraction, std::numeric_limits<int32_t>::max() / 2)) return kNoValue;
  std::optional<Tensor> bias = as_multiple(biased->second, scaled->second);
  if (!bias) return kNoValue;
  const Shape& shape = r.old.shape(node.output);
  ValueId sum = r(r.old.def(scaled->first)->inputs[0]);
  sum = r.build.add(OpKind::k_add, {sum, add_constant(r.build, std::move(*bias), shape)});
  return r.build.add(OpKind::k_mul, {r.build.cast(sum, DType::kF32),
                                     add_constant(r.build, std::move(scaled->second), shape)});
}

// Moves a division (or multiplication) by a positive number to where a sum of integers gets its scale:
//   div(max(add(mul(cast(sum), s), b), 0), d) -> max(add(mul(cast(sum), s/d), b/d), 0/d)
class Requantisation {
 public:
  explicit Requantisation(const Graph& graph) : uses_(graph.use_counts()) {}

  ValueId rule(Rewriter& r, const Node& node) const {
    if (node.op == OpKind::k_cast) return without_clamp(r, node);
    if ((node.op != OpKind::k_div && node.op != OpKind::k_mul) || r.old.dtype(node.output) != DType::kF32)
      return kNoValue;
    std::optional<Tensor> divisor = uniform_operand(r.old, node.inputs[1]);
    if (!divisor || !(element_as_f64(*divisor, 0) > 0)) return kNoValue;
    struct Step {
      OpKind op;
      ValueId value;  // the operand that is not known
      Tensor constant;
    };
    std::vector<Step> steps;
    for (ValueId v = node.inputs[0];;) {
      const Node* step = r.old.def(v);
      if (!step || uses_[v] != 1) return kNoValue;
      bool known_op = step->op == OpKind::k_add || step->op == OpKind::k_max || step->op == OpKind::k_min ||
                      step->op == OpKind::k_mul;
      std::optional<std::pair<ValueId, Tensor>> operands;
      if (known_op) operands = with_constant(r.old, *step, true);
      if (!operands) return kNoValue;
      Expected<Tensor> scaled = evaluate_node(node.op, {operands->second, *divisor});
      if (!scaled || !is_normal(*scaled)) return kNoValue;
      steps.push_back({step->op, operands->first, std::move(*scaled)});
      v = operands->first;
      if (step->op == OpKind::k_mul) break;
    }
    if (!is_integer_sum(r.old, steps.back().value)) return kNoValue;
    ValueId y = r(steps.back().value);
    for (size_t i = steps.size(); i-- > 0;)
      y = r.build.add(steps[i].op,
                      {y, add_constant(r.build, std::move(steps[i].constant), r.old.shape(node.output))});
    return y;
  }

 private:
  // The lowest value of the dtype stands for 0, and saturation clamps as well:
  //   cast(add(round(max(y, 0)), lowest)) -> cast(add(round y, lowest))
  ValueId without_clamp(Rewriter& r, const Node& node) const {
    DType dtype = r.old.dtype(node.output);
    if (!is_byte(dtype)) return kNoValue;
    const Node* moved = r.old.def(node.inputs[0]);
    if (!moved || moved->op != OpKind::k_add || uses_[moved->output] != 1) return kNoValue;
    std::optional<Tensor> zero = uniform_operand(r.old, moved->inputs[1]);
    const Node* round = r.old.def(moved->inputs[0]);
    if (!zero || element_as_f64(*zero, 0) != (dtype == DType::kI8 ? -128 : 0)) return kNoValue;
    if (!round || round->op != OpKind::k_round || uses_[round->output] != 1) return kNoValue;
    const Node* clamp = r.old.def(round->inputs[0]);
    if (!clamp || clamp->op != OpKind::k_max) return kNoValue;
    std::optional<Tensor> bound = uniform_operand(r.old, clamp->inputs[1]);
    if (!bound || element_as_f64(*bound, 0) != 0) return kNoValue;
    ValueId y = r.build.add(OpKind::k_round, {r(clamp->inputs[0])});
    return r.build.add(OpKind::k_cast, {r.build.add(OpKind::k_add, {y, r(moved->inputs[1])})},
                       node.attributes);
  }
  // Nothing overflowed, and no scale vanished.
  static bool is_normal(const Tensor& tensor) {
    for (int64_t i = 0; i < tensor.count(); ++i) {
      double value = std::abs(element_as_f64(tensor, i));
      if (value != 0 && !(value >= 1e-30 && value <= 1e30)) return false;
    }
    return true;
  }

  std::vector<int32_t> uses_;
};

}  // namespace

Expected<Graph> form_integer_contractions(const Graph& graph, std::optional<DType> activations,
                                          FoldBudget* folding) {
  bool has_8_bits = std::any_of(graph.values.begin(), graph.values.end(),
                                [](const Value& value) { return is_byte(value.type.dtype); });
  if (!has_8_bits) return graph;
  // Scales and zero points become constants, weights stay as narrow as they are.
  std::vector<char> centred(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_sub) centred[node.inputs[0]] = 1;
  FoldBudget own;
  QUERNEL_TRY(Graph known,
              fold_constants(graph, folding ? *folding : own, [&](const Graph& g, const Node& node) {
                if (node.op != OpKind::k_cast) return false;
                const DType from = g.dtype(node.inputs[0]);
                return (is_byte(from) || is_packed(from)) && g.rank(node.output) > 0 &&
                       (centred[node.output] != 0 || is_float(g.dtype(node.output)));
              }));
  QUERNEL_TRY(Graph formed, rewrite(known, form_integer_contraction));
  if (activations) {
    QUERNEL_TRY(formed, rewrite(formed, [&](Rewriter& r, const Node& node) {
                  return with_activations(r, node, *activations);
                }));
  }
  QUERNEL_TRY(formed, rewrite(formed, [](Rewriter&, const Node&) { return kNoValue; }));
  std::vector<int32_t> uses = formed.use_counts();
  QUERNEL_TRY(formed,
              rewrite(formed, [&](Rewriter& r, const Node& node) { return integer_bias(r, node, uses); }));
  for (int round = 0; round < 2; ++round) {  // divisions first, then clamps that meet what they divided
    QUERNEL_TRY(formed, rewrite(formed, [](Rewriter&, const Node&) { return kNoValue; }));
    Requantisation requantisation(formed);
    QUERNEL_TRY(formed,
                rewrite(formed, [&](Rewriter& r, const Node& node) { return requantisation.rule(r, node); }));
  }
  return rewrite(formed, [](Rewriter&, const Node&) { return kNoValue; });
}

}  // namespace quernel
