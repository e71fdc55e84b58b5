// Ops whose results depend on an order: scans, sorted positions, scatters.
#include <algorithm>

#include "random_graph/generator.h"

namespace quernel::random_graph_parts {

ValueId Generator::random_scan() {
  ValueId x = operand_if([&](ValueId v) { return graph.rank(v) >= 1 && graph.dtype(v) < DType::kI4; });
  if (x == kNoValue) return kNoValue;
  DType dtype = graph.dtype(x);
  int64_t axis = random.below(graph.rank(x)), size = graph.shape(x)[static_cast<size_t>(axis)].value();
  bool exclusive = random.chance(30), reverse = random.chance(30);
  Facts f = facts(x);
  int64_t choice = random.below(dtype == DType::kBool ? 2 : 4);
  if (choice < 2) {
    if (is_float(dtype)) exclusive = false;  // which would begin with an infinity
    return keep(
        build.scan(choice == 0 ? OpKind::k_scan_max : OpKind::k_scan_min, x, axis, exclusive, reverse), f);
  }
  if (choice == 2 && (!is_float(dtype) || size <= 3)) {
    double bound = std::max(1.0, f.bound * f.bound * f.bound);
    return keep(build.scan(OpKind::k_scan_prod, x, axis, exclusive, reverse),
                facts_of(dtype, bound, exact(x) ? f.fraction_bits * 3 : kInexact));
  }
  return keep(build.scan(OpKind::k_scan_sum, x, axis, exclusive, reverse),
              facts_of(dtype, f.bound * static_cast<double>(std::max<int64_t>(size, 1)), f.fraction_bits));
}

ValueId Generator::random_argsort() {
  ValueId x =
      operand_if([&](ValueId v) { return graph.rank(v) >= 1 && exact(v) && graph.dtype(v) < DType::kI4; });
  if (x == kNoValue) return kNoValue;
  int64_t axis = random.below(graph.rank(x)), size = graph.shape(x)[static_cast<size_t>(axis)].value();
  int64_t count = random.chance(50) ? size : random.between(0, size);
  return keep(build.argsort(x, axis, count, random.chance(50)), {});
}

ValueId Generator::random_scatter() {
  ValueId x = operand_if(
      [&](ValueId v) { return graph.rank(v) >= 1 && graph.rank(v) < 8 && graph.dtype(v) < DType::kI4; });
  if (x == kNoValue) return kNoValue;
  static const std::vector<ScatterMode> kModes{ScatterMode::kSet, ScatterMode::kMax, ScatterMode::kMin,
                                               ScatterMode::kAdd, ScatterMode::kMul};
  DType dtype = graph.dtype(x), index_dtype = random.chance(70) ? DType::kI64 : DType::kI32;
  ScatterMode mode = kModes[static_cast<size_t>(random.below(dtype == DType::kBool ? 3 : 5))];
  if (mode == ScatterMode::kMul && is_float(dtype)) mode = ScatterMode::kSet;  // powers leave any range
  std::vector<int64_t> dims = static_dims(graph.shape(x)), index, updates;
  int64_t rank = static_cast<int64_t>(dims.size()), choice = random.below(3), parameter = random.below(rank);
  OpKind op = OpKind::k_scatter_elements;
  if (choice == 0) {
    index = dims;
    for (int64_t& d : index)
      if (d > 1 && random.chance(30)) d = random.between(1, d);
    index[static_cast<size_t>(parameter)] = random.between(1, 6);
    updates = index;
  } else if (choice == 1) {
    op = OpKind::k_scatter_rows;
    for (int64_t d = random.between(0, 2); d > 0; --d) index.push_back(random.between(1, 4));
    updates.assign(dims.begin(), dims.begin() + parameter);
    updates.insert(updates.end(), index.begin(), index.end());
    updates.insert(updates.end(), dims.begin() + parameter + 1, dims.end());
  } else {
    op = OpKind::k_scatter_nd;
    if (random.chance(70)) parameter = 0;
    index.assign(dims.begin(), dims.begin() + parameter);
    if (random.chance(70)) index.push_back(random.between(1, 5));
    updates = index;
    int64_t tuple = random.between(1, rank - parameter);
    index.push_back(tuple);
    updates.insert(updates.end(), dims.begin() + parameter + tuple, dims.end());
  }
  int64_t count = element_count(updates).value_or(INT64_MAX);
  if (count > options.max_elements) return kNoValue;
  ValueId with = source(dtype, updates);
  Facts a = facts(x), b = facts(with);
  bool sums = mode == ScatterMode::kAdd;
  double bound = sums ? a.bound + b.bound * static_cast<double>(count) : std::max(a.bound, b.bound);
  int bits = exact(x) && exact(with) ? std::max(a.fraction_bits, b.fraction_bits) : kInexact;
  return keep(build.scatter(op, x, source(index_dtype, index), with, parameter, mode),
              facts_of(dtype, bound, bits));
}

}  // namespace quernel::random_graph_parts
