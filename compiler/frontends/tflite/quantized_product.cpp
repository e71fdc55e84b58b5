// Sums of products of quantized operands: convolutions, dense layers, matrix products.
#include <algorithm>

#include "frontends/shared/contraction.h"
#include "frontends/tflite/conv.h"
#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {
namespace {

bool has_one_zero(const Quantization& q) {
  return std::all_of(q.zero_points.begin(), q.zero_points.end(),
                     [&](int64_t zero) { return zero == q.zero(); });
}

// The reinterpretation of u8 as i8 that keeps the order: x - 128.
ValueId as_signed(ImportedNode& n, ValueId x) {
  Attributes to;
  to.dtype = DType::kI8;
  return n.build.add(OpKind::k_bitcast, {n.binary(BinaryOp::k_xor, x, 128.0)}, std::move(to));
}

}  // namespace

Expected<ProductOperands> product_operands(NodeImport& n, int x, int weights, int64_t terms) {
  QUERNEL_CHECK(n.expect_dtypes(x, {DType::kI8, DType::kU8, DType::kI16}));
  QUERNEL_CHECK(n.expect_dtypes(weights, {DType::kI8, DType::kU8, DType::kI4, DType::kI16}));
  QUERNEL_CHECK(n.expect_per_tensor(x));
  const Quantization& q = n.in_quantization(weights);
  if (q.block > 0 || q.scales.empty() || !has_one_zero(q)) return n.no_kernel();
  ProductOperands p{n.in(x), n.in(weights), 0, 0, DType::kI32};
  int64_t zero_x = n.in_quantization(x).zero(), zero_w = q.zero();
  if (n.dtype(p.weights) == DType::kI4) p.weights = n.build.cast(p.weights, DType::kI8);
  if (n.dtype(p.x) == DType::kI16 || n.dtype(p.weights) == DType::kI16) {
    if (zero_x != 0 || zero_w != 0) return n.refuse("expected zero points of 0 for int16");
    // Products of int16 and int8 have 23 bits.
    bool fits = n.dtype(p.weights) != DType::kI16 && terms < (1 << 8);
    p.accumulator = fits ? DType::kI32 : DType::kI64;
    DType operand = fits ? DType::kI16 : DType::kI64;
    p.x = n.build.cast(p.x, operand);
    p.weights = n.build.cast(p.weights, operand);
    return p;
  }
  if (n.dtype(p.weights) == DType::kU8 && zero_w == 128) {
    p.weights = as_signed(n, p.weights);
    zero_w = 0;
  }
  if (zero_w == 0) {
    p.fill = p.correction = zero_x;
    return p;
  }
  auto centred_16 = [&](ValueId v, int64_t zero) {
    return n.binary(BinaryOp::k_sub, n.build.cast(v, DType::kI16), static_cast<double>(zero));
  };
  p.x = centred_16(p.x, zero_x);
  p.weights = centred_16(p.weights, zero_w);
  return p;
}

std::vector<Multiplier> product_multipliers(NodeImport& n, int x, int weights, ScaleProduct product,
                                            bool is_short) {
  float scale_x = n.in_quantization(x).scale(), scale_y = n.out_quantization(0).scale();
  std::vector<Multiplier> multipliers;
  for (float scale_w : n.in_quantization(weights).scales) {
    double both = product == ScaleProduct::kFloat
                      ? static_cast<double>(scale_x * scale_w)
                      : static_cast<double>(scale_x) * static_cast<double>(scale_w);
    double m = both / static_cast<double>(scale_y);
    multipliers.push_back(is_short       ? short_multiplier(m)
                          : in_floats(n) ? float_multiplier(scale_x * scale_w / scale_y)
                                         : make_multiplier(m, n.file.rounding));
  }
  return multipliers;
}

Status finish_product(NodeImport& n, ValueId sums, int x, int weights, int bias,
                      ActivationFunctionType function) {
  using Op = tflite::BuiltinOperator;
  bool int16 = n.dtype(n.in(x)) == DType::kI16;
  bool has_bias = bias >= 0 && n.has(bias);
  if (n.out_dtype(0) != n.dtype(n.in(x))) return n.no_kernel();
  QUERNEL_CHECK(n.expect_output_per_tensor());
  if (has_bias) {
    QUERNEL_CHECK(n.expect_dtypes(bias, {DType::kI32, DType::kI64}));
    if (int16) sums = n.build.cast(sums, DType::kI64);
    sums = n.binary(BinaryOp::k_add, sums, n.build.cast(n.in(bias), n.dtype(sums)));
  }
  bool dense = n.kind == Op::FULLY_CONNECTED || n.kind == Op::BATCH_MATMUL;
  bool in_float =
      (dense && n.in_quantization(weights).is_per_tensor()) || n.dtype(n.in(weights)) == DType::kU8;
  bool is_short = int16 && (has_bias || n.kind != Op::FULLY_CONNECTED);
  // TensorFlow Lite Micro has sums of 64 bits, but for a bias of 32.
  if (int16 && n.kind == Op::FULLY_CONNECTED && n.file.rounding == IntegerRounding::kDouble)
    is_short = !has_bias || n.dtype(n.in(bias)) == DType::kI64;
  return n.output(requantize(
      n, sums,
      product_multipliers(n, x, weights, in_float ? ScaleProduct::kFloat : ScaleProduct::kDouble, is_short),
      function));
}

Status quantized_convolution(NodeImport& n, const Convolution& c) {
  if (!n.is_quantized(c.input) || !n.is_quantized(c.weights)) return n.no_kernel();
  const Quantization& q = n.in_quantization(c.weights);
  bool depthwise = c.layout == WeightLayout::kDepthwise;
  if (!q.is_per_tensor() && (static_cast<int64_t>(q.scales.size()) != c.channels ||
                             q.axis != (depthwise ? n.rank(n.in(c.weights)) - 1 : 0)))
    return n.refuse("expected a weight scale for each output channel");
  int64_t terms = 1;
  for (int64_t k : c.window.kernel) terms *= k;
  if (!depthwise) terms *= n.shape(n.in(c.weights)).back().value();
  QUERNEL_TRY(ProductOperands p, product_operands(n, c.input, c.weights, terms));
  ValueId x = window_input(n, p.x, c, static_cast<double>(p.fill));
  ValueId weights = window_weights(n, p.weights, c);
  ValueId y = contract_windows(n, x, weights, c.window, c.layout, c.groups, p.accumulator);
  if (p.correction != 0) {
    std::vector<int64_t> axes = depthwise ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{1, 2, 3};
    ValueId sums = n.build.reduce(OpKind::k_reduce_sum, n.build.cast(p.weights, DType::kI32), axes, false);
    y = n.binary(BinaryOp::k_sub, y, n.binary(BinaryOp::k_mul, sums, static_cast<double>(p.correction)));
  }
  return finish_product(n, y, c.input, c.weights, c.bias, c.activation);
}

}  // namespace quernel::tflite_import
