#include <algorithm>
#include <cmath>
#include <functional>

#include "random_graph/generator.h"

namespace quernel::random_graph_parts {

namespace {

IndexExpr axis(size_t i) { return IndexExpr::axis(static_cast<int>(i)); }

std::string axis_name(size_t i) { return std::string(1, static_cast<char>('a' + i)); }

}  // namespace

ValueId Generator::finish_contract(ValueId a, ValueId b, Contraction contraction) {
  DType dtype = graph.dtype(a);
  contraction.accumulator = default_accumulator(dtype);
  double count = 1;
  for (size_t i = 0; i < contraction.axes.size(); ++i) {
    contraction.axes[i].name = axis_name(i);
    if (contraction.axes[i].reduction) count *= static_cast<double>(contraction.axes[i].extent.value());
  }
  // Weights may be stored narrower than what they are multiplied with.
  bool narrow = dtype == DType::kF32 && random.chance(12), both = exact(a) && exact(b) && !narrow;
  double bound = facts(b).bound * (narrow ? 1.01 : 1);
  Facts f = facts_of(dtype, facts(a).bound * bound * std::max(count, 1.0),
                     both ? facts(a).fraction_bits + facts(b).fraction_bits : kInexact);
  if (narrow) b = build.cast(b, bound < 60000 && random.chance(50) ? DType::kF16 : DType::kBF16);
  ValueId result = build.contract(a, b, std::move(contraction));
  return keep(result, f);
}

ValueId Generator::random_contract() {
  if (random.chance(20))
    if (ValueId v = random_quantised(); v != kNoValue) return v;
  ValueId x = operand_if(
      [&](ValueId v) { return graph.dtype(v) < DType::kBool && graph.rank(v) >= 1 && graph.rank(v) <= 5; });
  if (x == kNoValue) return kNoValue;
  switch (random.below(3)) {
    case 0:
      return random_linear(x, weights_dtype(x));
    case 1:
      return random_convolution(x, weights_dtype(x));
    default:
      return random_einsum(x);
  }
}

// That of x; of bytes, either one.
DType Generator::weights_dtype(ValueId x) {
  DType dtype = graph.dtype(x);
  if (dtype != DType::kI8 && dtype != DType::kU8) return dtype;
  return random.chance(50) ? DType::kI8 : DType::kU8;
}

// A contraction of dequantised bytes, weights constant, whose result is perhaps quantised again. Scales are
// powers of two, so that floats and integers give the same bits.
ValueId Generator::random_quantised() {
  ValueId x = operand_if([&](ValueId v) {
    return (graph.dtype(v) == DType::kI8 || graph.dtype(v) == DType::kU8) && graph.rank(v) >= 1 &&
           graph.rank(v) <= 5;
  });
  if (x == kNoValue) return kNoValue;
  auto scale = [&] { return std::ldexp(1.0, static_cast<int>(random.between(-12, -9))); };
  double zero = random.chance(50) ? 0 : static_cast<double>(random.between(0, 127));
  if (graph.dtype(x) == DType::kI8 && random.chance(50)) zero = -zero;
  ValueId centred = build.binary(BinaryOp::k_sub, build.cast(x, DType::kI32), zero);
  ValueId wide = build.binary(BinaryOp::k_mul, build.cast(centred, DType::kF32), scale());
  wide = keep(wide, facts_of(DType::kF32, 0.5, 12));
  quantised_weights_ = scale();
  ValueId y = random.chance(50) ? random_linear(wide, DType::kF32) : random_convolution(wide, DType::kF32);
  quantised_weights_ = 0;
  if (y == kNoValue || random.chance(30)) return y;
  const Shape shape = graph.shape(y);
  if (random.chance(50)) y = build.binary(BinaryOp::k_add, y, build.full(DType::kF32, shape, 0.25));
  if (random.chance(50)) y = build.binary(BinaryOp::k_max, y, build.full(DType::kF32, shape, 0));
  y = build.unary(UnaryOp::k_round, build.binary(BinaryOp::k_div, y, std::ldexp(1.0, -6)));
  y = build.binary(BinaryOp::k_add, y, static_cast<double>(random.between(0, 100)));
  return keep(build.cast(y, random.chance(50) ? DType::kI8 : DType::kU8), {});
}

// A quantised constant: scales are powers of two, zero points integers or halves.
ValueId Generator::quantised_constant(const std::vector<int64_t>& dims) {
  const DType dtype = random.pick(std::vector<DType>{DType::kI4, DType::kU4, DType::kI8, DType::kU8});
  std::vector<int64_t> groups, parameters;
  for (int64_t dim : dims) {
    groups.push_back(random.pick(std::vector<int64_t>{1, 1, 4, 8, 16, std::max<int64_t>(dim, 1)}));
    parameters.push_back((dim + groups.back() - 1) / groups.back());
  }
  auto floats = [&](const std::function<double()>& element) {
    std::vector<float> values(static_cast<size_t>(*element_count(parameters)));
    for (float& value : values) value = static_cast<float>(element());
    return build.constant(f32_tensor(parameters, values));
  };
  const ValueId elements = build.constant(random_tensor(dtype, dims, random));
  ValueId scales = floats([&] { return std::ldexp(1.0, static_cast<int>(random.between(-10, -8))); });
  scales = build.cast(scales, random.pick(std::vector<DType>{DType::kF32, DType::kF16, DType::kBF16}));
  ValueId zeros = kNoValue;
  if (random.chance(30))
    zeros = build.constant(random_tensor(dtype, parameters, random));
  else if (random.chance(30))
    zeros = floats([&] { return static_cast<double>(random.between(-8, 16)) / 2; });
  return keep(build.dequantize(elements, scales, zeros, groups), facts_of(DType::kF32, 1, 11));
}

// Rows of bytes of these dims, with a scale for each group or row, or of two digits of base 4 with a byte each: scales are
// multiples of 2^-10.
ValueId Generator::rows_of_bytes(const std::vector<int64_t>& dims) {
  std::vector<int64_t> sizes{dims.back()};
  for (int64_t group : {1, 4, 8, 16})
    if (dims.back() % group == 0) sizes.push_back(group);
  const int64_t group = random.pick(sizes);
  std::vector<int64_t> groups = dims;
  groups.back() /= group;
  constexpr int64_t kBase = 4;
  auto bytes = [&] {
    const ValueId elements = source(DType::kI8, dims);
    return random.chance(80) ? build.add(OpKind::k_contiguous, {elements})
                             : elements;  // else it is no kernel's own
  };
  std::vector<ValueId> digits{bytes()};
  ValueId elements = build.cast(digits[0], DType::kF32);
  const bool whole_rows = random.chance(30);
  if (!whole_rows && random.chance(40)) {
    digits.push_back(bytes());
    elements = build.binary(BinaryOp::k_mul, elements, static_cast<double>(kBase));
    elements = build.add(OpKind::k_add, {elements, build.cast(digits[1], DType::kF32)});
  }
  std::vector<int64_t> of_scales = groups;
  if (whole_rows) of_scales.back() = 1;
  ValueId scales = build.cast(source(DType::kU8, of_scales), DType::kF32);
  scales = build.unary(UnaryOp::k_floor, build.binary(BinaryOp::k_mul, scales, std::ldexp(1.0, -4)));
  scales = build.binary(BinaryOp::k_mul, build.binary(BinaryOp::k_add, scales, 1.0), std::ldexp(1.0, -10));
  Shape split = make_shape(groups);
  split.push_back(group);
  ValueId sums = build.reshape(whole_rows ? build.cast(digits[0], DType::kI32) : elements, split);
  sums = build.reduce(OpKind::k_reduce_sum, sums, {static_cast<int64_t>(dims.size())}, false);
  if (!whole_rows) sums = build.binary(BinaryOp::k_mul, sums, scales);
  return keep(build.dequantize_rows(std::move(digits), kBase, scales, sums, group),
              facts_of(DType::kF32, 10, 10));
}

// Weights of a contraction: dequantised constants in random_quantised.
ValueId Generator::weights(DType dtype, const std::vector<int64_t>& dims) {
  if (dtype == DType::kF32 && random.chance(15)) return quantised_constant(dims);
  if (quantised_weights_ == 0) return source(dtype, dims);
  DType byte = random.chance(70) ? DType::kI8 : DType::kU8;
  ValueId w = build.constant(random_tensor(byte, dims, random));
  ValueId wide = build.cast(w, DType::kI32);
  if (byte == DType::kU8) wide = build.binary(BinaryOp::k_sub, wide, random.chance(70) ? 128.0 : 5.0);
  wide = build.binary(BinaryOp::k_mul, build.cast(wide, DType::kF32), quantised_weights_);
  return keep(wide, facts_of(DType::kF32, 0.5, 12));
}

// x[…, k] * w[k, n], or w[n, k].
ValueId Generator::random_linear(ValueId x, DType dtype) {
  std::vector<int64_t> dims = static_dims(graph.shape(x));
  size_t rank = dims.size();
  int64_t k = dims.back(), n = random.pick(std::vector<int64_t>{1, 3, 4, 8, 17});
  bool transposed = random.chance(50);
  ValueId w = weights(dtype, transposed ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n});
  if (const Node* from = graph.def(w); k > 0 && from && from->op == OpKind::k_dequantize && random.chance(50))
    x = rows_of_bytes(dims);
  Contraction c;
  for (size_t d = 0; d + 1 < rank; ++d) {
    c.axes.push_back({"", dims[d], false});
    c.a.push_back(axis(d));
    c.out.push_back(axis(d));
  }
  c.axes.push_back({"", n, false});
  c.axes.push_back({"", k, true});
  c.out.push_back(axis(rank - 1));
  c.a.push_back(axis(rank));
  c.b = transposed ? std::vector<IndexExpr>{axis(rank - 1), axis(rank)}
                   : std::vector<IndexExpr>{axis(rank), axis(rank - 1)};
  return finish_contract(x, w, std::move(c));
}

// One spatial dim, the last; channels before it. Depthwise, or over all channels; padded, strided, dilated.
ValueId Generator::random_convolution(ValueId x, DType dtype) {
  if (graph.rank(x) < 2) return kNoValue;
  bool padded = random.chance(50);
  if (padded) {
    Shape pads(static_cast<size_t>(graph.rank(x)), Dim(0));
    pads.back() = 1;
    Facts f = facts(x);
    x = keep(build.pad(x, pads, pads), f);
  }
  std::vector<int64_t> dims = static_dims(graph.shape(x));
  size_t lead = dims.size() - 2;
  int64_t channels = dims[lead], size = dims[lead + 1];
  int64_t taps = random.between(1, 3), stride = random.between(1, 2), dilation = random.between(1, 2);
  int64_t span = (taps - 1) * dilation + 1;
  if (size < span) return kNoValue;
  int64_t outputs = random.pick(std::vector<int64_t>{1, 3, 8}), positions = (size - span) / stride + 1;
  bool depthwise = random.chance(40);
  Contraction c;
  for (size_t d = 0; d < lead; ++d) {
    c.axes.push_back({"", dims[d], false});
    c.a.push_back(axis(d));
    c.out.push_back(axis(d));
  }
  c.axes.push_back({"", depthwise ? channels : outputs, false});
  c.axes.push_back({"", positions, false});
  size_t channel = lead, tap = lead + 2;
  if (!depthwise) {
    c.axes.push_back({"", channels, true});
    channel = lead + 2, tap = lead + 3;
  }
  c.axes.push_back({"", taps, true});
  c.a.push_back(axis(channel));
  c.a.push_back(axis(lead + 1) * stride + axis(tap) * dilation);
  c.out.push_back(axis(lead));
  c.out.push_back(axis(lead + 1));
  c.b = depthwise ? std::vector<IndexExpr>{axis(lead), axis(tap)}
                  : std::vector<IndexExpr>{axis(lead), axis(channel), axis(tap)};
  std::vector<int64_t> weight_dims =
      depthwise ? std::vector<int64_t>{channels, taps} : std::vector<int64_t>{outputs, channels, taps};
  return finish_contract(x, weights(dtype, weight_dims), std::move(c));
}

// Two values of one shape: each dim is kept or summed; the kept ones come out in another order, sometimes two
// as one dim.
ValueId Generator::random_einsum(ValueId x) {
  ValueId y = partner(x);
  std::vector<int64_t> dims = static_dims(graph.shape(x));
  std::vector<size_t> kept, summed;
  for (size_t d = 0; d < dims.size(); ++d) (random.chance(50) ? kept : summed).push_back(d);
  if (random.chance(50)) std::reverse(kept.begin(), kept.end());
  Contraction c;
  c.a.assign(dims.size(), IndexExpr(0));
  for (size_t d : kept) {
    c.a[d] = axis(c.axes.size());
    c.out.push_back(c.a[d]);
    c.axes.push_back({"", dims[d], false});
  }
  for (size_t d : summed) {
    c.a[d] = axis(c.axes.size());
    c.axes.push_back({"", dims[d], true});
  }
  c.b = c.a;
  if (kept.size() >= 2 && c.axes[1].extent.value() > 0 && random.chance(30)) {
    c.out[0] = c.out[0] * c.axes[1].extent + c.out[1];
    c.out.erase(c.out.begin() + 1);
  }
  return finish_contract(x, y, std::move(c));
}

ValueId Generator::random_gather() {
  ValueId x = operand_if([&](ValueId v) {
    std::vector<int64_t> dims = static_dims(graph.shape(v));
    return !dims.empty() && std::find(dims.begin(), dims.end(), 0) == dims.end();
  });
  if (x == kNoValue) return kNoValue;
  std::vector<int64_t> dims = static_dims(graph.shape(x));
  Facts f = facts(x);
  DType dtype = random.chance(70) ? DType::kI64 : DType::kI32;
  Attributes attributes;
  int64_t choice = random.below(3);
  if (choice == 0 && dims.size() > 7) choice = 1;  // the result would have too high a rank
  if (choice == 2) {
    int64_t batch = random.chance(70) ? 0 : random.between(0, static_cast<int64_t>(dims.size()) - 1);
    std::vector<int64_t> index(dims.begin(), dims.begin() + batch);
    if (random.chance(60)) index.push_back(random.between(1, 4));
    index.push_back(random.between(1, static_cast<int64_t>(dims.size()) - batch));
    attributes.ints = {batch};
    return keep(build.add(OpKind::k_gather_nd, {x, source(dtype, index)}, std::move(attributes)), f);
  }
  int64_t along = random.below(static_cast<int64_t>(dims.size()));
  attributes.ints = {along};
  if (choice == 1) {
    dims[static_cast<size_t>(along)] = random.between(1, 5);
    return keep(build.add(OpKind::k_gather_elements, {x, source(dtype, dims)}, std::move(attributes)), f);
  }
  std::vector<int64_t> index;
  for (int64_t d = random.between(0, 2); d > 0; --d) index.push_back(random.between(1, 4));
  return keep(build.add(OpKind::k_take, {x, source(dtype, index)}, std::move(attributes)), f);
}

// A transform of Winograd's algorithm, of the elements of `x` one after the other and over again. Those of
// tiles of 2 add up elements as they are; those of 4 round.
ValueId Generator::random_winograd() {
  ValueId x = operand_if([&](ValueId v) {
    return graph.dtype(v) == DType::kF32 && exact(v) &&
           element_count(static_dims(graph.shape(v))).value_or(0) > 0;
  });
  if (x == kNoValue) return kNoValue;
  int64_t count = *element_count(static_dims(graph.shape(x)));
  int64_t rows = random.between(1, 3), columns = random.between(1, 3);
  bool input = random.chance(50);
  std::vector<int64_t> dims = {random.between(1, 2), rows, columns, random.between(1, 20)};
  if (input)
    dims[1] = 2 * rows + 2, dims[2] = 2 * columns + 2;
  else
    dims.insert(dims.begin(), 16);
  IndexExpr place = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    place = place * Dim(dims[d]) + IndexExpr::axis(static_cast<int>(d));
  IndexMap map;
  map.indices = {floormod(place, count)};
  ValueId values = build.view(build.reshape(x, {count}), Shape(dims.begin(), dims.end()), std::move(map));
  Facts f = facts(x);
  if (input)
    return keep(build.add(OpKind::k_winograd_input, {values}, {.ints = {2}}),
                facts_of(DType::kF32, 4 * f.bound, f.fraction_bits));
  return keep(build.add(OpKind::k_winograd_output, {values},
                        {.ints = {2, 2 * rows - random.below(2), 2 * columns - random.below(2)}}),
              facts_of(DType::kF32, 9 * f.bound, f.fraction_bits));
}

}  // namespace quernel::random_graph_parts
