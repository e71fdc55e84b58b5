#include "frontends/shared/imported_node.h"

#include <algorithm>
#include <numeric>

#include "graph/dim_values.h"

namespace quernel {

Shape ImportedNode::shape(ValueId v) const { return v < 0 ? Shape() : build.graph().shape(v); }

Expected<int64_t> ImportedNode::dim(const Dim& d) {
  if (d.is_const()) return d.value();
  std::vector<Symbol> symbols;
  d.collect_symbols(symbols);
  for (const Symbol& s : symbols) free_dims.insert(s.name);
  return refuse("expected a fixed dim, found free dim " + to_string(d),
                "fix it with --dim " + symbols.front().name + "=N");
}

Expected<std::vector<int64_t>> ImportedNode::dims(ValueId v) {
  std::vector<int64_t> result;
  Diagnostics errors;  // all, so that every free dim is named
  for (const Dim& d : shape(v)) {
    Expected<int64_t> value = dim(d);
    if (value)
      result.push_back(*value);
    else
      errors.push_back(value.take_errors().front());
  }
  if (!errors.empty()) return errors.front();
  return result;
}

// ---- questions to dims that may be free

namespace {

std::vector<Symbol> symbols_of(const Dim& a, const Dim& b) {
  std::vector<Symbol> symbols;
  a.collect_symbols(symbols);
  b.collect_symbols(symbols);
  return symbols;
}

// The option of a range in which the dim is the number: where it grows in steps.
std::optional<std::string> range_for(const Symbol& s, const Dim& dim, const Dim& number) {
  if (!number.is_const()) return std::nullopt;
  std::optional<int64_t> min = minimum_for(s, {dim, number.value()}), max = maximum_for(s, {number - dim, 0});
  if (!min || !max || *min >= *max) return std::nullopt;
  return s.name + "=" + std::to_string(*min) + ".." + std::to_string(*max);
}

std::string range_option(const Symbol& s, int64_t min) {
  constexpr int64_t kUsual = 64;
  int64_t max = std::min(s.max, std::max(kUsual, min * 2));
  return s.name + "=" + std::to_string(min) + ".." + std::to_string(max);
}

}  // namespace

Expected<bool> ImportedNode::is(const Dim& d, int64_t value) {
  if (d.is_const()) return d.value() == value;
  if (always_lt(d, value) || always_lt(value, d) || value % std::max<int64_t>(d.known_divisor(), 1) != 0)
    return false;
  for (const Symbol& s : symbols_of(d, 0)) {
    std::optional<int64_t> above = minimum_for(s, {d, value + 1});
    if (!above) {
      free_dims.insert(s.name);
      continue;
    }
    std::string fixed = d.kind() == Dim::Kind::kSymbol ? std::to_string(value) : "N";
    ranged_dims[s.name] = "--dim " + s.name + "=" + fixed + " or --dim " + range_option(s, *above);
  }
  return refuse("expected to know whether a dim is " + std::to_string(value) + ", found free dim " +
                to_string(d));
}

Status ImportedNode::require_equal(const Dim& a, const Dim& b, const std::string& what) {
  if (a == b || (always_le(a, b) && always_le(b, a))) return {};
  if (a.is_const() && b.is_const())
    return invalid("expected " + what + " to be " + to_string(b) + ", found " + to_string(a));
  std::vector<Symbol> symbols = symbols_of(a, b);
  // What is found at run time is what it is.
  if (std::any_of(symbols.begin(), symbols.end(), [](const Symbol& s) { return s.runtime; })) return {};
  if (equal_on_samples(a, b)) return {};
  build.note_unequal(a, b, true);
  std::optional<std::string> range = symbols.size() == 1 ? range_for(symbols[0], a, b) : std::nullopt;
  for (const Symbol& s : symbols)
    if (range)
      ranged_dims[s.name] = "--dim " + s.name + "=N or --dim " + *range;
    else
      free_dims.insert(s.name);
  return refuse("expected " + what + " to be " + to_string(b) + ", found " + to_string(a));
}

void ImportedNode::note_broadcast(const Shape& a, const Shape& b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const Dim &x = a[a.size() - i], &y = b[b.size() - i];
    if (!(x == Dim(1)) && !(y == Dim(1))) build.note_unequal(x, y, false);
  }
}

Status ImportedNode::require_at_least(const Dim& d, int64_t least, const std::string& what) {
  if (always_le(least, d)) return {};
  std::string expected =
      "expected " + what + " to be at least " + std::to_string(least) + ", found " + to_string(d);
  if (d.is_const()) return invalid(std::move(expected));
  least_dims.push_back({d, least});
  for (const Symbol& s : symbols_of(d, 0)) free_dims.insert(s.name);
  return refuse(std::move(expected));
}

// ---- operands as constants

Expected<Tensor> ImportedNode::constant_in(int i, std::string_view what) {
  const Tensor* tensor = constant(in(i));
  // Nothing is known of no elements.
  if (Shape dims = shape(in(i)); !tensor && has(i) && is_static(dims) && element_count(dims) == Dim(0))
    return Tensor{dtype(in(i)), static_dims(dims), Bytes::own({})};
  if (!tensor) {
    want_value(in(i));
    std::vector<Symbol> symbols;
    if (std::optional<Shape> values = has(i) ? dim_values(build.graph(), in(i)) : std::nullopt)
      for (const Dim& d : *values) d.collect_symbols(symbols);
    for (const Symbol& s : symbols) free_dims.insert(s.name);
  }
  if (!tensor)
    return refuse("expected operand " + std::to_string(i) + " (" + std::string(what) +
                      ") to be known at compile time, found a computed value" +
                      (i < static_cast<int>(input_names.size()) ? " '" + input_names[i] + "'" : ""),
                  "fold it into the model, or fix the input shapes it is computed from");
  return *tensor;
}

Expected<std::vector<int64_t>> ImportedNode::ints_in(int i, std::string_view what) {
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

Expected<Shape> ImportedNode::dims_in(int i, std::string_view what) {
  ValueId v = in(i);
  if (has(i) && !constant(v) && rank(v) <= 1 && !is_float(dtype(v)))
    if (std::optional<Shape> values = dim_values(build.graph(), v)) return *values;
  QUERNEL_TRY(std::vector<int64_t> values, ints_in(i, what));
  return make_shape(values);
}

Expected<std::vector<double>> ImportedNode::floats_in(int i, std::string_view what) {
  QUERNEL_TRY(Tensor tensor, constant_in(i, what));
  if (tensor.dims.size() > 1)
    return invalid("expected " + std::string(what) + " of rank 1, found rank " +
                   std::to_string(tensor.dims.size()));
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = element_as_f64(tensor, static_cast<int64_t>(k));
  return values;
}

Expected<int64_t> ImportedNode::int_in(int i, std::string_view what) {
  QUERNEL_TRY(std::vector<int64_t> values, ints_in(i, what));
  if (values.size() != 1)
    return invalid("expected " + std::string(what) + " of one element, found " +
                   std::to_string(values.size()));
  return values[0];
}

Expected<double> ImportedNode::float_in(int i, std::string_view what) {
  QUERNEL_TRY(std::vector<double> values, floats_in(i, what));
  if (values.size() != 1)
    return invalid("expected " + std::string(what) + " of one element, found " +
                   std::to_string(values.size()));
  return values[0];
}

Expected<int64_t> ImportedNode::axis(int64_t value, int rank) const {
  if (value < -rank || value >= rank)
    return invalid("axis " + std::to_string(value) + " is out of range for rank " + std::to_string(rank));
  return value < 0 ? value + rank : value;
}

Expected<std::vector<int64_t>> ImportedNode::axes_in_range(std::vector<int64_t> values, int rank) const {
  std::set<int64_t> seen;
  for (int64_t& value : values) {
    QUERNEL_TRY(value, axis(value, rank));
    if (!seen.insert(value).second) return invalid("axis " + std::to_string(value) + " is given twice");
  }
  return values;
}

// ---- emission

ValueId ImportedNode::scalar(DType dtype, double value) {
  if (dtype >= DType::kI4)
    return build.fail(refuse("computing in " + std::string(to_string(dtype)) + " is not supported",
                             "cast to a wider type before"));
  return build.constant(scalar_tensor(dtype, value));
}

// A constant, or what costs nothing until it runs.
ValueId ImportedNode::positions(DType dtype, const Dim& count, int trailing) {
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

ValueId ImportedNode::positions_where(ValueId mask) {
  Dim size = shape(mask)[0];
  ValueId count = build.reduce(OpKind::k_reduce_sum, build.cast(mask, DType::kI64), {0}, false);
  Symbol found{output_names.empty() ? "count" : output_names[0] + "_count",
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

ValueId ImportedNode::widen(ValueId x) {
  return dtype(x) == DType::kF16 || dtype(x) == DType::kBF16 ? build.cast(x, DType::kF32) : x;
}

ValueId ImportedNode::number(DType dtype, const Dim& value) {
  if (value.is_const()) return scalar(dtype, static_cast<double>(value.value()));
  Attributes attributes;
  attributes.shape = {value};
  return build.cast(build.reshape(build.add(OpKind::k_dims, {}, std::move(attributes)), {}), dtype);
}

ValueId ImportedNode::mean(ValueId x, const std::vector<int64_t>& axes, bool keepdims) {
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

Diagnostic ImportedNode::invalid(std::string message, std::string hint) const {
  return invalid_input(std::move(message), build.location(), std::move(hint));
}

Diagnostic ImportedNode::refuse(std::string message, std::string hint) const {
  return unsupported(std::move(message), build.location(), std::move(hint));
}

}  // namespace quernel
