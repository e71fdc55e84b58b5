#include "frontends/tflite/activation.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::optional<ClampRange> clamp_range(ActivationFunctionType function) {
  switch (function) {
    case ActivationFunctionType::NONE:
      return ClampRange{-kInfinity, kInfinity};
    case ActivationFunctionType::RELU:
      return ClampRange{0, kInfinity};
    case ActivationFunctionType::RELU_N1_TO_1:
      return ClampRange{-1, 1};
    case ActivationFunctionType::RELU6:
      return ClampRange{0, 6};
    default:
      return std::nullopt;
  }
}

ValueId clamp(ImportedNode& n, ValueId x, const ClampRange& range) {
  if (std::isfinite(range.lo)) x = n.binary(BinaryOp::k_max, x, range.lo);
  if (std::isfinite(range.hi)) x = n.binary(BinaryOp::k_min, x, range.hi);
  return x;
}

Expected<ValueId> activate(NodeImport& n, ValueId x, ActivationFunctionType function) {
  if (std::optional<ClampRange> range = clamp_range(function)) return clamp(n, x, *range);
  if (function == ActivationFunctionType::TANH && is_float(n.dtype(x))) return n.unary(UnaryOp::k_tanh, x);
  return n.bad_option("fused_activation_function", "none, a clamp, or tanh of floats",
                      tflite::EnumNameActivationFunctionType(function));
}

ValueId logistic(ImportedNode& n, ValueId x) {
  ValueId e = n.unary(UnaryOp::k_exp, n.unary(UnaryOp::k_neg, x));
  return n.unary(UnaryOp::k_recip, n.binary(BinaryOp::k_add, e, 1.0));
}

ValueId gelu(ImportedNode& n, ValueId x, bool approximate) {
  ValueId part;
  if (approximate) {
    ValueId cube = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, x, x), x);
    ValueId inner = n.binary(BinaryOp::k_add, x, n.binary(BinaryOp::k_mul, cube, 0.044715));
    part = n.unary(UnaryOp::k_tanh, n.binary(BinaryOp::k_mul, inner, std::sqrt(2 / std::numbers::pi)));
  } else {
    part = n.unary(UnaryOp::k_erf, n.binary(BinaryOp::k_mul, x, std::numbers::sqrt2 / 2));
  }
  return n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, x, 0.5), n.binary(BinaryOp::k_add, part, 1.0));
}

}  // namespace quernel::tflite_import
