// Quantised matrix products and convolutions: integers inside, one rescaling at the end.
#include "frontends/onnx/conv.h"
#include "frontends/onnx/matmul.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/quantize.h"

namespace quernel::onnx_import {
namespace {

// A per-tensor value as it is; one per output channel as [C,1,...] of rank `rank` - 1.
Expected<ValueId> per_channel(NodeImport& n, ValueId v, const Dim& channels, int rank) {
  if (v == kNoValue) return v;
  if (element_count(n.shape(v)) == Dim(1)) return n.build.reshape(v, {});
  if (n.shape(v) != Shape{channels})
    return n.invalid("expected one value, or one per output channel, found " + to_string(n.shape(v)));
  Shape column(static_cast<size_t>(rank) - 1, Dim(1));
  column[0] = channels;
  return n.build.reshape(v, column);
}

// A scale of a product's operand: one value, one per row ([M], left) or column ([N], right), or ready to
// broadcast.
ValueId product_scale(NodeImport& n, ValueId scale, bool left) {
  Shape shape = n.shape(scale);
  scale = n.widen(scale);
  if (element_count(shape) == Dim(1)) return n.build.reshape(scale, {});
  return left && shape.size() == 1 ? n.build.reshape(scale, {shape[0], 1}) : scale;
}

// acc * multiplier, rounded half to even, around the zero point.
ValueId requantize(NodeImport& n, ValueId accumulated, ValueId multiplier, ValueId zero, DType dtype) {
  ValueId y = n.binary(BinaryOp::k_mul, n.build.cast(accumulated, DType::kF32), multiplier);
  y = n.unary(UnaryOp::k_round, y);
  if (zero != kNoValue) y = n.binary(BinaryOp::k_add, y, n.build.cast(zero, DType::kF32));
  return n.build.cast(y, dtype);
}

Expected<ValueId> integer_conv(NodeImport& n, ValueId x, ValueId x_zero, ValueId w, ValueId w_zero) {
  for (ValueId v : {x, w})
    if (n.dtype(v) != DType::kI8 && n.dtype(v) != DType::kU8)
      return n.invalid("expected int8 or uint8 operands, found " + std::string(to_string(n.dtype(v))));
  int rank = n.rank(w);
  if (rank < 3) return n.invalid("expected weights [M,C/group,K...], found " + to_string(n.shape(w)));
  if (x_zero != kNoValue) {
    if (element_count(n.shape(x_zero)) != Dim(1))
      return n.invalid("expected one zero point for the input, found " + to_string(n.shape(x_zero)));
    x_zero = n.build.reshape(x_zero, {});
  }
  QUERNEL_TRY(w_zero, per_channel(n, w_zero, n.shape(w)[0], rank + 1));
  bool grouped = n.attr_int("group", 1) != 1;
  IntegerProduct p = integer_product(n, x, x_zero, w, w_zero, !grouped);
  auto fill = static_cast<double>(p.left_zero);
  QUERNEL_TRY(ValueId y, convolve(n, p.left, p.right, fill, DType::kI32));
  auto zero = [](int64_t value) { return static_cast<double>(value); };
  std::vector<int64_t> axes;
  for (int i = 1; i < rank; ++i) axes.push_back(i);
  if (p.left_zero != 0) {
    ValueId sums = n.build.reduce(OpKind::k_reduce_sum, n.build.cast(p.right, DType::kI32), axes, false);
    QUERNEL_TRY(y, add_bias(n, y, n.binary(BinaryOp::k_mul, sums, zero(-p.left_zero))));
  }
  if (p.right_zero == 0) return y;
  // The windows' sums, by weights of 1.
  QUERNEL_TRY(std::vector<int64_t> ones, n.dims(w));
  ones[0] = 1;
  int64_t count = 1;
  for (int64_t d : ones) count *= d;
  QUERNEL_TRY(ValueId sums, convolve(n, p.left, n.full(DType::kI8, make_shape(ones), 1), fill, DType::kI32));
  sums = n.binary(BinaryOp::k_sub, sums, zero(count * p.left_zero));
  return n.binary(BinaryOp::k_sub, y, n.binary(BinaryOp::k_mul, sums, zero(p.right_zero)));
}

}  // namespace

Status import_matmul_integer(NodeImport& n) {
  QUERNEL_TRY(ValueId y, integer_matmul(n, n.in(0), n.in(2), n.in(1), n.in(3)));
  return n.output(y);
}

Status import_conv_integer(NodeImport& n) {
  QUERNEL_TRY(ValueId y, integer_conv(n, n.in(0), n.in(2), n.in(1), n.in(3)));
  return n.output(y);
}

Status import_qlinear_matmul(NodeImport& n) {
  QUERNEL_TRY(ValueId y, integer_matmul(n, n.in(0), n.in(2), n.in(3), n.in(5)));
  QUERNEL_TRY(Quantization out, per_tensor(n, 6));
  ValueId multiplier =
      n.binary(BinaryOp::k_div,
               n.binary(BinaryOp::k_mul, product_scale(n, n.in(1), true), product_scale(n, n.in(4), false)),
               n.widen(out.scale));
  return n.output(requantize(n, y, multiplier, out.zero, n.dtype(out.zero)));
}

Status import_qlinear_conv(NodeImport& n) {
  if (n.proto.domain() == "com.microsoft" && n.attr_int("channels_last", 0) != 0)
    return n.refuse("attribute 'channels_last': only 0 is supported");
  QUERNEL_TRY(ValueId y, integer_conv(n, n.in(0), n.in(2), n.in(3), n.in(5)));
  if (n.has(8)) {
    QUERNEL_TRY(y, add_bias(n, y, n.in(8)));
  }
  QUERNEL_TRY(Quantization in, per_tensor(n, 1));
  QUERNEL_TRY(Quantization out, per_tensor(n, 6));
  QUERNEL_TRY(ValueId w_scale, per_channel(n, n.in(4), n.shape(n.in(3))[0], n.rank(y)));
  ValueId multiplier = n.binary(BinaryOp::k_div, n.binary(BinaryOp::k_mul, in.scale, w_scale), out.scale);
  return n.output(requantize(n, y, multiplier, out.zero, n.dtype(out.zero)));
}

// ---- com.microsoft

// alpha * op(A) op(B) + C with integer C; quantised again where the node has an output scale, else float.
Status import_qgemm(NodeImport& n) {
  double alpha = n.attr_float("alpha", 1);
  ValueId a = n.in(0), b = n.in(3);
  if (n.rank(a) != 2 || n.rank(b) != 2)
    return n.invalid("expected matrices, found " + to_string(n.shape(a)) + " and " + to_string(n.shape(b)));
  if (n.attr_int("transA", 0) != 0) a = n.build.permute(a, {1, 0});
  if (n.attr_int("transB", 0) != 0) b = n.build.permute(b, {1, 0});
  QUERNEL_TRY(ValueId y, integer_matmul(n, a, n.in(2), b, n.in(5)));
  if (n.has(6)) y = n.binary(BinaryOp::k_add, y, n.build.broadcast_to(n.in(6), n.shape(y)));
  ValueId scale = n.binary(
      BinaryOp::k_mul,
      n.binary(BinaryOp::k_mul, product_scale(n, n.in(1), true), product_scale(n, n.in(4), false)), alpha);
  if (!n.has(7)) return n.output(n.binary(BinaryOp::k_mul, n.build.cast(y, DType::kF32), scale));
  QUERNEL_TRY(Quantization out, per_tensor(n, 7));
  DType dtype = out.zero == kNoValue ? n.dtype(n.in(0)) : n.dtype(out.zero);
  return n.output(requantize(n, y, n.binary(BinaryOp::k_div, scale, out.scale), out.zero, dtype));
}

Status import_matmul_integer_to_float(NodeImport& n) {
  QUERNEL_TRY(ValueId y, integer_matmul(n, n.in(0), n.in(4), n.in(1), n.in(5)));
  ValueId scale =
      n.binary(BinaryOp::k_mul, product_scale(n, n.in(2), true), product_scale(n, n.in(3), false));
  y = n.binary(BinaryOp::k_mul, n.build.cast(y, DType::kF32), scale);
  if (n.has(6)) y = n.binary(BinaryOp::k_add, y, n.widen(n.in(6)));
  return n.output(n.build.cast(y, n.dtype(n.in(2))));
}

// A is quantised here, as DynamicQuantizeLinear does.
Status import_dynamic_quantize_matmul(NodeImport& n) {
  ValueId a = n.in(0);
  Quantization q = dynamic_quantization(n, a);
  QUERNEL_TRY(ValueId y, integer_matmul(n, quantize(n, a, q, DType::kU8), q.zero, n.in(1), n.in(3)));
  y = n.binary(BinaryOp::k_mul, n.build.cast(y, DType::kF32),
               n.binary(BinaryOp::k_mul, q.scale, product_scale(n, n.in(2), false)));
  if (n.has(4)) y = n.binary(BinaryOp::k_add, y, n.in(4));
  return n.output(y);
}

}  // namespace quernel::onnx_import
