#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/interpret_parts.h"
#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kMaxCopy =
    1 << 20;  // bytes of weights that are worth a scaled copy although others use them as well

// A factor per element of a value: dims of 1 repeat. The value is multiplied or divided by it.
struct Scale {
  Tensor factors;
  bool divide = false;
};

// Offset of an access into a tensor as coefficients of the axes; dims of 1 count nothing. nullopt unless
// affine and free of symbols.
std::optional<interpreter::StaticForm> offset_form(const std::vector<IndexExpr>& access,
                                                   const std::vector<int64_t>& dims, int axes) {
  std::vector<int64_t> strides = interpreter::row_major_strides(dims);
  interpreter::StaticForm form{std::vector<int64_t>(static_cast<size_t>(axes), 0), 0};
  for (size_t d = 0; d < access.size(); ++d) {
    if (dims[d] == 1) continue;
    std::optional<AffineForm> e = as_affine(access[d], axes);
    if (!e || !is_static(e->coefficients) || !e->offset.is_const()) return std::nullopt;
    interpreter::StaticForm dim = interpreter::static_form(*e);
    for (size_t i = 0; i < form.coefficients.size(); ++i)
      form.coefficients[i] += dim.coefficients[i] * strides[d];
    form.offset += dim.offset * strides[d];
  }
  return form;
}

// For each element of the weights, the factor that every product it takes part in is multiplied by; nullopt
// where the scale varies along an axis that the weights do not have. `scaled`: the access of the value that
// the scale stands on.
std::optional<std::vector<double>> factor_per_weight(const Contraction& c,
                                                     const std::vector<IndexExpr>& weights_access,
                                                     const std::vector<IndexExpr>& scaled,
                                                     const Tensor& weights, const Tensor& factors) {
  int axes = static_cast<int>(c.axes.size());
  std::optional<interpreter::StaticForm> weight_at = offset_form(weights_access, weights.dims, axes);
  std::optional<interpreter::StaticForm> factor_at = offset_form(scaled, factors.dims, axes);
  if (!weight_at || !factor_at) return std::nullopt;
  std::vector<int64_t> extents, weight_strides, factor_strides;
  double points = 1;
  for (int i = 0; i < axes; ++i) {
    if (c.axes[i].extent == Dim(1)) continue;
    if (weight_at->coefficients[i] == 0) {
      if (factor_at->coefficients[i] != 0) return std::nullopt;
      continue;
    }
    if (!c.axes[i].extent.is_const()) return std::nullopt;
    extents.push_back(c.axes[i].extent.value());
    weight_strides.push_back(weight_at->coefficients[i]);
    factor_strides.push_back(factor_at->coefficients[i]);
    points *= static_cast<double>(c.axes[i].extent.value());
  }
  if (points > 4.0 * static_cast<double>(weights.count())) return std::nullopt;
  std::vector<double> values(factors.count()),
      result(weights.count(), std::numeric_limits<double>::quiet_NaN());
  interpreter::load(factors, 0, factors.count(), values.data());
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }))
    return std::nullopt;
  if (extents.empty()) extents = {1}, weight_strides = {0}, factor_strides = {0};
  bool consistent = true;
  interpreter::for_each_row(extents, {weight_strides, factor_strides}, [&](const int64_t* offsets) {
    for (int64_t i = 0; i < extents.back(); ++i) {
      double& factor = result[weight_at->offset + offsets[0] + i * weight_strides.back()];
      double value = values[factor_at->offset + offsets[1] + i * factor_strides.back()];
      consistent &= std::isnan(factor) || factor == value;
      factor = value;
    }
  });
  for (double& factor : result)
    if (std::isnan(factor)) factor = 1;  // of an element that no product reads
  return consistent ? std::optional(std::move(result)) : std::nullopt;
}

// The weights with their factors, rounded once; nullopt when one overflows.
std::optional<Tensor> scaled_weights(const Tensor& weights, const std::vector<double>& factors, bool divide) {
  std::vector<double> values(weights.count());
  interpreter::load(weights, 0, weights.count(), values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    double result =
        interpreter::round_to(weights.dtype, divide ? values[i] / factors[i] : values[i] * factors[i]);
    if (std::isfinite(values[i]) && !std::isfinite(result)) return std::nullopt;
    values[i] = result;
  }
  std::vector<uint8_t> bytes(weights.bytes.size());
  interpreter::store(weights.dtype, bytes.data(), 0, weights.count(), values.data());
  return Tensor{weights.dtype, weights.dims, Bytes::own(std::move(bytes))};
}

class ScaleFolding {
 public:
  ScaleFolding(std::vector<int32_t> old_uses) : old_uses_(std::move(old_uses)) {}

  ValueId rule(Rewriter& r, const Node& node) {
    ValueId result = kNoValue;
    DType dtype = r.old.dtype(node.output);
    if (dtype == DType::kF32 || dtype == DType::kF64) {
      if (node.op == OpKind::k_mul || node.op == OpKind::k_div) result = fold_output_scale(r, node);
      if (node.op == OpKind::k_add) result = join_shifts(r, node);
      if (node.op == OpKind::k_contract) result = fold_input_scale(r, node);
    }
    if (result == kNoValue && r.build.ok()) result = r.copy(node);
    if (result != kNoValue) set_uses(result, old_uses_[node.output]);
    return result;
  }

 private:
  void set_uses(ValueId v, int32_t uses) {
    if (static_cast<size_t>(v) >= uses_.size()) uses_.resize(static_cast<size_t>(v) + 64, 0);
    uses_[v] = uses;
  }
  bool used_once(ValueId v) const { return static_cast<size_t>(v) < uses_.size() && uses_[v] == 1; }

  // An elementwise node with one known operand: the other one, and the constant.
  struct Operands {
    ValueId value = kNoValue;
    Tensor constant;
  };
  static std::optional<Operands> with_constant(const Graph& graph, const std::vector<ValueId>& inputs,
                                               bool commutes) {
    for (size_t i = 2; i-- > (commutes ? 0u : 1u);) {
      std::optional<Tensor> constant = constant_operand(graph, inputs[i]);
      if (constant) return Operands{inputs[1 - i], std::move(*constant)};
    }
    return std::nullopt;
  }

  // contract(x, w), or add(contract(x, w), constant): the contraction, and the shift if there is one.
  struct Shifted {
    Node contraction;
    ValueId contraction_value = kNoValue;
    std::optional<Tensor> shift;
  };
  std::optional<Shifted> shifted_contraction(const Graph& graph, ValueId v) const {
    if (!used_once(v)) return std::nullopt;
    const Node* node = graph.def(v);
    if (node && node->op == OpKind::k_contract) return Shifted{*node, v, std::nullopt};
    if (!node || node->op != OpKind::k_add) return std::nullopt;
    std::optional<Operands> add = with_constant(graph, node->inputs, true);
    if (!add || !used_once(add->value)) return std::nullopt;
    const Node* inner = graph.def(add->value);
    if (!inner || inner->op != OpKind::k_contract) return std::nullopt;
    return Shifted{*inner, add->value, std::move(add->constant)};
  }

  ValueId fold_output_scale(Rewriter& r, const Node& node) {
    bool divide = node.op == OpKind::k_div;
    std::optional<Operands> scale = with_constant(r.graph, {r(node.inputs[0]), r(node.inputs[1])}, !divide);
    if (!scale) return kNoValue;
    std::optional<Shifted> shifted = shifted_contraction(r.graph, scale->value);
    if (!shifted) return kNoValue;
    const Contraction& c = shifted->contraction.attributes.contraction;
    ValueId scaled =
        scale_weights(r, shifted->contraction, shifted->contraction.inputs, c.out, {scale->constant, divide});
    if (scaled == kNoValue || !shifted->shift) return scaled;
    set_uses(scaled, 1);
    Expected<Tensor> shift = evaluate_node(node.op, {*shifted->shift, scale->constant});
    if (!shift) return r.build.fail(shift.take_errors().front());
    return r.build.add(OpKind::k_add,
                       {scaled, add_constant(r.build, std::move(*shift), r.old.shape(node.output))});
  }

  //   add(add(contract(x, w), b), t) -> add(contract(x, w), b + t)
  ValueId join_shifts(Rewriter& r, const Node& node) {
    std::optional<Operands> outer = with_constant(r.graph, {r(node.inputs[0]), r(node.inputs[1])}, true);
    if (!outer) return kNoValue;
    std::optional<Shifted> shifted = shifted_contraction(r.graph, outer->value);
    if (!shifted || !shifted->shift) return kNoValue;
    Expected<Tensor> shift = evaluate_node(OpKind::k_add, {*shifted->shift, outer->constant});
    if (!shift) return r.build.fail(shift.take_errors().front());
    return r.build.add(OpKind::k_add, {shifted->contraction_value,
                                       add_constant(r.build, std::move(*shift), r.old.shape(node.output))});
  }

  //   contract(mul(x, s), w) -> contract(x, w * s) where s varies only along axes that w has too
  ValueId fold_input_scale(Rewriter& r, const Node& node) {
    for (size_t i = 0; i < 2; ++i) {
      ValueId v = r(node.inputs[i]);
      const Node* scaling = r.graph.def(v);
      if (!scaling || !used_once(v) || (scaling->op != OpKind::k_mul && scaling->op != OpKind::k_div))
        continue;
      bool divide = scaling->op == OpKind::k_div;
      std::optional<Operands> scale = with_constant(r.graph, scaling->inputs, !divide);
      if (!scale || constant_operand(r.graph, scale->value)) continue;
      const Contraction& c = node.attributes.contraction;
      std::vector<ValueId> inputs{r(node.inputs[0]), r(node.inputs[1])};
      inputs[i] = scale->value;
      ValueId scaled = scale_weights(r, node, inputs, i == 0 ? c.a : c.b, {scale->constant, divide});
      if (scaled != kNoValue) return scaled;
    }
    return kNoValue;
  }

  // The contraction of `inputs` with its constant operand scaled.
  ValueId scale_weights(Rewriter& r, const Node& contraction, std::vector<ValueId> inputs,
                        const std::vector<IndexExpr>& scaled, const Scale& scale) {
    const Contraction& c = contraction.attributes.contraction;
    for (size_t i = 2; i-- > 0;) {
      const Tensor* weights = r.graph.constant(inputs[i]);
      if (!weights || weights->dtype != scale.factors.dtype || weights->count() == 0) continue;
      if (!used_once(inputs[i]) && static_cast<int64_t>(weights->bytes.size()) > kMaxCopy) continue;
      std::optional<std::vector<double>> factors =
          factor_per_weight(c, i == 0 ? c.a : c.b, scaled, *weights, scale.factors);
      if (!factors) continue;
      if (scale.divide && std::find(factors->begin(), factors->end(), 0.0) != factors->end()) continue;
      std::optional<Tensor> result = scaled_weights(*weights, *factors, scale.divide);
      if (!result) continue;
      inputs[i] = r.build.constant(std::move(*result));
      set_uses(inputs[i], 1);
      return r.build.add(OpKind::k_contract, std::move(inputs), contraction.attributes);
    }
    return kNoValue;
  }

  std::vector<int32_t> old_uses_;  // of the old graph's values
  std::vector<int32_t> uses_;      // that values of the new graph will have
};

}  // namespace

Expected<Graph> fold_scales_into_contractions(const Graph& graph) {
  QUERNEL_TRY(Graph live, rewrite(graph, [](Rewriter&, const Node&) { return kNoValue; }));
  ScaleFolding folding(live.use_counts());
  QUERNEL_TRY(Graph folded,
              rewrite(live, [&](Rewriter& r, const Node& node) { return folding.rule(r, node); }));
  return rewrite(folded, [](Rewriter&, const Node&) { return kNoValue; });
}

}  // namespace quernel
