// SOFTMAX and what else divides by a sum over a line of elements.
#include <cmath>
#include <numbers>

#include "frontends/tflite/activation.h"
#include "frontends/tflite/fixed_point.h"
#include "frontends/tflite/int16_functions.h"
#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {
namespace {

int64_t last_axis(NodeImport& n) { return n.rank(n.in(0)) - 1; }

ValueId minus_largest(NodeImport& n, ValueId x) {
  return n.binary(BinaryOp::k_sub, x, n.build.reduce(OpKind::k_reduce_max, x, {last_axis(n)}, true));
}

ValueId sum_rows(NodeImport& n, ValueId x) {
  return n.build.reduce(OpKind::k_reduce_sum, x, {last_axis(n)}, true);
}

// Bits of the integers that stand for exponentials, in a table of 32 bits: finer than floats between 1/128 and 1. Sums of
// 2^20 of them, and one times 2^17, fit 63 bits.
constexpr int kExpBits = 30;

// exp of the differences to a row's largest element, as integers of kExpBits bits.
ValueId integer_exponentials(NodeImport& n, double beta) {
  double step = beta * static_cast<double>(n.in_quantization(0).scale());
  ValueId x = n.build.cast(n.in(0), DType::kI32);
  ValueId below = n.binary(BinaryOp::k_sub, n.build.reduce(OpKind::k_reduce_max, x, {last_axis(n)}, true), x);
  int64_t count = int64_t{1} << bit_width(n.dtype(n.in(0)));
  std::vector<int64_t> table;
  for (int64_t i = 0; i < count; ++i)
    table.push_back(std::llround(std::ldexp(std::exp(-step * static_cast<double>(i)), kExpBits)));
  return table_entry(n, table, below);
}

// Quotients of integers, rounded half up: real = e / sum, the result real / scale + zero.
Status quantized_softmax(NodeImport& n, double beta) {
  if (n.dtype(n.in(0)) == DType::kI16) return int16_softmax(n, beta);
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8, DType::kU8}));
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  if (n.file.rounding == IntegerRounding::kDouble) return fixed_point_softmax(n, beta);
  double inverse = 1 / static_cast<double>(n.out_quantization(0).scale());
  if (inverse != std::round(inverse) || inverse > (1 << 16))
    return n.refuse("expected a result with a scale of one over an integer up to 2^16, found " +
                    std::to_string(n.out_quantization(0).scale()));
  QUERNEL_CHECK(
      n.require_at_least(Dim(1 << 20) - n.shape(n.in(0)).back(), 0, "2^20 minus the elements of a row"));
  ValueId e = integer_exponentials(n, beta), sum = sum_rows(n, e);
  ValueId scaled = n.binary(BinaryOp::k_mul, e, 2 * inverse);
  ValueId rounded =
      n.binary(BinaryOp::k_idiv, n.binary(BinaryOp::k_add, scaled, sum), n.binary(BinaryOp::k_mul, sum, 2.0));
  rounded = n.binary(BinaryOp::k_add, rounded, static_cast<double>(n.out_quantization(0).zero()));
  return n.output(clamp_integers(n, rounded, ActivationFunctionType::NONE));
}

// The integer square root of 62 bits, from its highest bit down.
ValueId square_root(NodeImport& n, ValueId x) {
  ValueId root = n.full(DType::kI64, n.shape(x), 0);
  for (int bit = 30; bit >= 0; --bit) {
    ValueId with_bit = n.binary(BinaryOp::k_add, root, static_cast<double>(int64_t{1} << bit));
    ValueId fits = n.binary(BinaryOp::k_le, n.binary(BinaryOp::k_mul, with_bit, with_bit), x);
    root = n.build.where(fits, with_bit, root);
  }
  return root;
}

// x over the root of the sum of squares, which has 16 bits behind the point.
Status quantized_l2_normalization(NodeImport& n, ActivationFunctionType function) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8, DType::kU8}));
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  QUERNEL_CHECK(
      n.require_at_least(Dim(1 << 14) - n.shape(n.in(0)).back(), 0, "2^14 minus the elements of a row"));
  constexpr int kBits = 16;
  ValueId x = n.build.cast(centred(n, n.in(0), n.in_quantization(0).zero()), DType::kI64);
  ValueId squares = sum_rows(n, n.binary(BinaryOp::k_mul, x, x));
  ValueId root = square_root(n, n.binary(BinaryOp::k_shl, squares, 2.0 * kBits));
  double factor = std::round(std::ldexp(1 / static_cast<double>(n.out_quantization(0).scale()), kBits));
  ValueId y = divide_rounding(n, n.binary(BinaryOp::k_mul, x, factor), n.binary(BinaryOp::k_max, root, 1.0));
  y = n.binary(BinaryOp::k_add, y, static_cast<double>(n.out_quantization(0).zero()));
  return n.output(clamp_integers(n, y, function));
}

// The logarithm of a sum of exponentials is that of its highest bit and of the 12 bits behind it. All in units of the
// result's scale over 2^20.
Status quantized_log_softmax(NodeImport& n) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8, DType::kU8}));
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  QUERNEL_CHECK(
      n.require_at_least(Dim(1 << 20) - n.shape(n.in(0)).back(), 0, "2^20 minus the elements of a row"));
  constexpr int kMantissa = 12, kBits = 20, kLargestSum = 20;
  const double unit = std::ldexp(1 / static_cast<double>(n.out_quantization(0).scale()), kBits);
  auto fixed = [&](double real) { return rounded(real * unit); };
  ValueId sum = sum_rows(n, integer_exponentials(n, 1));
  std::vector<int64_t> powers, logarithms, distances;
  for (int i = 1; i <= kLargestSum; ++i) powers.push_back(int64_t{1} << (kExpBits + i));
  for (int i = 0; i < 1 << kMantissa; ++i)
    logarithms.push_back(fixed(std::log1p((i + 0.5) / (1 << kMantissa))));
  for (int i = 0; i < 256; ++i)
    distances.push_back(fixed(i * static_cast<double>(n.in_quantization(0).scale())));
  ValueId limits = n.build.constant(i64_tensor({kLargestSum}, powers));
  ValueId above = n.build.cast(n.binary(BinaryOp::k_ge, sum, limits), DType::kI64);
  ValueId bit = sum_rows(n, above);
  ValueId shift = n.binary(BinaryOp::k_add, bit, static_cast<double>(kExpBits - kMantissa));
  ValueId mantissa = n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_shr, sum, shift), 1.0 * (1 << kMantissa));
  ValueId logarithm = n.binary(BinaryOp::k_add, table_entry(n, logarithms, mantissa),
                               n.binary(BinaryOp::k_mul, bit, static_cast<double>(fixed(std::numbers::ln2))));
  ValueId x = n.build.cast(n.in(0), DType::kI32);
  ValueId below = n.binary(BinaryOp::k_sub, n.build.reduce(OpKind::k_reduce_max, x, {last_axis(n)}, true), x);
  ValueId total = n.binary(BinaryOp::k_add, table_entry(n, distances, below), logarithm);
  total = n.binary(BinaryOp::k_shr, n.binary(BinaryOp::k_add, total, 1.0 * (1 << (kBits - 1))), 1.0 * kBits);
  ValueId y = n.binary(BinaryOp::k_sub,
                       n.scalar(DType::kI64, static_cast<double>(n.out_quantization(0).zero())), total);
  return n.output(clamp_integers(n, y, ActivationFunctionType::NONE));
}

}  // namespace

Status import_softmax(NodeImport& n) {
  double beta = static_cast<double>(n.options<tflite::SoftmaxOptions>().beta());
  QUERNEL_CHECK(n.expect_rank(0, 1, 8));
  if (!n.is_float(0)) return n.is_quantized(0) ? quantized_softmax(n, beta) : n.no_kernel();
  ValueId x = minus_largest(n, n.in(0));
  ValueId e = n.unary(UnaryOp::k_exp, beta == 1 ? x : n.binary(BinaryOp::k_mul, x, beta));
  return n.output(n.binary(BinaryOp::k_div, e, sum_rows(n, e)));
}

Status import_log_softmax(NodeImport& n) {
  QUERNEL_CHECK(n.expect_rank(0, 1, 8));
  if (!n.is_float(0)) return n.is_quantized(0) ? quantized_log_softmax(n) : n.no_kernel();
  ValueId x = minus_largest(n, n.in(0));
  return n.output(
      n.binary(BinaryOp::k_sub, x, n.unary(UnaryOp::k_log, sum_rows(n, n.unary(UnaryOp::k_exp, x)))));
}

Status import_l2_normalization(NodeImport& n) {
  ActivationFunctionType function = n.options<tflite::L2NormOptions>().fused_activation_function();
  QUERNEL_CHECK(n.expect_rank(0, 1, 8));
  if (!n.is_float(0)) return n.is_quantized(0) ? quantized_l2_normalization(n, function) : n.no_kernel();
  constexpr double kSmallest = 1e-6;  // of the norm
  ValueId x = n.in(0), norm = n.unary(UnaryOp::k_sqrt, sum_rows(n, n.binary(BinaryOp::k_mul, x, x)));
  ValueId y = n.binary(BinaryOp::k_div, x, n.binary(BinaryOp::k_max, norm, kSmallest));
  QUERNEL_TRY(y, activate(n, y, function));
  return n.output(y);
}

// x / (bias + alpha * sum of squares of the channels within the radius) ^ beta.
Status import_local_response_normalization(NodeImport& n) {
  const auto& options = n.options<tflite::LocalResponseNormalizationOptions>();
  QUERNEL_CHECK(n.expect_rank(0, 4, 4));
  if (!n.is_float(0)) return n.no_kernel();
  int64_t radius = options.radius();
  if (radius < 0 || radius > (1 << 20)) return n.bad_option("radius", "at least 0", std::to_string(radius));
  Shape dims = n.shape(n.in(0)), windows = dims;
  ValueId squares =
      n.build.pad(n.binary(BinaryOp::k_mul, n.in(0), n.in(0)), {0, 0, 0, radius}, {0, 0, 0, radius});
  windows.push_back(2 * radius + 1);
  IndexMap map;
  for (int i = 0; i < 3; ++i) map.indices.push_back(IndexExpr::axis(i));
  map.indices.push_back(IndexExpr::axis(3) + IndexExpr::axis(4));
  ValueId sum =
      n.build.reduce(OpKind::k_reduce_sum, n.build.view(squares, windows, std::move(map)), {4}, false);
  ValueId base =
      n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, sum, static_cast<double>(options.alpha())),
               static_cast<double>(options.bias()));
  ValueId divisor = n.binary(BinaryOp::k_pow, base, static_cast<double>(options.beta()));
  return n.output(n.binary(BinaryOp::k_div, n.in(0), divisor));
}

}  // namespace quernel::tflite_import
