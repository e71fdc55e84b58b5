// Reductions: the input is visited in row-major order, and each element goes into the accumulator of its
// output element. Sums and products accumulate in f64 (rounded once to the accumulator dtype) or modulo 2^64.
// max and min propagate NaN. argmax and argmin take the first NaN if there is one, as numpy does; among
// equals the first index, or the last with select_last. Over several axes the index is the row-major position
// within them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

// Where an input element goes: per input dim, the strides of its output element and of its position within
// the reduced axes.
struct Strides {
  std::vector<int64_t> output, position;
};

Strides reduction_strides(const std::vector<int64_t>& dims, const std::vector<int64_t>& axes) {
  Strides s{std::vector<int64_t>(dims.size(), 0), std::vector<int64_t>(dims.size(), 0)};
  int64_t output = 1, position = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    int64_t& stride = reduced ? position : output;
    (reduced ? s.position : s.output)[d] = stride;
    stride *= dims[d];
  }
  return s;
}

// Calls take(element, output index, position) for each element of x, loaded as T.
template <class T, class Take>
void for_each_element(const Tensor& x, const std::vector<int64_t>& axes, Take take) {
  Strides strides = reduction_strides(x.dims, axes);
  int64_t row = x.dims.empty() ? 1 : x.dims.back();
  int64_t output_step = x.dims.empty() ? 0 : strides.output.back();
  int64_t position_step = x.dims.empty() ? 0 : strides.position.back();
  std::vector<T> values(row);
  int64_t first = 0;
  for_each_row(x.dims, {strides.output, strides.position}, [&](const int64_t* offsets) {
    load(x, first, row, values.data());
    for (int64_t i = 0; i < row; ++i)
      take(values[i], offsets[0] + i * output_step, offsets[1] + i * position_step);
    first += row;
  });
}

template <class T, class Combine>
std::vector<T> accumulate(const Tensor& x, const Node& node, const ResultType& type, T identity,
                          Combine combine) {
  std::vector<T> result(type.count(), identity);
  for_each_element<T>(x, node.attributes.ints,
                      [&](T v, int64_t out, int64_t) { result[out] = combine(result[out], v); });
  return result;
}

std::vector<double> reduce_floats(const Node& node, const Tensor& x, const ResultType& type) {
  const double inf = std::numeric_limits<double>::infinity();
  // -0 is the sum's identity, so that the sum of one element is that element; of nothing it is 0.
  const double zero = x.count() == 0 ? 0.0 : -0.0;
  auto fold = [&](double identity, auto combine) {
    return accumulate<double>(x, node, type, identity, combine);
  };
  switch (node.op) {
    case OpKind::k_reduce_sum:
      return fold(zero, [](double a, double v) { return a + v; });
    case OpKind::k_reduce_prod:
      return fold(1, [](double a, double v) { return a * v; });
    case OpKind::k_reduce_max:
      return fold(-inf, maximum);
    case OpKind::k_reduce_min:
      return fold(inf, minimum);
    default:
      QUERNEL_UNREACHABLE("reduction without a float meaning");
  }
}

uint64_t lowest(DType dtype) {
  return is_signed_integer(dtype) ? static_cast<uint64_t>(INT64_MIN >> (64 - bit_width(dtype))) : 0;
}
uint64_t highest(DType dtype) {
  if (dtype == DType::kBool) return 1;
  return ~uint64_t{0} >> (64 - bit_width(dtype) + (is_signed_integer(dtype) ? 1 : 0));
}

// T orders the elements: int64_t for signed dtypes, uint64_t for unsigned ones and bool.
template <class T>
std::vector<int64_t> reduce_integers(const Node& node, const Tensor& x, const ResultType& type) {
  auto fold = [&](uint64_t identity, auto combine) {
    return accumulate<int64_t>(x, node, type, static_cast<int64_t>(identity), [&](int64_t a, int64_t v) {
      return static_cast<int64_t>(combine(static_cast<T>(a), static_cast<T>(v)));
    });
  };
  switch (node.op) {
    case OpKind::k_reduce_sum:
      return fold(0, [](T a, T v) { return static_cast<uint64_t>(a) + static_cast<uint64_t>(v); });
    case OpKind::k_reduce_prod:
      return fold(1, [](T a, T v) { return static_cast<uint64_t>(a) * static_cast<uint64_t>(v); });
    case OpKind::k_reduce_max:
      return fold(lowest(x.dtype), [](T a, T v) { return a > v ? a : v; });
    case OpKind::k_reduce_min:
      return fold(highest(x.dtype), [](T a, T v) { return a < v ? a : v; });
    case OpKind::k_reduce_and:
      return fold(~uint64_t{0}, [](T a, T v) { return a & v; });
    case OpKind::k_reduce_or:
      return fold(0, [](T a, T v) { return a | v; });
    default:
      QUERNEL_UNREACHABLE("not a reduction");
  }
}

template <class Loaded, class T>
std::vector<int64_t> arg_reduce(const Node& node, const Tensor& x, const ResultType& type) {
  std::vector<Loaded> best(type.count());
  std::vector<int64_t> index(type.count(), -1);
  bool last = node.attributes.select_last, largest = node.op == OpKind::k_reduce_argmax;
  for_each_element<Loaded>(x, node.attributes.ints, [&](Loaded loaded, int64_t out, int64_t position) {
    T v = static_cast<T>(loaded), b = static_cast<T>(best[out]);
    bool take = index[out] < 0;
    if (!take) take = (largest ? v > b : v < b) || (last && v == b);
    if constexpr (std::is_floating_point_v<T>)
      if (index[out] >= 0 && (std::isnan(v) || std::isnan(b)))
        take = std::isnan(v) && (last || !std::isnan(b));
    if (take) best[out] = loaded, index[out] = position;
  });
  return index;
}

}  // namespace

Expected<Tensor> run_reduce(const Node& node, const Operands& operands, const ResultType& type) {
  const Tensor& x = *operands[0];
  std::vector<uint8_t> bytes(byte_size(type.dtype, type.count()));
  auto finish = [&](const auto& values) {
    store(type.dtype, bytes.data(), 0, type.count(), values.data());
    return Tensor{type.dtype, type.dims, Bytes::own(std::move(bytes))};
  };
  if (node.op == OpKind::k_reduce_argmax || node.op == OpKind::k_reduce_argmin) {
    if (is_float(x.dtype)) return finish(arg_reduce<double, double>(node, x, type));
    return finish(is_signed_integer(x.dtype) ? arg_reduce<int64_t, int64_t>(node, x, type)
                                             : arg_reduce<int64_t, uint64_t>(node, x, type));
  }
  bool accumulates = node.op == OpKind::k_reduce_sum || node.op == OpKind::k_reduce_prod;
  if (is_float(x.dtype)) {
    std::vector<double> values = reduce_floats(node, x, type);
    if (accumulates)
      for (double& v : values) v = round_to(node.attributes.accumulator, v);
    return finish(values);
  }
  std::vector<int64_t> values = is_signed_integer(x.dtype) ? reduce_integers<int64_t>(node, x, type)
                                                           : reduce_integers<uint64_t>(node, x, type);
  if (accumulates)
    for (int64_t& v : values) v = wrap_to(node.attributes.accumulator, v);
  return finish(values);
}

}  // namespace quernel::interpreter
