#include "frontends/onnx/node_import.h"

#include <algorithm>
#include <numeric>

#include "graph/dim_values.h"

namespace quernel::onnx_import {

using onnx::AttributeProto;

Shape NodeImport::shape(ValueId v) const { return v < 0 ? Shape() : build.graph().shape(v); }

Expected<int64_t> NodeImport::dim(const Dim& d) {
  if (d.is_const()) return d.value();
  std::vector<Symbol> symbols;
  d.collect_symbols(symbols);
  for (const Symbol& s : symbols) free_dims.insert(s.name);
  return refuse("expected a fixed dim, found free dim " + to_string(d),
                "fix it with --dim " + symbols.front().name + "=N");
}

Expected<std::vector<int64_t>> NodeImport::dims(ValueId v) {
  std::vector<int64_t> result;
  for (const Dim& d : shape(v)) {
    QUERNEL_TRY(int64_t value, dim(d));
    result.push_back(value);
  }
  return result;
}

// ---- operands as constants

Expected<Tensor> NodeImport::constant_in(int i, std::string_view what) {
  const Tensor* tensor = constant(in(i));
  if (!tensor) want_value(in(i));
  if (!tensor)
    return refuse("expected operand " + std::to_string(i) + " (" + std::string(what) +
                      ") to be known at compile time, found a computed value" +
                      (i < proto.input_size() ? " '" + proto.input(i) + "'" : ""),
                  "fold it into the model, or fix the input shapes it is computed from");
  return *tensor;
}

Expected<std::vector<int64_t>> NodeImport::ints_in(int i, std::string_view what) {
  QUERNEL_TRY(Tensor tensor, constant_in(i, what));
  if (tensor.dims.size() > 1)
    return invalid("expected " + std::string(what) + " of rank 1, found rank " +
                   std::to_string(tensor.dims.size()));
  if (is_float(tensor.dtype))
    return invalid("expected integer " + std::string(what) + ", found " +
                   std::string(to_string(tensor.dtype)));
  std::vector<int64_t> values(static_cast<size_t>(tensor.count()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = element_as_i64(tensor, static_cast<int64_t>(k));
  return values;
}

Expected<Shape> NodeImport::dims_in(int i, std::string_view what) {
  ValueId v = in(i);
  if (has(i) && !constant(v) && rank(v) <= 1 && !is_float(dtype(v)))
    if (std::optional<Shape> values = dim_values(build.graph(), v)) return *values;
  QUERNEL_TRY(std::vector<int64_t> values, ints_in(i, what));
  return make_shape(values);
}

Expected<std::vector<double>> NodeImport::floats_in(int i, std::string_view what) {
  QUERNEL_TRY(Tensor tensor, constant_in(i, what));
  if (tensor.dims.size() > 1)
    return invalid("expected " + std::string(what) + " of rank 1, found rank " +
                   std::to_string(tensor.dims.size()));
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = element_as_f64(tensor, static_cast<int64_t>(k));
  return values;
}

Expected<int64_t> NodeImport::int_in(int i, std::string_view what) {
  QUERNEL_TRY(std::vector<int64_t> values, ints_in(i, what));
  if (values.size() != 1)
    return invalid("expected " + std::string(what) + " of one element, found " +
                   std::to_string(values.size()));
  return values[0];
}

Expected<double> NodeImport::float_in(int i, std::string_view what) {
  QUERNEL_TRY(std::vector<double> values, floats_in(i, what));
  if (values.size() != 1)
    return invalid("expected " + std::string(what) + " of one element, found " +
                   std::to_string(values.size()));
  return values[0];
}

// ---- attributes

const AttributeProto* NodeImport::attribute(const char* name) {
  used_attributes_.insert(name);
  for (const AttributeProto& a : proto.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

namespace {
// Files of the first IR versions leave the type out.
bool has_type(const AttributeProto& a, AttributeProto::AttributeType type) {
  return a.type() == type || a.type() == AttributeProto::UNDEFINED;
}
}  // namespace

#define QUERNEL_EXPECT_TYPE(a, type_, words)                                                        \
  if (!has_type(*(a), AttributeProto::type_)) {                                                     \
    build.fail(invalid("attribute '" + (a)->name() + "': expected " words ", found another type")); \
    return {};                                                                                      \
  }

int64_t NodeImport::attr_int(const char* name, int64_t fallback) {
  const AttributeProto* a = attribute(name);
  if (!a) return fallback;
  QUERNEL_EXPECT_TYPE(a, INT, "an integer");
  return a->i();
}

double NodeImport::attr_float(const char* name, double fallback) {
  const AttributeProto* a = attribute(name);
  if (!a) return fallback;
  QUERNEL_EXPECT_TYPE(a, FLOAT, "a float");
  return a->f();
}

std::string NodeImport::attr_string(const char* name, const char* fallback) {
  const AttributeProto* a = attribute(name);
  if (!a) return fallback;
  QUERNEL_EXPECT_TYPE(a, STRING, "a string");
  return a->s();
}

std::optional<std::vector<int64_t>> NodeImport::attr_ints(const char* name) {
  const AttributeProto* a = attribute(name);
  if (!a) return std::nullopt;
  QUERNEL_EXPECT_TYPE(a, INTS, "a list of integers");
  return std::vector<int64_t>(a->ints().begin(), a->ints().end());
}

std::optional<std::vector<double>> NodeImport::attr_floats(const char* name) {
  const AttributeProto* a = attribute(name);
  if (!a) return std::nullopt;
  QUERNEL_EXPECT_TYPE(a, FLOATS, "a list of floats");
  return std::vector<double>(a->floats().begin(), a->floats().end());
}
#undef QUERNEL_EXPECT_TYPE

std::vector<std::string> NodeImport::unused_attributes() const {
  std::vector<std::string> names;
  for (const AttributeProto& a : proto.attribute())
    if (!used_attributes_.count(a.name())) names.push_back(a.name());
  return names;
}

Expected<std::optional<std::vector<int64_t>>> NodeImport::axes(int operand, int64_t since, const char* name) {
  if (opset < since) return attr_ints(name);
  if (!has(operand)) return std::optional<std::vector<int64_t>>();
  QUERNEL_TRY(std::vector<int64_t> values, ints_in(operand, name));
  return std::optional(std::move(values));
}

Expected<int64_t> NodeImport::axis(int64_t value, int rank) const {
  if (value < -rank || value >= rank)
    return invalid("axis " + std::to_string(value) + " is out of range for rank " + std::to_string(rank));
  return value < 0 ? value + rank : value;
}

Expected<std::vector<int64_t>> NodeImport::axes_in_range(std::vector<int64_t> values, int rank) const {
  std::set<int64_t> seen;
  for (int64_t& value : values) {
    QUERNEL_TRY(value, axis(value, rank));
    if (!seen.insert(value).second) return invalid("axis " + std::to_string(value) + " is given twice");
  }
  return values;
}

// ---- emission

ValueId NodeImport::scalar(DType dtype, double value) {
  if (dtype >= DType::kI4)
    return build.fail(refuse("computing in " + std::string(to_string(dtype)) + " is not supported",
                             "cast to a wider type before"));
  return build.constant(scalar_tensor(dtype, value));
}

// A constant, or what costs nothing until it runs.
ValueId NodeImport::positions(DType dtype, const Dim& count, int trailing) {
  constexpr int64_t kMaxConstant = 1 << 12;
  ValueId numbers;
  if (count.is_const() && count.value() <= kMaxConstant) {
    std::vector<int64_t> values(static_cast<size_t>(count.value()));
    std::iota(values.begin(), values.end(), 0);
    numbers = build.constant(i64_tensor({count.value()}, values));
  } else {
    numbers = build.scan(OpKind::k_scan_sum, full(DType::kI64, {count}, 1), 0, true, false);
  }
  Shape shape(static_cast<size_t>(trailing) + 1, Dim(1));
  shape[0] = count;
  return build.reshape(build.cast(numbers, dtype), shape);
}

ValueId NodeImport::positions_where(ValueId mask) {
  if (!build.ok() || mask < 0) return kNoValue;
  Dim size = shape(mask)[0];
  ValueId count = build.reduce(OpKind::k_reduce_sum, build.cast(mask, DType::kI64), {0}, false);
  if (!build.ok()) return kNoValue;
  Symbol found{proto.output_size() > 0 ? proto.output(0) + "_count" : "count",
               0,
               size.bounds().hi,
               1,
               true,
               {size.upper_bound()}};
  Attributes attributes;
  attributes.ints = {0};
  attributes.descending = true;  // true before false, each in order
  attributes.shape = {build.graph().add_symbol(std::move(found), count)};
  return build.add(OpKind::k_argsort, {mask}, std::move(attributes));
}

ValueId NodeImport::widen(ValueId x) {
  return dtype(x) == DType::kF16 || dtype(x) == DType::kBF16 ? build.cast(x, DType::kF32) : x;
}

void NodeImport::compute_wide(int like) {
  DType given = dtype(in(like));
  for (ValueId& v : inputs) v = widen(v);
  if (dtype(in(like)) != given) rounding_ = given;
}

ValueId NodeImport::number(DType dtype, const Dim& value) {
  if (value.is_const()) return scalar(dtype, static_cast<double>(value.value()));
  Attributes attributes;
  attributes.shape = {value};
  return build.cast(build.reshape(build.add(OpKind::k_dims, {}, std::move(attributes)), {}), dtype);
}

ValueId NodeImport::mean(ValueId x, const std::vector<int64_t>& axes, bool keepdims) {
  Dim count = 1;
  for (int64_t axis : axes)
    if (axis < rank(x)) count *= shape(x)[static_cast<size_t>(axis)];
  // The sum of narrow integers need not fit them.
  bool sums_wide = !is_float(dtype(x)) && bit_width(dtype(x)) < 64;
  ValueId wide = sums_wide ? build.cast(x, DType::kI64) : widen(x);
  ValueId sum = build.reduce(OpKind::k_reduce_sum, wide, axes, keepdims);
  ValueId quotient =
      binary(is_float(dtype(x)) ? BinaryOp::k_div : BinaryOp::k_idiv, sum, number(dtype(sum), count));
  return build.cast(quotient, dtype(x));
}

// ---- ends

Status NodeImport::set_outputs(std::vector<ValueId> values) {
  QUERNEL_CHECK(build.take_status());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < values.size()) outputs[i] = values[i];
    if (rounding_ && outputs[i] >= 0 && dtype(outputs[i]) == DType::kF32)
      outputs[i] = build.cast(outputs[i], *rounding_);
    if (outputs[i] == kNoValue && wants_output(static_cast<int>(i)))
      return refuse(
          "output " + std::to_string(i) + " '" + proto.output(static_cast<int>(i)) + "' is not supported",
          "remove the uses of this output from the model");
  }
  std::vector<std::string> unknown = unused_attributes();
  if (!unknown.empty()) {
    std::string names;
    for (const std::string& name : unknown) names += (names.empty() ? "'" : ", '") + name + "'";
    return invalid(
        "unknown attribute " + names + " at opset " + std::to_string(opset),
        "the attribute may change the result, so it is not ignored; re-export the model, or remove it");
  }
  return {};
}

Diagnostic NodeImport::invalid(std::string message, std::string hint) const {
  return invalid_input(std::move(message), build.location(), std::move(hint));
}

Diagnostic NodeImport::refuse(std::string message, std::string hint) const {
  return unsupported(std::move(message), build.location(), std::move(hint));
}

}  // namespace quernel::onnx_import
