#include <algorithm>
#include <numeric>

#include "random_graph/generator.h"

namespace quernel::random_graph_parts {

ValueId Generator::random_movement() {
  ValueId x = any_operand();
  Facts f = facts(x);
  int rank = graph.rank(x);
  switch (random.below(9)) {
    case 0:
      return keep(random_reshape(x), f);
    case 1:
    case 2: {
      std::vector<int64_t> perm(static_cast<size_t>(rank));
      std::iota(perm.begin(), perm.end(), 0);
      for (size_t i = perm.size(); i > 1; --i)
        std::swap(perm[i - 1], perm[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
      return keep(build.permute(x, std::move(perm)), f);
    }
    case 3:
      return keep(random_expand(x), f);
    case 4:
      return keep(random_slice(x), f);
    case 5: {
      std::vector<int64_t> axes;
      for (int64_t d = 0; d < rank; ++d)
        if (random.chance(50)) axes.push_back(d);
      return keep(build.flip(x, std::move(axes)), f);
    }
    case 6:
      return random_pad(x);
    case 7:
      return random_view(x);
    default:
      return keep(build.add(OpKind::k_contiguous, {x}), f);
  }
}

ValueId Generator::random_reshape(ValueId x) {
  int64_t count = element_count(static_dims(graph.shape(x))).value_or(0);
  std::vector<int64_t> dims;
  while (count > 1 && dims.size() < 4) {
    std::vector<int64_t> divisors;
    for (int64_t d = 2; d <= std::min<int64_t>(count, 64); ++d)
      if (count % d == 0) divisors.push_back(d);
    int64_t divisor = divisors.empty() || random.chance(20) ? count : random.pick(divisors);
    dims.push_back(divisor);
    count /= divisor;
  }
  if (count != 1 || dims.empty() || random.chance(20))
    dims.insert(dims.begin() + random.below(static_cast<int64_t>(dims.size()) + 1), count);
  return build.reshape(x, make_shape(dims));
}

ValueId Generator::random_expand(ValueId x) {
  Attributes attributes;
  attributes.shape = graph.shape(x);
  for (Dim& d : attributes.shape)
    if (d == Dim(1) && random.chance(60)) d = random.between(2, 5);
  if (attributes.shape == graph.shape(x)) return kNoValue;
  return build.add(OpKind::k_expand, {x}, std::move(attributes));
}

ValueId Generator::random_slice(ValueId x) {
  Shape starts, stops;
  std::vector<int64_t> steps;
  for (const Dim& d : graph.shape(x)) {
    int64_t size = d.value();
    bool whole = random.chance(40) || size == 0;
    int64_t start = whole ? 0 : random.below(size),
            stop = whole ? size : random.between(start + (random.chance(98) ? 1 : 0), size);
    starts.push_back(start);
    stops.push_back(stop);
    steps.push_back(random.chance(60) ? 1 : random.between(1, 3));
  }
  return build.slice(x, std::move(starts), std::move(stops), std::move(steps));
}

ValueId Generator::random_pad(ValueId x) {
  static const std::vector<PadMode> kModes{PadMode::kConstant, PadMode::kConstant, PadMode::kEdge,
                                           PadMode::kReflect, PadMode::kWrap};
  PadMode mode = random.pick(kModes);
  Shape before, after;
  for (const Dim& d : graph.shape(x)) {
    int64_t most = mode == PadMode::kConstant  ? 3
                   : mode == PadMode::kReflect ? d.value() - 1
                   : d.value() == 0            ? 0
                                               : 3;
    bool pads = random.chance(50) && most > 0;
    before.push_back(pads ? random.between(0, std::min<int64_t>(most, 3)) : 0);
    after.push_back(pads ? random.between(0, std::min<int64_t>(most, 3)) : 0);
  }
  DType dtype = graph.dtype(x);
  double fill = mode == PadMode::kConstant && random.chance(50)
                    ? (dtype == DType::kBool || is_unsigned_integer(dtype) ? 1 : -1)
                    : 0;
  Facts f = facts(x);
  return keep(build.pad(x, std::move(before), std::move(after), mode, fill),
              facts_of(dtype, std::max(f.bound, 1.0), f.fraction_bits));
}

// Overlapping windows along one dim, as poolings read them, sometimes past the ends where a guard gives the
// fill.
ValueId Generator::random_view(ValueId x) {
  if (graph.rank(x) == 0 || graph.rank(x) > 7) return kNoValue;
  std::vector<int64_t> dims = static_dims(graph.shape(x));
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return kNoValue;
  size_t axis = static_cast<size_t>(random.below(static_cast<int64_t>(dims.size())));
  int64_t size = dims[axis], step = random.between(1, 2),
          window = random.between(1, std::min<int64_t>(size, 3));
  bool guarded = random.chance(40);
  int64_t before = guarded ? random.between(0, 2) : 0, after = guarded ? random.between(0, 2) : 0;
  IndexMap map;
  for (size_t d = 0; d < dims.size(); ++d) map.indices.push_back(IndexExpr::axis(static_cast<int>(d)));
  IndexExpr position = IndexExpr::axis(static_cast<int>(axis)) * step +
                       IndexExpr::axis(static_cast<int>(dims.size())) + -before;
  map.indices[axis] = position;
  if (guarded) map.guards.push_back({position, 0, size});
  dims[axis] = (size + before + after - window) / step + 1;
  dims.push_back(window);
  Facts f = facts(x);
  return keep(build.view(x, make_shape(dims), std::move(map), guarded ? 1 : 0),
              facts_of(graph.dtype(x), std::max(f.bound, 1.0), f.fraction_bits));
}

ValueId Generator::random_cat() {
  ValueId x = any_operand();
  if (graph.rank(x) == 0) return kNoValue;
  std::vector<ValueId> operands{x};
  int64_t extra = random.between(1, 2), axis = random.below(graph.rank(x));
  double bound = facts(x).bound;
  int bits = facts(x).fraction_bits;
  for (int64_t i = 0; i < extra; ++i) {
    ValueId other = operand_if([&](ValueId v) {
      if (graph.dtype(v) != graph.dtype(x) || graph.rank(v) != graph.rank(x)) return false;
      for (int64_t d = 0; d < graph.rank(x); ++d)
        if (d != axis && !(graph.shape(v)[static_cast<size_t>(d)] == graph.shape(x)[static_cast<size_t>(d)]))
          return false;
      return true;
    });
    if (other == kNoValue) other = partner(x);
    operands.push_back(other);
    bound = std::max(bound, facts(other).bound);
    bits = exact(other) && bits != kInexact ? std::max(bits, facts(other).fraction_bits) : kInexact;
  }
  return keep(build.cat(std::move(operands), axis), facts_of(graph.dtype(x), bound, bits));
}

ValueId Generator::random_reduce() {
  ValueId x = operand();
  DType dtype = graph.dtype(x);
  std::vector<int64_t> axes;
  int64_t count = 1;
  for (int64_t d = 0; d < graph.rank(x); ++d) {
    if (!random.chance(50)) continue;
    axes.push_back(d);
    count *= graph.shape(x)[static_cast<size_t>(d)].value();
  }
  bool keepdims = random.chance(50);
  Facts f = facts(x);
  if (random.chance(12) && exact(x) && !axes.empty() &&
      graph.shape(x)[static_cast<size_t>(axes[0])].value() > 0) {
    Attributes attributes;
    attributes.ints = {axes[0]};
    attributes.keepdims = keepdims;
    attributes.dtype = random.chance(50) ? DType::kI64 : DType::kI32;
    attributes.select_last = random.chance(30);
    return keep(build.add(random.chance(50) ? OpKind::k_reduce_argmax : OpKind::k_reduce_argmin, {x},
                          std::move(attributes)),
                {});
  }
  if (!is_float(dtype)) {
    static const std::vector<OpKind> kAll{OpKind::k_reduce_and, OpKind::k_reduce_or,  OpKind::k_reduce_max,
                                          OpKind::k_reduce_min, OpKind::k_reduce_sum, OpKind::k_reduce_prod};
    OpKind op = kAll[static_cast<size_t>(random.below(dtype == DType::kBool ? 4 : 6))];
    return keep(build.reduce(op, x, std::move(axes), keepdims), {});
  }
  int64_t choice = random.below(10);
  if (choice < 3 && count > 0)
    return keep(
        build.reduce(choice == 0 ? OpKind::k_reduce_min : OpKind::k_reduce_max, x, std::move(axes), keepdims),
        f);
  if (choice == 3 && count <= 3) {
    double bound = std::max(1.0, f.bound * f.bound * f.bound);
    return keep(build.reduce(OpKind::k_reduce_prod, x, std::move(axes), keepdims),
                facts_of(dtype, bound, exact(x) ? f.fraction_bits * 3 : kInexact));
  }
  // The sum must fit the mantissa in any order to stay exact.
  return keep(build.reduce(OpKind::k_reduce_sum, x, std::move(axes), keepdims),
              facts_of(dtype, f.bound * static_cast<double>(std::max<int64_t>(count, 1)), f.fraction_bits));
}

}  // namespace quernel::random_graph_parts
