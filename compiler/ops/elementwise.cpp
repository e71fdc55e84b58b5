// Elementwise ops and conversions: operands of equal shape (broadcasting is an explicit expand), result of
// that shape.
#include "ops/families.h"

namespace quernel::ops {
namespace {

Diagnostic wrong_dtype(const std::string& expected, const TensorType& found) {
  return unsupported("expected " + expected + ", found " + to_string(found));
}

Status check_same_shape(const Types& inputs) {
  for (size_t i = 1; i < inputs.size(); ++i)
    if (inputs[i].shape != inputs[0].shape)
      return invalid_input("expected operands of equal shape, found " + to_string(inputs[0]) + " and " +
                           to_string(inputs[i]));
  return {};
}

}  // namespace

Expected<TensorType> infer_unary(OpKind op, const Types& inputs, const Attributes&) {
  const TensorType& x = inputs[0];
  if (!is_compute(x.dtype)) return wrong_dtype("a compute dtype", x);
  TensorType result = x;
  switch (*unary_op(op)) {
    case UnaryOp::k_neg:
    case UnaryOp::k_abs:
    case UnaryOp::k_sign:
      if (x.dtype == DType::kBool && op != OpKind::k_neg) return wrong_dtype("a number", x);
      return result;
    case UnaryOp::k_not:
      if (x.dtype != DType::kBool) return wrong_dtype("bool", x);
      return result;
    case UnaryOp::k_bit_not:
      if (!is_integer(x.dtype)) return wrong_dtype("an integer", x);
      return result;
    case UnaryOp::k_is_nan:
    case UnaryOp::k_is_inf:
      if (!is_float(x.dtype)) return wrong_dtype("a float", x);
      result.dtype = DType::kBool;
      return result;
    default:
      if (!is_float(x.dtype)) return wrong_dtype("a float", x);
      return result;
  }
}

Expected<TensorType> infer_binary(OpKind op, const Types& inputs, const Attributes&) {
  QUERNEL_CHECK(check_same_shape(inputs));
  const TensorType &a = inputs[0], &b = inputs[1];
  if (a.dtype != b.dtype)
    return invalid_input("expected operands of one dtype, found " + to_string(a) + " and " + to_string(b));
  if (!is_compute(a.dtype)) return wrong_dtype("a compute dtype", a);
  TensorType result = a;
  BinaryOp binary = *binary_op(op);
  switch (binary) {
    case BinaryOp::k_and:
    case BinaryOp::k_or:
    case BinaryOp::k_xor:
      if (is_float(a.dtype)) return wrong_dtype("bool or an integer", a);
      return result;
    case BinaryOp::k_shl:
    case BinaryOp::k_shr:
      if (!is_integer(a.dtype)) return wrong_dtype("an integer", a);
      return result;
    case BinaryOp::k_threefry2x32:
      if (a.dtype != DType::kU64) return wrong_dtype("u64", a);
      return result;
    case BinaryOp::k_div:
      if (!is_float(a.dtype)) return wrong_dtype("a float (integers use idiv or fdiv)", a);
      return result;
    case BinaryOp::k_idiv:
    case BinaryOp::k_fdiv:
      if (!is_integer(a.dtype)) return wrong_dtype("an integer", a);
      return result;
    default:
      break;
  }
  if (is_comparison(binary))
    result.dtype = DType::kBool;
  else if (a.dtype == DType::kBool && binary != BinaryOp::k_max && binary != BinaryOp::k_min)
    return wrong_dtype("a number", a);
  return result;
}

Expected<TensorType> infer_ternary(OpKind op, const Types& inputs, const Attributes&) {
  QUERNEL_CHECK(check_same_shape(inputs));
  size_t first = op == OpKind::k_where ? 1 : 0;
  if (op == OpKind::k_where && inputs[0].dtype != DType::kBool)
    return wrong_dtype("a bool condition", inputs[0]);
  for (size_t i = first + 1; i < 3; ++i)
    if (inputs[i].dtype != inputs[first].dtype)
      return invalid_input("expected operands of one dtype, found " + to_string(inputs[first]) + " and " +
                           to_string(inputs[i]));
  if (op != OpKind::k_where && inputs[0].dtype == DType::kBool) return wrong_dtype("a number", inputs[0]);
  if (!is_compute(inputs[first].dtype)) return wrong_dtype("a compute dtype", inputs[first]);
  return inputs[first];
}

Expected<TensorType> infer_convert(OpKind op, const Types& inputs, const Attributes& attributes) {
  TensorType result{attributes.dtype, inputs[0].shape};
  if (op == OpKind::k_cast) return result;
  int from = bit_width(inputs[0].dtype), to = bit_width(attributes.dtype);
  if (from == to) return result;
  if (result.shape.empty())
    return invalid_input("expected a dtype of " + std::to_string(from) + " bits for a scalar, found " +
                         std::string(to_string(attributes.dtype)));
  Dim& last = result.shape.back();
  if (to < from) {
    last = last * Dim(from / to);
  } else {
    int ratio = to / from;
    if (!last.is_const() || last.value() % ratio != 0)
      return invalid_input("expected a last dim divisible by " + std::to_string(ratio) + ", found " +
                           to_string(last));
    last = last.value() / ratio;
  }
  return result;
}

Expected<TensorType> infer_source(OpKind op, const Types&, const Attributes& attributes) {
  if (op == OpKind::k_dims) return TensorType{DType::kI64, {static_cast<int64_t>(attributes.shape.size())}};
  const Tensor& t = attributes.tensor;
  std::optional<int64_t> count = element_count(t.dims);
  if (!count) return invalid_input("expected dims whose product fits 63 bits");
  if (byte_size(t.dtype, *count) != static_cast<int64_t>(t.bytes.size()))
    return invalid_input("expected " + std::to_string(byte_size(t.dtype, *count)) + " bytes of data, found " +
                         std::to_string(t.bytes.size()));
  return TensorType{t.dtype, make_shape(t.dims)};
}

}  // namespace quernel::ops
