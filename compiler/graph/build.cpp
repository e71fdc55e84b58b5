#include "graph/build.h"

#include <algorithm>
#include <numeric>

namespace quernel {

ValueId GraphBuilder::fail(Diagnostic diagnostic) {
  if (diagnostic.place.node.empty() && diagnostic.place.op.empty()) diagnostic.place = location_;
  if (errors_.empty()) errors_.push_back(std::move(diagnostic));
  if (on_failure_) on_failure_();
  return kNoValue;
}

void GraphBuilder::note_unequal(const Dim& a, const Dim& b, bool only_equal) {
  if ((!a.is_const() || !b.is_const()) && !(a == b)) unequal_dims_.push_back({a, b, only_equal});
}

ValueId GraphBuilder::cannot_broadcast(const Shape& a, const Shape& b, Diagnostic diagnostic) {
  size_t count = std::min(a.size(), b.size());
  for (size_t i = 1; i <= count; ++i) {
    const Dim &x = a[a.size() - i], &y = b[b.size() - i];
    if (!(x == Dim(1)) && !(y == Dim(1))) note_unequal(x, y, false);
  }
  return fail(std::move(diagnostic));
}

ValueId GraphBuilder::add(OpKind op, std::vector<ValueId> inputs, Attributes attributes) {
  std::string name = std::exchange(name_, {});
  if (!ok() || std::find(inputs.begin(), inputs.end(), kNoValue) != inputs.end()) {
    if (ok()) fail(internal_error("operand of " + std::string(to_string(op)) + " is not defined"));
    return kNoValue;
  }
  Expected<ValueId> value =
      graph_.add(op, std::move(inputs), std::move(attributes), location_, std::move(name));
  if (!value) return fail(value.take_errors().front());
  return *value;
}

ValueId GraphBuilder::constant(Tensor tensor) {
  Attributes attributes;
  attributes.tensor = std::move(tensor);
  return add(OpKind::k_constant, {}, std::move(attributes));
}

ValueId GraphBuilder::full(DType dtype, Shape shape, double value) {
  ValueId scalar = constant(scalar_tensor(dtype, value));
  return shape.empty() ? scalar : broadcast_to(scalar, std::move(shape));
}

ValueId GraphBuilder::unary(UnaryOp op, ValueId x) { return add(op_kind(op), {x}); }

ValueId GraphBuilder::binary(BinaryOp op, ValueId a, ValueId b) {
  if (!ok() || a == kNoValue || b == kNoValue) return add(op_kind(op), {a, b});
  std::string name = std::exchange(name_, {});
  Expected<Shape> shape = broadcast_shapes(graph_.shape(a), graph_.shape(b));
  if (!shape) return cannot_broadcast(graph_.shape(a), graph_.shape(b), shape.take_errors().front());
  a = broadcast_to(a, *shape);
  b = broadcast_to(b, *shape);
  name_ = std::move(name);
  return add(op_kind(op), {a, b});
}

ValueId GraphBuilder::where(ValueId condition, ValueId a, ValueId b) {
  if (!ok() || condition == kNoValue || a == kNoValue || b == kNoValue)
    return add(OpKind::k_where, {condition, a, b});
  std::string name = std::exchange(name_, {});
  Expected<Shape> shape = broadcast_shapes(graph_.shape(a), graph_.shape(b));
  if (!shape) return cannot_broadcast(graph_.shape(a), graph_.shape(b), shape.take_errors().front());
  Shape results = *shape;
  shape = broadcast_shapes(results, graph_.shape(condition));
  if (!shape) return cannot_broadcast(results, graph_.shape(condition), shape.take_errors().front());
  condition = broadcast_to(condition, *shape);
  a = broadcast_to(a, *shape);
  b = broadcast_to(b, *shape);
  name_ = std::move(name);
  return add(OpKind::k_where, {condition, a, b});
}

ValueId GraphBuilder::cast(ValueId x, DType dtype) {
  if (ok() && x != kNoValue && graph_.dtype(x) == dtype) return x;
  Attributes attributes;
  attributes.dtype = dtype;
  return add(OpKind::k_cast, {x}, std::move(attributes));
}

ValueId GraphBuilder::reshape(ValueId x, Shape shape) {
  if (ok() && x != kNoValue && graph_.shape(x) == shape) return x;
  Attributes attributes;
  attributes.shape = std::move(shape);
  return add(OpKind::k_reshape, {x}, std::move(attributes));
}

ValueId GraphBuilder::permute(ValueId x, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end()) && ok() && x != kNoValue &&
      static_cast<int>(perm.size()) == graph_.rank(x) &&
      std::adjacent_find(perm.begin(), perm.end()) == perm.end())
    return x;
  Attributes attributes;
  attributes.ints = std::move(perm);
  return add(OpKind::k_permute, {x}, std::move(attributes));
}

ValueId GraphBuilder::broadcast_to(ValueId x, Shape shape) {
  if (!ok() || x == kNoValue) return kNoValue;
  if (graph_.shape(x) == shape) return x;
  Shape padded = graph_.shape(x);
  if (padded.size() > shape.size())
    return fail(invalid_input("expected a shape that broadcasts to " + to_string(shape) + ", found " +
                              to_string(padded)));
  padded.insert(padded.begin(), shape.size() - padded.size(), Dim(1));
  x = reshape(x, padded);
  if (x == kNoValue || graph_.shape(x) == shape) return x;
  Attributes attributes;
  attributes.shape = shape;
  return add(OpKind::k_expand, {x}, std::move(attributes));
}

ValueId GraphBuilder::slice(ValueId x, Shape starts, Shape stops, std::vector<int64_t> steps) {
  Attributes attributes;
  if (steps.empty()) steps.assign(starts.size(), 1);
  attributes.starts = std::move(starts);
  attributes.stops = std::move(stops);
  attributes.steps = std::move(steps);
  return add(OpKind::k_slice, {x}, std::move(attributes));
}

ValueId GraphBuilder::flip(ValueId x, std::vector<int64_t> axes) {
  Attributes attributes;
  attributes.ints = std::move(axes);
  return add(OpKind::k_flip, {x}, std::move(attributes));
}

ValueId GraphBuilder::pad(ValueId x, Shape before, Shape after, PadMode mode, double fill) {
  auto zero = [](const Dim& d) { return d.is_const() && d.value() == 0; };
  if (std::all_of(before.begin(), before.end(), zero) && std::all_of(after.begin(), after.end(), zero))
    return x;
  Attributes attributes;
  attributes.starts = std::move(before);
  attributes.stops = std::move(after);
  attributes.mode = mode;
  attributes.fill = fill;
  return add(OpKind::k_pad, {x}, std::move(attributes));
}

ValueId GraphBuilder::view(ValueId x, Shape shape, IndexMap map, double fill) {
  Attributes attributes;
  attributes.shape = std::move(shape);
  attributes.map = std::move(map);
  attributes.fill = fill;
  return add(OpKind::k_view, {x}, std::move(attributes));
}

ValueId GraphBuilder::cat(std::vector<ValueId> xs, int64_t axis) {
  if (xs.size() == 1) return xs[0];
  for (size_t i = 1; i < xs.size() && ok(); ++i) {
    if (xs[0] == kNoValue || xs[i] == kNoValue) break;
    const Shape &first = graph_.shape(xs[0]), &other = graph_.shape(xs[i]);
    for (size_t d = 0; d < std::min(first.size(), other.size()); ++d)
      if (static_cast<int64_t>(d) != axis) note_unequal(first[d], other[d], true);
  }
  Attributes attributes;
  attributes.ints = {axis};
  return add(OpKind::k_cat, std::move(xs), std::move(attributes));
}

ValueId GraphBuilder::reduce(OpKind op, ValueId x, std::vector<int64_t> axes, bool keepdims) {
  Attributes attributes;
  std::sort(axes.begin(), axes.end());
  attributes.ints = std::move(axes);
  attributes.keepdims = keepdims;
  attributes.dtype = DType::kI64;
  if (ok() && x != kNoValue) attributes.accumulator = default_accumulator(graph_.dtype(x));
  return add(op, {x}, std::move(attributes));
}

ValueId GraphBuilder::contract(ValueId a, ValueId b, Contraction contraction) {
  Attributes attributes;
  attributes.contraction = std::move(contraction);
  return add(OpKind::k_contract, {a, b}, std::move(attributes));
}

ValueId GraphBuilder::take(ValueId x, ValueId indices, int64_t axis) {
  Attributes attributes;
  attributes.ints = {axis};
  return add(OpKind::k_take, {x, indices}, std::move(attributes));
}

ValueId GraphBuilder::dequantize(ValueId x, ValueId scales, ValueId zeros, std::vector<int64_t> groups) {
  Attributes attributes;
  attributes.ints = std::move(groups);
  std::vector<ValueId> operands{x, scales};
  if (zeros != kNoValue) operands.push_back(zeros);
  return add(OpKind::k_dequantize, std::move(operands), std::move(attributes));
}

ValueId GraphBuilder::dequantize_rows(std::vector<ValueId> digits, int64_t base, ValueId scales, ValueId sums,
                                      int64_t group, int64_t factor) {
  Attributes attributes;
  attributes.ints = {group};
  if (digits.size() > 1 || factor != 1) attributes.ints.push_back(base);
  if (factor != 1) attributes.ints.push_back(factor);
  digits.insert(digits.end(), {scales, sums});
  return add(OpKind::k_dequantize_rows, std::move(digits), std::move(attributes));
}

ValueId GraphBuilder::scan(OpKind op, ValueId x, int64_t axis, bool exclusive, bool reverse) {
  Attributes attributes;
  attributes.ints = {axis};
  attributes.exclusive = exclusive;
  attributes.reverse = reverse;
  if (ok() && x != kNoValue) attributes.accumulator = default_accumulator(graph_.dtype(x));
  return add(op, {x}, std::move(attributes));
}

ValueId GraphBuilder::argsort(ValueId x, int64_t axis, Dim count, bool descending) {
  Attributes attributes;
  attributes.ints = {axis};
  attributes.shape = {std::move(count)};
  attributes.descending = descending;
  return add(OpKind::k_argsort, {x}, std::move(attributes));
}

ValueId GraphBuilder::scatter(OpKind op, ValueId x, ValueId indices, ValueId updates, int64_t parameter,
                              ScatterMode mode) {
  Attributes attributes;
  attributes.ints = {parameter};
  attributes.scatter = mode;
  return add(op, {x, indices, updates}, std::move(attributes));
}

ValueId GraphBuilder::scatter_unique(ValueId x, ValueId places, int64_t axis) {
  if (!ok() || x == kNoValue) return kNoValue;
  Attributes attributes;
  attributes.ints = {axis};
  attributes.unique = true;
  ValueId none = full(graph_.dtype(x), graph_.shape(x), 0);
  return add(OpKind::k_scatter_elements, {none, places, x}, std::move(attributes));
}

DType default_accumulator(DType dtype) {
  if (dtype == DType::kF16 || dtype == DType::kBF16) return DType::kF32;
  if (is_byte(dtype)) return DType::kI32;
  return dtype;
}

Expected<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[shift + i], &y = shorter[i];
    if (x == y) continue;
    if (x.is_const() && x.value() == 1)
      result[shift + i] = y;
    else if (!(y.is_const() && y.value() == 1))
      return invalid_input("expected shapes that broadcast, found " + to_string(a) + " and " + to_string(b));
  }
  return result;
}

}  // namespace quernel
