// QuantizeLinear, DequantizeLinear and what quantised products are made of.
#include "frontends/onnx/quantize.h"

#include <algorithm>
#include <cmath>

#include "frontends/onnx/matmul.h"
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

bool is_f8(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }

// The reinterpretation of u8 as i8 that keeps the order: x - 128.
ValueId as_signed(NodeImport& n, ValueId x) {
  if (n.dtype(x) != DType::kU8) return x;
  Attributes to;
  to.dtype = DType::kI8;
  return n.build.add(OpKind::k_bitcast, {n.binary(BinaryOp::k_xor, x, 128.0)}, std::move(to));
}

// The one value of a constant (or absent) zero point.
std::optional<int64_t> uniform_zero(NodeImport& n, ValueId zero) {
  if (zero == kNoValue) return 0;
  const Tensor* known = n.constant(zero);
  if (!known || known->count() == 0) return std::nullopt;
  int64_t first = element_as_i64(*known, 0);
  for (int64_t i = 1; i < known->count(); ++i)
    if (element_as_i64(*known, i) != first) return std::nullopt;
  return first;
}

ValueId centred(NodeImport& n, ValueId x, ValueId zero) {
  x = n.build.cast(x, DType::kI16);
  return zero == kNoValue ? x : n.binary(BinaryOp::k_sub, x, n.build.cast(zero, DType::kI16));
}

Expected<DType> given_dtype(NodeImport& n, const char* name, DType fallback) {
  int64_t type = n.attr_int(name, 0);
  if (type == 0) return fallback;
  return dtype_from_onnx(static_cast<int>(type), n.build.location());
}

}  // namespace

ValueId dequantize(NodeImport& n, ValueId x, const Quantization& q) {
  ValueId scale = n.widen(q.scale);
  DType dtype = n.dtype(scale);
  if (q.zero == kNoValue) return n.binary(BinaryOp::k_mul, n.build.cast(x, dtype), scale);
  // Differences of integers are exact before the conversion.
  DType exact = is_float(n.dtype(x)) ? dtype : DType::kI32;
  ValueId difference = n.binary(BinaryOp::k_sub, n.build.cast(x, exact), n.build.cast(q.zero, exact));
  return n.binary(BinaryOp::k_mul, n.build.cast(difference, dtype), scale);
}

Quantization dynamic_quantization(NodeImport& n, ValueId x) {
  std::vector<int64_t> axes;
  for (int i = 0; i < n.rank(x); ++i) axes.push_back(i);
  ValueId top = n.binary(BinaryOp::k_max, n.build.reduce(OpKind::k_reduce_max, x, axes, false), 0.0),
          bottom = n.binary(BinaryOp::k_min, n.build.reduce(OpKind::k_reduce_min, x, axes, false), 0.0);
  ValueId scale = n.binary(BinaryOp::k_div, n.binary(BinaryOp::k_sub, top, bottom), 255.0);
  if (n.choices.zero_scale)
    scale = n.build.where(n.binary(BinaryOp::k_eq, scale, 0.0), n.scalar(n.dtype(scale), 1), scale);
  ValueId origin = n.unary(UnaryOp::k_neg, n.binary(BinaryOp::k_div, bottom, scale));
  return {scale, n.build.cast(n.unary(UnaryOp::k_round, origin), DType::kU8)};
}

ValueId quantize(NodeImport& n, ValueId x, const Quantization& q, DType dtype,
                 std::optional<DType> precision) {
  DType division = precision.value_or(n.dtype(q.scale));
  ValueId y = n.widen(n.binary(BinaryOp::k_div, n.build.cast(x, division), n.build.cast(q.scale, division)));
  if (is_f8(dtype)) return n.build.cast(y, dtype);
  y = n.unary(UnaryOp::k_round, y);
  if (q.zero != kNoValue) y = n.binary(BinaryOp::k_add, y, n.build.cast(q.zero, n.dtype(y)));
  if (dtype == DType::kI4 || dtype == DType::kU4) {
    double lowest = dtype == DType::kI4 ? -8 : 0;
    y = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, y, lowest), lowest + 15);
  }
  return n.build.cast(y, dtype);
}

Expected<ValueId> spread_parameter(NodeImport& n, ValueId parameter, const Shape& shape, int64_t axis,
                                   int64_t block) {
  if (parameter == kNoValue) return kNoValue;
  Shape own = n.shape(parameter);
  int rank = static_cast<int>(shape.size());
  if (element_count(own) == Dim(1)) return n.build.reshape(parameter, {});
  QUERNEL_TRY(axis, n.axis(axis, std::max(rank, 1)));
  if (block == 0) {
    if (rank < 1 || own != Shape{shape[axis]})
      return n.invalid("expected a scalar, or one value per element of dim " + std::to_string(axis) + " of " +
                       to_string(shape) + ", found " + to_string(own));
    Shape column(static_cast<size_t>(rank - axis), Dim(1));
    column[0] = shape[axis];
    return n.build.reshape(parameter, column);
  }
  if (block < 0 || static_cast<int>(own.size()) != rank)
    return n.invalid("expected blocks of at least one element, and scales of rank " + std::to_string(rank) +
                     ", found " + std::to_string(block) + " and " + to_string(own));
  QUERNEL_TRY(int64_t size, n.dim(shape[axis]));
  QUERNEL_TRY(int64_t blocks, n.dim(own[axis]));
  if (block > (int64_t{1} << 31) || blocks * block < size || (blocks - 1) * block >= size)
    return n.invalid("expected " + std::to_string(size) + " elements in blocks of " + std::to_string(block) +
                     ", found " + std::to_string(blocks) + " blocks");
  Shape split = own, grown, merged = own, first(own.size(), Dim(0));
  split.insert(split.begin() + axis + 1, Dim(1));
  grown = split;
  grown[axis + 1] = block;
  merged[axis] = blocks * block;
  ValueId repeated = n.build.reshape(n.build.broadcast_to(n.build.reshape(parameter, split), grown), merged);
  Shape last = merged;
  last[axis] = size;
  return blocks * block == size ? repeated : n.build.slice(repeated, first, last);
}

bool zero_is(NodeImport& n, ValueId zero, int64_t value) { return uniform_zero(n, zero) == value; }

IntegerProduct integer_product(NodeImport& n, ValueId left, ValueId left_zero, ValueId right,
                               ValueId right_zero, bool sums_left) {
  std::optional<int64_t> left_known = uniform_zero(n, left_zero), right_known = uniform_zero(n, right_zero);
  if (left_known && right_known) {
    bool shifts = n.dtype(right) == DType::kU8 && n.constant(right) && (sums_left || *right_known == 128);
    int64_t origin = shifts ? *right_known - 128 : *right_known;
    if (sums_left || origin == 0) return {left, shifts ? as_signed(n, right) : right, *left_known, origin};
  }
  return {centred(n, left, left_zero), centred(n, right, right_zero)};
}

namespace {

// Matrices, with sum (a - za) * (b - zb) = sum a * b - za * (sum b - k * zb) - zb * sum a. Unsigned weights
// are taken as signed ones, for targets that multiply unsigned by signed bytes.
Expected<ValueId> product_of_matrices(NodeImport& n, ValueId a, ValueId a_zero, ValueId b, ValueId b_zero) {
  bool shifts = n.dtype(b) == DType::kU8 && n.constant(b) != nullptr;
  auto wide = [&](ValueId v) { return n.build.cast(v, DType::kI32); };
  ValueId right = shifts ? as_signed(n, b) : b;
  QUERNEL_TRY(ValueId y, matmul(n, a, right, DType::kI32));
  auto sums = [&](ValueId v, int64_t axis) {
    return n.build.reduce(OpKind::k_reduce_sum, wide(v), {axis}, true);
  };
  ValueId zero = b_zero == kNoValue ? n.scalar(DType::kI32, 0) : wide(b_zero);
  if (shifts) zero = n.binary(BinaryOp::k_sub, zero, 128.0);
  bool centred = zero_is(n, b_zero, shifts ? 128 : 0);
  if (!zero_is(n, a_zero, 0)) {
    ValueId columns = sums(right, n.rank(b) - 2);
    if (!centred) {
      ValueId count = n.number(DType::kI32, n.shape(a).back());
      columns = n.binary(BinaryOp::k_sub, columns, n.binary(BinaryOp::k_mul, count, zero));
    }
    y = n.binary(BinaryOp::k_sub, y, n.binary(BinaryOp::k_mul, wide(a_zero), columns));
  }
  if (!centred) y = n.binary(BinaryOp::k_sub, y, n.binary(BinaryOp::k_mul, sums(a, n.rank(a) - 1), zero));
  return y;
}

}  // namespace

Expected<ValueId> integer_matmul(NodeImport& n, ValueId a, ValueId a_zero, ValueId b, ValueId b_zero) {
  for (ValueId v : {a, b})
    if (n.dtype(v) != DType::kI8 && n.dtype(v) != DType::kU8)
      return n.refuse("expected int8 or uint8 operands, found " + std::string(to_string(n.dtype(v))));
  // A zero point per row of the left operand is [M] or [..., M, 1]; one per column of the right one is [N] or
  // [..., 1, N].
  if (a_zero != kNoValue && n.rank(a_zero) == 1) {
    if (element_count(n.shape(a_zero)) == Dim(1))
      a_zero = n.build.reshape(a_zero, {});
    else
      a_zero = n.build.reshape(a_zero, {n.shape(a_zero)[0], 1});
  }
  if (b_zero != kNoValue && element_count(n.shape(b_zero)) == Dim(1)) b_zero = n.build.reshape(b_zero, {});
  if (n.rank(a) >= 2 && n.rank(b) >= 2) return product_of_matrices(n, a, a_zero, b, b_zero);
  return matmul(n, centred(n, a, a_zero), centred(n, b, b_zero), DType::kI32);
}

Expected<Quantization> per_tensor(NodeImport& n, int i) {
  Quantization q{n.in(i), n.in(i + 1)};
  for (ValueId* v : {&q.scale, &q.zero}) {
    if (*v == kNoValue) continue;
    if (element_count(n.shape(*v)) != Dim(1))
      return n.refuse("expected one scale and zero point per tensor, found " + to_string(n.shape(*v)));
    *v = n.build.reshape(*v, {});
  }
  return q;
}

Status import_quantize_linear(NodeImport& n) {
  bool contrib = n.proto.domain() == "com.microsoft";
  ValueId x = n.in(0);
  Shape shape = n.shape(x);
  int64_t axis = n.attr_int("axis", 1), block = contrib || n.opset >= 21 ? n.attr_int("block_size", 0) : 0;
  QUERNEL_TRY(DType declared, given_dtype(n, "output_dtype", DType::kU8));
  DType dtype = n.has(2) ? n.dtype(n.in(2)) : declared;
  if (n.has(2) && n.attr_int("output_dtype", 0) != 0 && declared != dtype)
    return n.invalid("attribute 'output_dtype': expected the zero point's type " +
                     std::string(to_string(dtype)) + ", found " + std::string(to_string(declared)));
  std::optional<DType> precision;
  if (n.attr_int("precision", 0) != 0) {
    QUERNEL_TRY(precision, given_dtype(n, "precision", DType::kF32));
  }
  if (n.attr_int("saturate", 1) == 0 && is_f8(dtype))
    return n.refuse("attribute 'saturate': float8 without saturation is not supported");
  if (is_f8(dtype) && n.has(2) && !zero_is(n, n.in(2), 0))
    return n.refuse("expected a zero point of 0 for float8");
  Quantization q;
  QUERNEL_TRY(q.scale, spread_parameter(n, n.in(1), shape, axis, block));
  if (!is_f8(dtype)) {
    QUERNEL_TRY(q.zero, spread_parameter(n, n.in(2), shape, axis, block));
  }
  if (!is_float(n.dtype(q.scale))) q.scale = n.build.cast(q.scale, DType::kF32);
  return n.output(quantize(n, x, q, dtype, precision));
}

namespace {

// The group sizes of elements that are in blocks, if they, their scales and zero points are those of a dequantize node.
std::optional<std::vector<int64_t>> groups_of_blocks(NodeImport& n, int64_t axis, int64_t block,
                                                     DType dtype) {
  const Shape& shape = n.shape(n.in(0));
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (block < 1 || axis < 0 || axis >= rank || dtype != DType::kF32) return std::nullopt;
  std::vector<TensorType> operands{n.build.graph().type(n.in(0)), n.build.graph().type(n.in(1))};
  if (n.has(2)) operands.push_back(n.build.graph().type(n.in(2)));
  Attributes attributes;
  attributes.ints.assign(shape.size(), 1);
  attributes.ints[static_cast<size_t>(axis)] = block;
  if (!op_info(OpKind::k_dequantize).infer(OpKind::k_dequantize, operands, attributes)) return std::nullopt;
  return attributes.ints;
}

}  // namespace

Status import_dequantize_linear(NodeImport& n) {
  bool contrib = n.proto.domain() == "com.microsoft";
  ValueId x = n.in(0);
  Shape shape = n.shape(x);
  int64_t axis = n.attr_int("axis", 1), block = contrib || n.opset >= 21 ? n.attr_int("block_size", 0) : 0;
  QUERNEL_TRY(DType dtype, given_dtype(n, "output_dtype", n.dtype(n.in(1))));
  if (std::optional<std::vector<int64_t>> groups = groups_of_blocks(n, axis, block, dtype))
    return n.output(n.build.dequantize(x, n.in(1), n.in(2), *std::move(groups)));
  Quantization q;
  QUERNEL_TRY(q.scale, spread_parameter(n, n.in(1), shape, axis, block));
  QUERNEL_TRY(q.zero, spread_parameter(n, n.in(2), shape, axis, block));
  return n.output(n.build.cast(dequantize(n, x, q), dtype));
}

Status import_dynamic_quantize_linear(NodeImport& n) {
  ValueId x = n.in(0);
  Quantization q = dynamic_quantization(n, x);
  return n.set_outputs({quantize(n, x, q, DType::kU8), q.scale, q.zero});
}

}  // namespace quernel::onnx_import
