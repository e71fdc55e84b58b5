// Constants, and operators on shapes, which are known while importing.
#include <cmath>
#include <limits>

#include "frontends/onnx/operators.h"
#include "graph/dim_values.h"

namespace quernel::onnx_import {
namespace {

constexpr int64_t kStashFloat = 1, kStashDouble = 11;  // element types that Range may compute f16 and bf16 in
constexpr int64_t kMaxMaterialized = int64_t{1} << 24;  // elements of a constant made by the importer

Tensor typed_scalar(float value) { return make_tensor<float>(DType::kF32, {}, {value}); }

}  // namespace

Expected<Tensor> read_constant(const onnx::NodeProto& node, TensorSource& source, const Location& place) {
  if (node.attribute_size() != 1)
    return invalid_input(
        "expected one attribute with the value, found " + std::to_string(node.attribute_size()), place);
  const onnx::AttributeProto& a = node.attribute(0);
  if (a.name() == "value_string" || a.name() == "value_strings")
    return unsupported("string constants are not supported", place);
  if (a.name() == "sparse_value")
    return unsupported("attribute 'sparse_value': sparse constants are not supported", place);
  if (a.name() == "value") return read_tensor(a.t(), source, place);
  if (a.name() == "value_float") return typed_scalar(a.f());
  if (a.name() == "value_int") return i64_tensor({}, {a.i()});
  if (a.name() == "value_floats")
    return f32_tensor({a.floats_size()}, {a.floats().begin(), a.floats().end()});
  if (a.name() == "value_ints") return i64_tensor({a.ints_size()}, {a.ints().begin(), a.ints().end()});
  return invalid_input("expected one of the value attributes, found '" + a.name() + "'", place);
}

Status import_constant(NodeImport& n) {
  QUERNEL_TRY(Tensor value, read_constant(n.proto, n.source, n.build.location()));
  n.ignore_attribute(n.proto.attribute(0).name().c_str());
  return n.output(n.build.constant(std::move(value)));
}

// A scalar that is expanded, so that its size costs nothing.
Status import_constant_of_shape(NodeImport& n) {
  QUERNEL_TRY(Shape dims, n.dims_in(0, "shape"));
  for (const Dim& d : dims)
    if (always_lt(d, 0)) return n.invalid("expected dims of at least 0, found " + to_string(d));
  if (is_static(dims) && !element_count(static_dims(dims)))
    return n.refuse("a tensor of more elements than fit 63 bits");
  Tensor value = typed_scalar(0);
  if (const onnx::AttributeProto* a = n.attribute("value")) {
    QUERNEL_TRY(value, read_tensor(a->t(), n.source, n.build.location()));
    if (value.count() != 1)
      return n.invalid("attribute 'value': expected one element, found " + std::to_string(value.count()));
    value.dims = {};
  }
  return n.output(n.build.broadcast_to(n.build.constant(std::move(value)), dims));
}

Status import_shape(NodeImport& n) {
  int64_t rank = n.rank(n.in(0));
  int64_t start = 0, end = rank;
  if (n.opset >= 15) {
    start = n.attr_int("start", 0);
    end = n.attr_int("end", rank);
  }
  auto clamp = [&](int64_t v) { return std::min(std::max<int64_t>(v < 0 ? v + rank : v, 0), rank); };
  start = clamp(start);
  end = clamp(end);
  Shape shape = n.shape(n.in(0));
  Attributes attributes;
  if (start < end) attributes.shape.assign(shape.begin() + start, shape.begin() + end);
  return n.output(n.build.add(OpKind::k_dims, {}, std::move(attributes)));
}

Status import_size(NodeImport& n) { return n.output(n.number(DType::kI64, element_count(n.shape(n.in(0))))); }

namespace {

// An element that follows from free dims, which may have become a float.
std::optional<Dim> dim_value(NodeImport& n, ValueId v) {
  if (const Tensor* known = is_float(n.dtype(v)) ? n.constant(v) : nullptr) {
    constexpr double kMaxExact = 1 << 24;
    double value = known->count() == 1 ? element_as_f64(*known, 0) : NAN;
    if (!(std::abs(value) <= kMaxExact) || value != std::floor(value)) return std::nullopt;
    return Dim(static_cast<int64_t>(value));
  }
  for (const Node* node = n.build.graph().def(v);
       node && is_float(n.dtype(v)) && (node->op == OpKind::k_cast || node->op == OpKind::k_reshape);
       node = n.build.graph().def(v))
    v = node->inputs[0];
  std::optional<Shape> value = dim_values(n.build.graph(), v);
  return value && value->size() == 1 ? std::optional((*value)[0]) : std::nullopt;
}

// A range whose bounds follow from free dims; nullopt where they do not.
std::optional<ValueId> range_of_dims(NodeImport& n) {
  std::optional<Dim> bounds[3];
  bool known = true;
  for (int i = 0; i < 3; ++i) {
    bounds[i] = dim_value(n, n.in(i));
    if (!bounds[i]) return std::nullopt;
    known = known && bounds[i]->is_const();
  }
  if (known || !bounds[2]->is_const() || bounds[2]->value() == 0) return std::nullopt;
  int64_t delta = bounds[2]->value();
  Dim distance = delta > 0 ? *bounds[1] - *bounds[0] : *bounds[0] - *bounds[1];
  Dim count = max(ceildiv(distance, delta > 0 ? delta : -delta), 0);
  ValueId steps = n.positions(DType::kI64, count);
  ValueId scaled = delta == 1 ? steps : n.binary(BinaryOp::k_mul, steps, n.number(DType::kI64, delta));
  ValueId values =
      *bounds[0] == Dim(0) ? scaled : n.binary(BinaryOp::k_add, scaled, n.number(DType::kI64, *bounds[0]));
  return n.build.cast(values, n.dtype(n.in(0)));
}

// How many integers a range has; exact, where f64 is not.
uint64_t integers_between(const Tensor& from, const Tensor& to, const Tensor& step) {
  int64_t start = element_as_i64(from, 0), limit = element_as_i64(to, 0), delta = element_as_i64(step, 0);
  auto bits = [](int64_t v) { return static_cast<uint64_t>(v); };
  bool is_u64 = from.dtype == DType::kU64, down = !is_u64 && delta < 0;
  if (down) std::swap(start, limit);
  if (is_u64 ? bits(limit) <= bits(start) : limit <= start) return 0;
  uint64_t stride = down ? 0 - bits(delta) : bits(delta);
  return (bits(limit) - bits(start) - 1) / stride + 1;
}

}  // namespace

Status import_range(NodeImport& n) {
  int64_t stash = n.opset < 27 ? kStashDouble : n.attr_int("stash_type", kStashFloat);
  bool narrow = n.dtype(n.in(0)) == DType::kF16 || n.dtype(n.in(0)) == DType::kBF16;
  if (narrow && stash != kStashFloat && stash != kStashDouble)
    return n.invalid("attribute 'stash_type': expected 1 (float) or 11 (double), found " +
                     std::to_string(stash));
  if (std::optional<ValueId> range = range_of_dims(n)) return n.output(*range);
  Tensor bounds[3];
  static const char* const kNames[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    QUERNEL_TRY(bounds[i], n.constant_in(i, kNames[i]));
    if (bounds[i].count() != 1 || bounds[i].dtype != bounds[0].dtype)
      return n.invalid("expected scalars of one dtype");
  }
  DType dtype = bounds[0].dtype;
  if (dtype >= DType::kBool)
    return n.refuse("expected a numeric range, found " + std::string(to_string(dtype)));
  double start = element_as_f64(bounds[0], 0), limit = element_as_f64(bounds[1], 0),
         delta = element_as_f64(bounds[2], 0);
  if (delta == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta))
    return n.invalid("expected a finite range with a delta other than 0");
  double wanted = std::max(0.0, std::ceil((limit - start) / delta));
  if (!is_float(dtype)) wanted = static_cast<double>(integers_between(bounds[0], bounds[1], bounds[2]));
  if (!(wanted <= static_cast<double>(kMaxMaterialized)))
    return n.refuse("a range of more than 2^24 elements");
  int64_t count = static_cast<int64_t>(wanted);
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, count)));
  for (int64_t i = 0; i < count; ++i) {
    double value = start + static_cast<double>(i) * delta;
    if (narrow && stash == kStashFloat) value = static_cast<float>(value);
    if (is_float(dtype))
      store_f64(dtype, data.data(), i, value);
    else
      store_i64(dtype, data.data(), i, element_as_i64(bounds[0], 0) + i * element_as_i64(bounds[2], 0));
  }
  return n.output(n.build.constant({dtype, {count}, Bytes::own(std::move(data))}));
}

Status import_eye_like(NodeImport& n) {
  Shape shape = n.shape(n.in(0));
  int64_t diagonal = n.attr_int("k", 0);
  DType dtype = n.dtype(n.in(0));
  if (n.attribute("dtype")) {
    QUERNEL_TRY(dtype, dtype_from_onnx(static_cast<int>(n.attr_int("dtype", 0)), n.build.location()));
  }
  if (shape.size() != 2) return n.invalid("expected a matrix, found " + to_string(shape));
  ValueId row =
      n.binary(BinaryOp::k_add, n.positions(DType::kI64, shape[0], 1), static_cast<double>(diagonal));
  return n.output(n.build.cast(n.binary(BinaryOp::k_eq, row, n.positions(DType::kI64, shape[1])), dtype));
}

namespace {

// The size of the result is found at run time: row-major positions of the elements, split into indices.
Status non_zero_of_computed(NodeImport& n) {
  ValueId x = n.in(0);
  Shape shape = n.shape(x);
  if (shape.empty()) return n.refuse("NonZero of a computed scalar is not supported");
  ValueId flat = n.build.reshape(x, {element_count(shape)});
  ValueId mask = n.dtype(x) == DType::kBool ? flat : n.binary(BinaryOp::k_ne, flat, 0.0);
  ValueId found = n.positions_where(mask);
  Dim count = n.shape(found)[0];
  std::vector<ValueId> rows;
  Shape strides = contiguous_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    ValueId index = found;
    if (!(strides[d] == Dim(1))) index = n.binary(BinaryOp::k_idiv, index, n.number(DType::kI64, strides[d]));
    if (d > 0) index = n.binary(BinaryOp::k_fmod, index, n.number(DType::kI64, max(shape[d], 1)));
    rows.push_back(n.build.reshape(index, {1, count}));
  }
  return n.output(n.build.cat(std::move(rows), 0));
}

}  // namespace

Status import_non_zero(NodeImport& n) {
  const Tensor* x = n.constant(n.in(0));
  if (!x) return non_zero_of_computed(n);
  std::vector<int64_t> found;  // linear positions
  for (int64_t i = 0; i < x->count(); ++i)
    if (element_as_f64(*x, i) != 0) found.push_back(i);
  if (static_cast<int64_t>(found.size()) > kMaxMaterialized / 4)
    return n.refuse("NonZero with more than 2^22 results is not supported");
  int64_t rank = static_cast<int64_t>(x->dims.size()), count = static_cast<int64_t>(found.size());
  std::vector<int64_t> positions(static_cast<size_t>(rank * count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t linear = found[static_cast<size_t>(i)];
    for (int64_t d = rank - 1; d >= 0; --d) {
      positions[static_cast<size_t>(d * count + i)] = linear % x->dims[static_cast<size_t>(d)];
      linear /= x->dims[static_cast<size_t>(d)];
    }
  }
  return n.output(n.build.constant(i64_tensor({rank, count}, positions)));
}

}  // namespace quernel::onnx_import
