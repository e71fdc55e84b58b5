// Scans, line by line along the axis. Floats accumulate in f64 and are rounded to the accumulator dtype where
// they are read, integers wrap; max and min propagate NaN.
#include <limits>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

// Calls line(first, step, count) for each line of `dims` along `axis`, in elements.
template <class Line>
void for_each_line(const std::vector<int64_t>& dims, size_t axis, Line line) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < axis; ++d) outer *= dims[d];
  for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) line(o * dims[axis] * inner + i, inner, dims[axis]);
}

// `combine` runs on T; `read` makes of the running value what is stored. `first` is what an exclusive scan
// starts with, `identity` changes nothing when combined.
template <class T, class Combine, class Read>
Tensor scan(const Node& node, const Tensor& x, T identity, T first, Combine combine, Read read) {
  std::vector<T> values(static_cast<size_t>(x.count())), results(values.size());
  load(x, 0, x.count(), values.data());
  const Attributes& a = node.attributes;
  for_each_line(x.dims, static_cast<size_t>(a.ints[0]), [&](int64_t start, int64_t step, int64_t count) {
    if (a.reverse) start += (count - 1) * step, step = -step;
    T running = identity;
    for (int64_t i = 0; i < count; ++i) {
      size_t at = static_cast<size_t>(start + i * step);
      T next = combine(running, values[at]);
      results[at] = read(!a.exclusive ? next : i == 0 ? first : running);
      running = next;
    }
  });
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(x.dtype, x.count())));
  store(x.dtype, bytes.data(), 0, x.count(), results.data());
  return {x.dtype, x.dims, Bytes::own(std::move(bytes))};
}

Tensor scan_floats(const Node& node, const Tensor& x) {
  const double inf = std::numeric_limits<double>::infinity();
  auto rounded = [&](double v) { return round_to(node.attributes.accumulator, v); };
  auto as_is = [](double v) { return v; };
  switch (node.op) {
    case OpKind::k_scan_sum:
      return scan<double>(
          node, x, -0.0, 0.0, [](double a, double v) { return a + v; }, rounded);
    case OpKind::k_scan_prod:
      return scan<double>(
          node, x, 1, 1, [](double a, double v) { return a * v; }, rounded);
    case OpKind::k_scan_max:
      return scan<double>(node, x, -inf, -inf, maximum, as_is);
    default:
      return scan<double>(node, x, inf, inf, minimum, as_is);
  }
}

// T orders the elements: int64_t for signed dtypes, uint64_t for unsigned ones and bool.
template <class T>
Tensor scan_integers(const Node& node, const Tensor& x) {
  auto wrapped = [&](int64_t v) { return wrap_to(node.attributes.accumulator, v); };
  auto as_is = [](int64_t v) { return v; };
  int width = x.dtype == DType::kBool ? 1 : bit_width(x.dtype);
  bool is_signed = is_signed_integer(x.dtype);
  int64_t highest = static_cast<int64_t>(~uint64_t{0} >> (64 - width + (is_signed ? 1 : 0)));
  int64_t lowest = is_signed ? -highest - 1 : 0;
  auto unsigned_op = [](auto op) {
    return [op](int64_t a, int64_t v) {
      return static_cast<int64_t>(op(static_cast<uint64_t>(a), static_cast<uint64_t>(v)));
    };
  };
  switch (node.op) {
    case OpKind::k_scan_sum:
      return scan<int64_t>(node, x, 0, 0, unsigned_op([](uint64_t a, uint64_t v) { return a + v; }), wrapped);
    case OpKind::k_scan_prod:
      return scan<int64_t>(node, x, 1, 1, unsigned_op([](uint64_t a, uint64_t v) { return a * v; }), wrapped);
    case OpKind::k_scan_max:
      return scan<int64_t>(
          node, x, lowest, lowest,
          [](int64_t a, int64_t v) { return static_cast<T>(a) > static_cast<T>(v) ? a : v; }, as_is);
    default:
      return scan<int64_t>(
          node, x, highest, highest,
          [](int64_t a, int64_t v) { return static_cast<T>(a) < static_cast<T>(v) ? a : v; }, as_is);
  }
}

}  // namespace

Expected<Tensor> run_scan(const Node& node, const Operands& operands, const ResultType&) {
  const Tensor& x = *operands[0];
  if (is_float(x.dtype)) return scan_floats(node, x);
  return is_signed_integer(x.dtype) ? scan_integers<int64_t>(node, x) : scan_integers<uint64_t>(node, x);
}

}  // namespace quernel::interpreter
