// Activations and the softmax family.
#include <cmath>
#include <limits>
#include <numeric>

#include "frontends/onnx/activation.h"
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {

ValueId sigmoid(NodeImport& n, ValueId x) {
  return n.unary(UnaryOp::k_recip,
                 n.binary(BinaryOp::k_add, n.unary(UnaryOp::k_exp, n.unary(UnaryOp::k_neg, x)), 1.0));
}

ValueId swish(NodeImport& n, ValueId x, double alpha) {
  ValueId scaled = alpha == 1 ? x : n.binary(BinaryOp::k_mul, x, alpha);
  return n.binary(BinaryOp::k_mul, x, sigmoid(n, scaled));
}

ValueId softmax(NodeImport& n, ValueId x, const std::vector<int64_t>& axes) {
  ValueId e = n.unary(UnaryOp::k_exp,
                      n.binary(BinaryOp::k_sub, x, n.build.reduce(OpKind::k_reduce_max, x, axes, true)));
  // The sum is at least 1, so that its reciprocal is exact enough and one division per row will do.
  ValueId share = n.unary(UnaryOp::k_recip, n.build.reduce(OpKind::k_reduce_sum, e, axes, true));
  return n.binary(BinaryOp::k_mul, e, share);
}

ValueId log_softmax(NodeImport& n, ValueId x, const std::vector<int64_t>& axes) {
  ValueId shifted = n.binary(BinaryOp::k_sub, x, n.build.reduce(OpKind::k_reduce_max, x, axes, true));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, n.unary(UnaryOp::k_exp, shifted), axes, true);
  return n.binary(BinaryOp::k_sub, shifted, n.unary(UnaryOp::k_log, sum));
}

ValueId gelu_erf(NodeImport& n, ValueId x) {
  ValueId e = n.unary(UnaryOp::k_erf, n.binary(BinaryOp::k_mul, x, std::sqrt(0.5)));
  return n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, x, 0.5), n.binary(BinaryOp::k_add, e, 1.0));
}

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
ValueId gelu_tanh(NodeImport& n, ValueId x) {
  ValueId cube = n.binary(BinaryOp::k_mul, x, n.binary(BinaryOp::k_mul, x, x));
  ValueId inner = n.binary(BinaryOp::k_add, x, n.binary(BinaryOp::k_mul, cube, 0.044715));
  ValueId t = n.unary(UnaryOp::k_tanh, n.binary(BinaryOp::k_mul, inner, std::sqrt(2 / std::acos(-1.0))));
  return n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, x, 0.5), n.binary(BinaryOp::k_add, t, 1.0));
}

// max(x, 0) + log1p(exp(-|x|)): never overflows.
ValueId softplus(NodeImport& n, ValueId x) {
  ValueId tail = n.unary(UnaryOp::k_exp, n.unary(UnaryOp::k_neg, n.unary(UnaryOp::k_abs, x)));
  return n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_max, x, 0.0), n.unary(UnaryOp::k_log1p, tail));
}

namespace {

ValueId select_negative(NodeImport& n, ValueId x, ValueId if_negative) {
  return n.build.where(n.binary(BinaryOp::k_lt, x, 0.0), if_negative, x);
}

}  // namespace

ValueId leaky_relu(NodeImport& n, ValueId x, double alpha) {
  return select_negative(n, x, n.binary(BinaryOp::k_mul, x, alpha));
}

ValueId elu(NodeImport& n, ValueId x, double alpha) {
  return select_negative(n, x, n.binary(BinaryOp::k_mul, n.unary(UnaryOp::k_expm1, x), alpha));
}

ValueId thresholded_relu(NodeImport& n, ValueId x, double alpha) {
  return n.build.where(n.binary(BinaryOp::k_gt, x, alpha), x, n.scalar(n.dtype(x), 0));
}

ValueId hard_sigmoid(NodeImport& n, ValueId x, double alpha, double beta) {
  ValueId y = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, x, alpha), beta);
  return n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, y, 0.0), 1.0);
}

ValueId softsign(NodeImport& n, ValueId x) {
  return n.binary(BinaryOp::k_div, x, n.binary(BinaryOp::k_add, n.unary(UnaryOp::k_abs, x), 1.0));
}

namespace {

// The axes that softmax and its relatives normalise over: one from opset 13; before, all from `axis` on.
Expected<std::vector<int64_t>> softmax_axes(NodeImport& n) {
  int rank = n.rank(n.in(0));
  int64_t axis = n.attr_int("axis", n.opset < 13 ? 1 : -1);
  if (n.opset < 13 && axis == rank) return std::vector<int64_t>{};  // flattened to [all, 1]
  QUERNEL_TRY(axis, n.axis(axis, rank));
  std::vector<int64_t> axes{axis};
  if (n.opset < 13)
    while (axes.back() + 1 < rank) axes.push_back(axes.back() + 1);
  return axes;
}

}  // namespace

Status import_relu(NodeImport& n) { return n.output(n.binary(BinaryOp::k_max, n.in(0), 0.0)); }

Status import_sigmoid(NodeImport& n) {
  n.compute_wide();
  return n.output(sigmoid(n, n.in(0)));
}

Status import_softplus(NodeImport& n) {
  n.compute_wide();
  return n.output(softplus(n, n.in(0)));
}

Status import_leaky_relu(NodeImport& n) {
  n.compute_wide();
  return n.output(leaky_relu(n, n.in(0), n.attr_float("alpha", 0.01f)));
}

Status import_prelu(NodeImport& n) {
  return n.output(select_negative(n, n.in(0), n.binary(BinaryOp::k_mul, n.in(0), n.in(1))));
}

Status import_elu(NodeImport& n) {
  n.compute_wide();
  return n.output(elu(n, n.in(0), n.attr_float("alpha", 1)));
}

Status import_selu(NodeImport& n) {
  n.compute_wide();
  double alpha = n.attr_float("alpha", 1.67326319217681884765625),
         gamma = n.attr_float("gamma", 1.05070102214813232421875);
  ValueId x = n.in(0);
  ValueId y = select_negative(n, x, n.binary(BinaryOp::k_mul, n.unary(UnaryOp::k_expm1, x), alpha));
  return n.output(n.binary(BinaryOp::k_mul, y, gamma));
}

Status import_celu(NodeImport& n) {
  n.compute_wide();
  double alpha = n.attr_float("alpha", 1);
  if (alpha == 0) return n.invalid("attribute 'alpha': expected a value other than 0");
  ValueId x = n.in(0);
  ValueId tail = n.unary(UnaryOp::k_expm1, n.binary(BinaryOp::k_div, x, alpha));
  return n.output(n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_max, x, 0.0),
                           n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_mul, tail, alpha), 0.0)));
}

Status import_thresholded_relu(NodeImport& n) {
  n.compute_wide();
  return n.output(thresholded_relu(n, n.in(0), n.attr_float("alpha", 1)));
}

Status import_shrink(NodeImport& n) {
  n.compute_wide();
  double lambda = n.attr_float("lambd", 0.5), bias = n.attr_float("bias", 0);
  ValueId x = n.in(0), zero = n.scalar(n.dtype(x), 0);
  ValueId positive =
      n.build.where(n.binary(BinaryOp::k_gt, x, lambda), n.binary(BinaryOp::k_sub, x, bias), zero);
  return n.output(
      n.build.where(n.binary(BinaryOp::k_lt, x, -lambda), n.binary(BinaryOp::k_add, x, bias), positive));
}

Status import_hard_sigmoid(NodeImport& n) {
  n.compute_wide();
  double alpha = n.attr_float("alpha", 0.2f), beta = n.attr_float("beta", 0.5);
  return n.output(hard_sigmoid(n, n.in(0), alpha, beta));
}

Status import_hard_swish(NodeImport& n) {
  n.compute_wide();
  ValueId x = n.in(0);
  ValueId gate = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, x, 1.0 / 6), 0.5);
  gate = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, gate, 0.0), 1.0);
  return n.output(n.binary(BinaryOp::k_mul, x, gate));
}

Status import_softsign(NodeImport& n) {
  n.compute_wide();
  return n.output(softsign(n, n.in(0)));
}

Status import_mish(NodeImport& n) {
  n.compute_wide();
  ValueId x = n.in(0);
  return n.output(n.binary(BinaryOp::k_mul, x, n.unary(UnaryOp::k_tanh, softplus(n, x))));
}

Status import_swish(NodeImport& n) {
  n.compute_wide();
  return n.output(swish(n, n.in(0), n.attr_float("alpha", 1)));
}

// The gate passes through Swish, the other operand multiplies it.
Status import_swiglu(NodeImport& n) {
  n.compute_wide();
  double alpha = n.attr_float("alpha", 1);
  if (n.shape(n.in(0)) != n.shape(n.in(1)))
    return n.invalid("expected operands of one shape, found " + to_string(n.shape(n.in(0))) + " and " +
                     to_string(n.shape(n.in(1))));
  return n.output(n.binary(BinaryOp::k_mul, swish(n, n.in(0), alpha), n.in(1)));
}

Status import_quick_gelu(NodeImport& n) {
  n.compute_wide();
  return n.output(swish(n, n.in(0), n.attr_float("alpha", 1.702f)));
}

Status import_gelu(NodeImport& n) {
  n.compute_wide();
  std::string approximate = n.attr_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return n.invalid("attribute 'approximate': expected none or tanh, found '" + approximate + "'");
  return n.output(approximate == "tanh" ? gelu_tanh(n, n.in(0)) : gelu_erf(n, n.in(0)));
}

Status import_bias_gelu(NodeImport& n) {
  n.compute_wide();
  return n.output(gelu_erf(n, n.binary(BinaryOp::k_add, n.in(0), n.in(1))));
}

Status import_fast_gelu(NodeImport& n) {
  n.compute_wide();
  ValueId x = n.has(1) ? n.binary(BinaryOp::k_add, n.in(0), n.in(1)) : n.in(0);
  return n.output(gelu_tanh(n, x));
}

// Bounds are attributes before opset 11, then operands. Where min > max the result is max.
Status import_clip(NodeImport& n) {
  ValueId x = n.in(0);
  if (n.opset < 11) {
    if (n.has(1)) return n.invalid("min and max are attributes before opset 11, found inputs");
    constexpr double kMax = std::numeric_limits<float>::max();
    double lo = n.attr_float("min", -kMax), hi = n.attr_float("max", kMax);
    if (lo > -kMax) x = n.binary(BinaryOp::k_max, x, lo);
    if (hi < kMax) x = n.binary(BinaryOp::k_min, x, hi);
    return n.output(x);
  }
  for (int i = 1; i <= 2; ++i) {
    if (!n.has(i)) continue;
    Shape bound = n.shape(n.in(i));
    if (!is_static(bound) || element_count(bound) != Dim(1))
      return n.invalid("expected scalar bounds, found shape " + to_string(bound));
    x = n.binary(i == 1 ? BinaryOp::k_max : BinaryOp::k_min, x, n.build.reshape(n.in(i), {}));
  }
  return n.output(x);
}

Status import_softmax(NodeImport& n) {
  n.compute_wide();
  QUERNEL_TRY(std::vector<int64_t> axes, softmax_axes(n));
  return n.output(softmax(n, n.in(0), axes));
}

Status import_log_softmax(NodeImport& n) {
  n.compute_wide();
  QUERNEL_TRY(std::vector<int64_t> axes, softmax_axes(n));
  return n.output(log_softmax(n, n.in(0), axes));
}

// One at the first largest element of each row, else zero.
Status import_hardmax(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> axes, softmax_axes(n));
  ValueId x = n.in(0);
  Shape dims = n.shape(x);
  if (axes.empty()) return n.output(n.full(n.dtype(x), dims, 1));
  Dim outer = 1, inner = 1, tail = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i)
    (i < axes.front() ? outer : i <= axes.back() ? inner : tail) *= dims[i];
  ValueId rows = n.build.reshape(x, {outer, inner, tail});
  ValueId best = n.build.reduce(OpKind::k_reduce_argmax, rows, {1}, true);
  ValueId hit = n.binary(BinaryOp::k_eq, n.positions(DType::kI64, inner, 1), best);
  return n.output(n.build.reshape(n.build.cast(hit, n.dtype(x)), dims));
}

}  // namespace quernel::onnx_import
