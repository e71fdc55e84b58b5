// argsort, with the standard library's stable sort of each line.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

template <class Less>
std::vector<int64_t> sorted_positions(const Node& node, const Tensor& x, const ResultType& type, Less less) {
  size_t axis = static_cast<size_t>(node.attributes.ints[0]);
  int64_t size = x.dims[axis], kept = type.dims[axis], inner = 1;
  for (size_t d = axis + 1; d < x.dims.size(); ++d) inner *= x.dims[d];
  std::vector<int64_t> result(static_cast<size_t>(type.count())), order(static_cast<size_t>(size));
  int64_t lines = kept == 0 ? 0 : type.count() / kept;
  for (int64_t line = 0; line < lines; ++line) {
    int64_t outer = line / inner, first = outer * size * inner + line % inner;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      int64_t i = first + a * inner, j = first + b * inner;
      return node.attributes.descending ? less(j, i) : less(i, j);
    });
    for (int64_t k = 0; k < kept; ++k)
      result[static_cast<size_t>((outer * kept + k) * inner + line % inner)] = order[static_cast<size_t>(k)];
  }
  return result;
}

}  // namespace

Expected<Tensor> run_sort(const Node& node, const Operands& operands, const ResultType& type) {
  const Tensor& x = *operands[0];
  std::vector<int64_t> positions;
  if (is_float(x.dtype)) {
    std::vector<double> v(static_cast<size_t>(x.count()));
    load(x, 0, x.count(), v.data());
    positions = sorted_positions(node, x, type, [&](int64_t i, int64_t j) {
      double a = v[static_cast<size_t>(i)], b = v[static_cast<size_t>(j)];
      return std::isnan(b) ? !std::isnan(a) : a < b;
    });
  } else {
    std::vector<int64_t> v(static_cast<size_t>(x.count()));
    load(x, 0, x.count(), v.data());
    bool is_signed = is_signed_integer(x.dtype);
    positions = sorted_positions(node, x, type, [&](int64_t i, int64_t j) {
      int64_t a = v[static_cast<size_t>(i)], b = v[static_cast<size_t>(j)];
      return is_signed ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
    });
  }
  return make_tensor(DType::kI64, type.dims, positions);
}

}  // namespace quernel::interpreter
