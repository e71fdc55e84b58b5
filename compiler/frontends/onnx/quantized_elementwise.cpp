// com.microsoft's quantised operators that are a float operator between two conversions.
#include "frontends/onnx/activation.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/pool.h"
#include "frontends/onnx/quantize.h"

namespace quernel::onnx_import {
namespace {

// Operand i, whose scale and zero point follow it.
Expected<ValueId> float_operand(NodeImport& n, int i) {
  QUERNEL_TRY(Quantization q, per_tensor(n, i + 1));
  return dequantize(n, n.in(i), q);
}

// y with the scale and zero point at i and i + 1, in the first operand's dtype.
Status quantized_output(NodeImport& n, ValueId y, int i) {
  QUERNEL_TRY(Quantization q, per_tensor(n, i));
  return n.output(quantize(n, y, q, n.dtype(n.in(0))));
}

Status import_binary(NodeImport& n, BinaryOp op) {
  QUERNEL_TRY(ValueId a, float_operand(n, 0));
  QUERNEL_TRY(ValueId b, float_operand(n, 3));
  return quantized_output(n, n.binary(op, a, b), 6);
}

Status check_channels_first(NodeImport& n) {
  if (n.attr_int("channels_last", 0) == 0) return {};
  return n.refuse("attribute 'channels_last': only 0 is supported");
}

}  // namespace

Status import_qlinear_add(NodeImport& n) { return import_binary(n, BinaryOp::k_add); }
Status import_qlinear_mul(NodeImport& n) { return import_binary(n, BinaryOp::k_mul); }

Status import_qlinear_sigmoid(NodeImport& n) {
  QUERNEL_TRY(ValueId x, float_operand(n, 0));
  return quantized_output(n, sigmoid(n, x), 3);
}

Status import_qlinear_leaky_relu(NodeImport& n) {
  QUERNEL_TRY(ValueId x, float_operand(n, 0));
  return quantized_output(n, leaky_relu(n, x, n.attr_float("alpha", 0.01f)), 3);
}

// "opset" says whether the softmax is over one axis (13) or over all from it on.
Status import_qlinear_softmax(NodeImport& n) {
  int64_t opset = n.attr_int("opset", 0), rank = n.rank(n.in(0));
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -1), static_cast<int>(rank)));
  std::vector<int64_t> axes{axis};
  while (opset < 13 && axes.back() + 1 < rank) axes.push_back(axes.back() + 1);
  QUERNEL_TRY(ValueId x, float_operand(n, 0));
  return quantized_output(n, softmax(n, x, axes), 3);
}

Status import_qlinear_global_average_pool(NodeImport& n) {
  QUERNEL_CHECK(check_channels_first(n));
  QUERNEL_TRY(std::vector<int64_t> axes, spatial_axes(n));
  QUERNEL_TRY(ValueId x, float_operand(n, 0));
  return quantized_output(n, n.mean(x, axes, true), 3);
}

Status import_qlinear_average_pool(NodeImport& n) {
  QUERNEL_CHECK(check_channels_first(n));
  QUERNEL_TRY(ValueId x, float_operand(n, 0));
  QUERNEL_TRY(ValueId y, average_pool(n, x));
  return quantized_output(n, y, 3);
}

// The result's scale and zero point come first, then each operand with its own.
Status import_qlinear_concat(NodeImport& n) {
  if (n.input_count() < 5 || n.input_count() % 3 != 2)
    return n.invalid("expected a scale, a zero point and triples of operands, found " +
                     std::to_string(n.input_count()) + " inputs");
  QUERNEL_TRY(Quantization out, per_tensor(n, 0));
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 1), n.rank(n.in(2))));
  std::vector<ValueId> parts;
  for (int i = 2; i < n.input_count(); i += 3) {
    QUERNEL_TRY(ValueId x, float_operand(n, i));
    parts.push_back(quantize(n, x, out, n.dtype(n.in(2))));
  }
  return n.output(n.build.cat(parts, axis));
}

}  // namespace quernel::onnx_import
