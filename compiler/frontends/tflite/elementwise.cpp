// Elementwise operators of floats, of plain integers and of bool.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontends/tflite/activation.h"
#include "frontends/tflite/fixed_point.h"
#include "frontends/tflite/int16_functions.h"
#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantized_elementwise.h"

namespace quernel::tflite_import {
namespace {

bool is_plain(NodeImport& n) {
  for (int i = 0; i < n.input_count(); ++i)
    if (n.is_quantized(i)) return false;
  return true;
}

Status same_dtypes(NodeImport& n) {
  for (int i = 1; i < n.input_count(); ++i)
    if (n.dtype(n.in(i)) != n.dtype(n.in(0))) return n.no_kernel();
  return {};
}

Status arithmetic(NodeImport& n, BinaryOp op, ActivationFunctionType function) {
  QUERNEL_CHECK(same_dtypes(n));
  // Integers of 8 and 16 bits without a scale have no meaning of their own here.
  if (!is_plain(n) || bit_width(n.dtype(n.in(0))) < 16 || n.dtype(n.in(0)) == DType::kI16)
    return n.no_kernel();
  QUERNEL_TRY(ValueId y, activate(n, n.binary(op, n.in(0), n.in(1)), function));
  return n.output(y);
}

Status comparison(NodeImport& n, BinaryOp op) {
  QUERNEL_CHECK(same_dtypes(n));
  if (!is_plain(n)) return quantized_comparison(n, op);
  return n.output(n.binary(op, n.in(0), n.in(1)));
}

Status logical(NodeImport& n, BinaryOp op) {
  for (int i = 0; i < 2; ++i) QUERNEL_CHECK(n.expect_dtypes(i, {DType::kBool}));
  return n.output(n.binary(op, n.in(0), n.in(1)));
}

// Maximum and minimum order quantized elements of one scale as real numbers.
Status selection(NodeImport& n, BinaryOp op) {
  QUERNEL_CHECK(same_dtypes(n));
  if (!is_plain(n) &&
      !(n.in_quantization(0) == n.in_quantization(1) && n.in_quantization(0) == n.out_quantization(0)))
    return n.refuse("expected operands and result of one scale and zero point");
  return n.output(n.binary(op, n.in(0), n.in(1)));
}

// Whether an operator on a quantized operand of 8 bits has fixed-point functions, which round twice.
bool is_fixed_point(const NodeImport& n) {
  return n.file.rounding == IntegerRounding::kDouble && n.is_quantized(0) && n.is_output_quantized() &&
         bit_width(n.dtype(n.in(0))) == 8 && bit_width(n.out_dtype(0)) == 8;
}

// `table`: the same function of one number.
Status real_function(NodeImport& n, UnaryOp op, double (*table)(double)) {
  if (!n.is_float(0)) return import_table(n, table);
  return n.output(n.unary(op, n.in(0)));
}

Status clamped(NodeImport& n, const ClampRange& range) {
  if (!n.is_float(0)) return n.is_quantized(0) ? quantized_clamp(n, range) : n.no_kernel();
  return n.output(clamp(n, n.in(0), range));
}

}  // namespace

Status import_add(NodeImport& n) {
  const auto& options = n.options<tflite::AddOptions>();
  if (is_plain(n)) return arithmetic(n, BinaryOp::k_add, options.fused_activation_function());
  return quantized_add(n, false, options.pot_scale_int16(), options.fused_activation_function());
}

Status import_sub(NodeImport& n) {
  const auto& options = n.options<tflite::SubOptions>();
  if (is_plain(n)) return arithmetic(n, BinaryOp::k_sub, options.fused_activation_function());
  return quantized_add(n, true, options.pot_scale_int16(), options.fused_activation_function());
}

Status import_mul(NodeImport& n) {
  ActivationFunctionType function = n.options<tflite::MulOptions>().fused_activation_function();
  return is_plain(n) ? arithmetic(n, BinaryOp::k_mul, function) : quantized_mul(n, function);
}

Status import_div(NodeImport& n) {
  ActivationFunctionType function = n.options<tflite::DivOptions>().fused_activation_function();
  if (!is_plain(n)) return quantized_div(n, function);
  return arithmetic(n, n.is_float(0) ? BinaryOp::k_div : BinaryOp::k_idiv, function);
}

Status import_add_n(NodeImport& n) {
  QUERNEL_CHECK(same_dtypes(n));
  if (!is_plain(n)) return n.no_kernel();
  ValueId sum = n.in(0);
  for (int i = 1; i < n.input_count(); ++i) sum = n.binary(BinaryOp::k_add, sum, n.in(i));
  return n.output(sum);
}

Status import_floor_div(NodeImport& n) {
  if (!n.is_float(0)) return arithmetic(n, BinaryOp::k_fdiv, ActivationFunctionType::NONE);
  QUERNEL_CHECK(same_dtypes(n));
  return n.output(n.unary(UnaryOp::k_floor, n.binary(BinaryOp::k_div, n.in(0), n.in(1))));
}

Status import_floor_mod(NodeImport& n) {
  return arithmetic(n, BinaryOp::k_mod, ActivationFunctionType::NONE);
}
Status import_pow(NodeImport& n) { return arithmetic(n, BinaryOp::k_pow, ActivationFunctionType::NONE); }

Status import_squared_difference(NodeImport& n) {
  QUERNEL_CHECK(same_dtypes(n));
  if (!is_plain(n)) return quantized_squared_difference(n);
  ValueId difference = n.binary(BinaryOp::k_sub, n.in(0), n.in(1));
  return n.output(n.binary(BinaryOp::k_mul, difference, difference));
}

// atan2(y, x): the angle of the point (x, y), from the arc tangent of the quotient and the quadrant.
Status import_atan2(NodeImport& n) {
  for (int i = 0; i < 2; ++i) QUERNEL_CHECK(n.expect_dtypes(i, {DType::kF32, DType::kF64}));
  constexpr double kPi = 3.14159265358979323846;
  ValueId y = n.in(0), x = n.in(1);
  ValueId angle = n.unary(UnaryOp::k_atan, n.binary(BinaryOp::k_div, y, x));
  ValueId below = n.binary(BinaryOp::k_lt, y, 0.0), left = n.binary(BinaryOp::k_lt, x, 0.0);
  ValueId half_turn = n.build.where(below, n.scalar(n.dtype(x), -kPi), n.scalar(n.dtype(x), kPi));
  angle = n.build.where(left, n.binary(BinaryOp::k_add, angle, half_turn), angle);
  ValueId quarter = n.binary(BinaryOp::k_mul, n.unary(UnaryOp::k_sign, y), kPi / 2);
  angle = n.build.where(n.binary(BinaryOp::k_eq, x, 0.0), quarter, angle);
  return n.output(angle);
}

Status import_maximum(NodeImport& n) { return selection(n, BinaryOp::k_max); }
Status import_minimum(NodeImport& n) { return selection(n, BinaryOp::k_min); }

Status import_equal(NodeImport& n) { return comparison(n, BinaryOp::k_eq); }
Status import_not_equal(NodeImport& n) { return comparison(n, BinaryOp::k_ne); }
Status import_less(NodeImport& n) { return comparison(n, BinaryOp::k_lt); }
Status import_less_equal(NodeImport& n) { return comparison(n, BinaryOp::k_le); }
Status import_greater(NodeImport& n) { return comparison(n, BinaryOp::k_gt); }
Status import_greater_equal(NodeImport& n) { return comparison(n, BinaryOp::k_ge); }

Status import_logical_and(NodeImport& n) { return logical(n, BinaryOp::k_and); }
Status import_logical_or(NodeImport& n) { return logical(n, BinaryOp::k_or); }
Status import_logical_not(NodeImport& n) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kBool}));
  return n.output(n.unary(UnaryOp::k_not, n.in(0)));
}

Status import_bitwise_xor(NodeImport& n) {
  QUERNEL_CHECK(same_dtypes(n));
  if (n.is_float(0)) return n.no_kernel();
  return n.output(n.binary(BinaryOp::k_xor, n.in(0), n.in(1)));
}

Status import_right_shift(NodeImport& n) {
  QUERNEL_CHECK(same_dtypes(n));
  if (n.is_float(0)) return n.no_kernel();
  return n.output(n.binary(BinaryOp::k_shr, n.in(0), n.in(1)));
}

Status import_abs(NodeImport& n) {
  if (n.is_quantized(0)) return quantized_abs(n);
  if (n.dtype(n.in(0)) == DType::kBool) return n.no_kernel();
  return n.output(n.unary(UnaryOp::k_abs, n.in(0)));
}
Status import_neg(NodeImport& n) {
  if (n.is_quantized(0)) return quantized_neg(n);
  if (n.dtype(n.in(0)) == DType::kBool) return n.no_kernel();
  return n.output(n.unary(UnaryOp::k_neg, n.in(0)));
}
Status import_sign(NodeImport& n) {
  if (n.is_quantized(0) || n.dtype(n.in(0)) == DType::kBool) return n.no_kernel();
  return n.output(n.unary(UnaryOp::k_sign, n.in(0)));
}
Status import_square(NodeImport& n) {
  if (n.is_quantized(0) || n.dtype(n.in(0)) == DType::kBool) return n.no_kernel();
  return n.output(n.binary(BinaryOp::k_mul, n.in(0), n.in(0)));
}

Status import_ceil(NodeImport& n) { return real_function(n, UnaryOp::k_ceil, std::ceil); }
Status import_floor(NodeImport& n) { return real_function(n, UnaryOp::k_floor, std::floor); }
Status import_round(NodeImport& n) { return real_function(n, UnaryOp::k_round, std::nearbyint); }
Status import_cos(NodeImport& n) { return real_function(n, UnaryOp::k_cos, std::cos); }
Status import_sin(NodeImport& n) { return real_function(n, UnaryOp::k_sin, std::sin); }
Status import_exp(NodeImport& n) { return real_function(n, UnaryOp::k_exp, std::exp); }
Status import_log(NodeImport& n) { return real_function(n, UnaryOp::k_log, std::log); }
Status import_sqrt(NodeImport& n) { return real_function(n, UnaryOp::k_sqrt, std::sqrt); }
Status import_tanh(NodeImport& n) {
  if (n.is_quantized(0) && n.dtype(n.in(0)) == DType::kI16) return int16_tanh(n);
  if (is_fixed_point(n)) return fixed_point_tanh(n);
  return real_function(n, UnaryOp::k_tanh, std::tanh);
}
Status import_rsqrt(NodeImport& n) {
  return real_function(n, UnaryOp::k_rsqrt, [](double x) { return 1 / std::sqrt(x); });
}

Status import_logistic(NodeImport& n) {
  if (n.is_quantized(0) && n.dtype(n.in(0)) == DType::kI16) return int16_logistic(n);
  if (is_fixed_point(n)) return fixed_point_logistic(n);
  if (!n.is_float(0)) return import_table(n, [](double x) { return 1 / (1 + std::exp(-x)); });
  return n.output(logistic(n, n.in(0)));
}

Status import_elu(NodeImport& n) {
  if (!n.is_float(0)) return import_table(n, [](double x) { return x < 0 ? std::expm1(x) : x; });
  ValueId x = n.in(0), below = n.unary(UnaryOp::k_expm1, n.binary(BinaryOp::k_min, x, 0.0));
  return n.output(n.build.where(n.binary(BinaryOp::k_lt, x, 0.0), below, x));
}

Status import_gelu(NodeImport& n) {
  bool approximate = n.options<tflite::GeluOptions>().approximate();
  if (n.is_float(0)) return n.output(gelu(n, n.in(0), approximate));
  if (approximate)
    return import_table(n, [](double x) {
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    });
  return import_table(n, [](double x) { return x / 2 * (1 + std::erf(x * std::numbers::sqrt2 / 2)); });
}

Status import_hard_swish(NodeImport& n) {
  if (is_fixed_point(n)) return fixed_point_hard_swish(n);
  if (!n.is_float(0)) return import_table(n, [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; });
  ValueId gate = clamp(n, n.binary(BinaryOp::k_add, n.in(0), 3.0), {0, 6});
  return n.output(n.binary(BinaryOp::k_mul, n.in(0), n.binary(BinaryOp::k_mul, gate, 1.0 / 6)));
}

Status import_leaky_relu(NodeImport& n) {
  float alpha = n.options<tflite::LeakyReluOptions>().alpha();
  if (n.is_quantized(0)) return quantized_leaky_relu(n, alpha);
  if (!n.is_float(0)) return n.no_kernel();
  ValueId x = n.in(0), below = n.binary(BinaryOp::k_mul, x, static_cast<double>(alpha));
  return n.output(n.build.where(n.binary(BinaryOp::k_ge, x, 0.0), x, below));
}

Status import_prelu(NodeImport& n) {
  QUERNEL_CHECK(same_dtypes(n));
  if (n.is_quantized(0)) return quantized_prelu(n);
  if (!n.is_float(0)) return n.no_kernel();
  ValueId x = n.in(0);
  return n.output(n.build.where(n.binary(BinaryOp::k_ge, x, 0.0), x, n.binary(BinaryOp::k_mul, x, n.in(1))));
}

Status import_relu(NodeImport& n) { return clamped(n, *clamp_range(ActivationFunctionType::RELU)); }
Status import_relu6(NodeImport& n) { return clamped(n, *clamp_range(ActivationFunctionType::RELU6)); }
Status import_relu_n1_to_1(NodeImport& n) {
  return clamped(n, *clamp_range(ActivationFunctionType::RELU_N1_TO_1));
}
Status import_relu_0_to_1(NodeImport& n) { return clamped(n, {0, 1}); }

Status import_select(NodeImport& n) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kBool}));
  if (n.dtype(n.in(1)) != n.dtype(n.in(2))) return n.no_kernel();
  ValueId condition = n.in(0);
  // A vector chooses rows, if the operator is SELECT.
  int rank = n.rank(n.in(1));
  if (n.kind == tflite::BuiltinOperator::SELECT && n.rank(condition) == 1 && rank > 1) {
    Shape column(static_cast<size_t>(rank), Dim(1));
    column[0] = n.shape(condition)[0];
    condition = n.build.reshape(condition, column);
  }
  return n.output(n.build.where(condition, n.in(1), n.in(2)));
}

// The file's types decide; the options repeat them, and old converters leave them wrong.
Status import_cast(NodeImport& n) {
  n.ignore_options();
  DType to = n.out_dtype(0);
  if (to == DType::kI4 || to == DType::kU4) return n.no_kernel();
  return n.output(n.build.cast(n.in(0), to));
}

}  // namespace quernel::tflite_import
