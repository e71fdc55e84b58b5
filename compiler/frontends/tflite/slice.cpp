// SLICE, STRIDED_SLICE, DYNAMIC_UPDATE_SLICE.
#include <algorithm>

#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {

// Operands: x, first indices, sizes of which -1 reaches to the end.
Status import_slice(NodeImport& n) {
  Shape dims = n.shape(n.in(0)), stops;
  QUERNEL_TRY(Shape starts, n.dims_in(1, "the first indices"));
  QUERNEL_TRY(Shape sizes, n.dims_in(2, "the sizes"));
  if (starts.size() != dims.size() || sizes.size() != dims.size())
    return n.invalid("expected an index and a size for each dim of " + to_string(dims) + ", found " +
                     std::to_string(starts.size()) + " and " + std::to_string(sizes.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    QUERNEL_CHECK(n.require_at_least(starts[i], 0, "a first index"));
    stops.push_back(sizes[i] == Dim(-1) ? dims[i] : starts[i] + sizes[i]);
    QUERNEL_CHECK(n.require_at_least(stops[i] - starts[i], 0, "a size"));
    QUERNEL_CHECK(n.require_at_least(dims[i] - stops[i], 0, "what is left behind a slice"));
  }
  return n.output(n.build.slice(n.in(0), starts, stops));
}

namespace {

// What STRIDED_SLICE does to one dim of x.
struct DimSlice {
  Dim start = 0, stop = 0;
  int64_t step = 1;  // negative: the slice is reversed
};

struct SliceSpec {
  std::vector<int64_t> begin, end, strides;
  int64_t begin_mask, end_mask, shrink_mask;
  bool relative_end;  // counts from the begin

  bool masked(int64_t mask, size_t i) const { return (mask >> i & 1) != 0; }
};

// Bounds of entry i for a dim, clamped to it. Of a free dim, only what needs no comparison with it.
Expected<DimSlice> slice_of(NodeImport& n, const SliceSpec& spec, size_t i, const Dim& dim) {
  DimSlice s;
  s.step = spec.strides[i];
  if (s.step == 0) return n.invalid("expected strides other than 0");
  if (spec.masked(spec.shrink_mask, i)) {
    Dim at = spec.begin[i] < 0 ? dim + spec.begin[i] : Dim(spec.begin[i]);
    QUERNEL_CHECK(n.require_at_least(at, 0, "an index"));
    QUERNEL_CHECK(n.require_at_least(dim - at, 1, "what is left from an index on"));
    return DimSlice{at, at + 1, 1};
  }
  auto bound = [&](int64_t value) -> Dim {
    if (!dim.is_const()) return value < 0 ? max(dim + value, 0) : min(dim, value);
    int64_t size = dim.value(), lo = s.step > 0 ? 0 : -1, hi = s.step > 0 ? size : size - 1;
    return Dim(std::clamp(value < 0 ? value + size : value, lo, hi));
  };
  if (s.step < 0) {
    QUERNEL_TRY([[maybe_unused]] int64_t size, n.dim(dim));
  }
  int64_t end = spec.end[i] + (spec.relative_end ? spec.begin[i] : 0);
  bool up = s.step > 0;
  s.start = !spec.masked(spec.begin_mask, i) ? bound(spec.begin[i]) : up ? Dim(0) : dim - 1;
  s.stop = !spec.masked(spec.end_mask, i) ? bound(end) : up ? dim : Dim(-1);
  if (s.step > 0) {
    s.stop = max(s.start, s.stop);
    return s;
  }
  // The same elements in ascending order.
  int64_t first = s.start.value(), last = s.stop.value(), step = -s.step;
  int64_t count = first > last ? (first - last + step - 1) / step : 0;
  s.start = count == 0 ? 0 : first - (count - 1) * step;
  s.stop = count == 0 ? 0 : first + 1;
  return s;
}

}  // namespace

// Operands: x, begin, end, strides, an entry for each dim, which masks may give another meaning.
Status import_strided_slice(NodeImport& n) {
  const auto& options = n.options<tflite::StridedSliceOptions>();
  SliceSpec spec{
      {}, {}, {}, options.begin_mask(), options.end_mask(), options.shrink_axis_mask(), options.offset()};
  QUERNEL_TRY(spec.begin, n.ints_in(1, "the first indices"));
  QUERNEL_TRY(spec.end, n.ints_in(2, "the last indices"));
  QUERNEL_TRY(spec.strides, n.ints_in(3, "the strides"));
  Shape dims = n.shape(n.in(0)), starts, stops, result;
  size_t entries = spec.begin.size(), added = 0;
  if (spec.end.size() != entries || spec.strides.size() != entries || entries > 32)
    return n.invalid("expected as many last indices and strides as first indices, found " +
                     std::to_string(spec.end.size()) + " and " + std::to_string(spec.strides.size()));
  bool has_ellipsis = false;
  for (size_t i = 0; i < entries; ++i) {
    bool ellipsis = spec.masked(options.ellipsis_mask(), i);
    added += spec.masked(options.new_axis_mask(), i) && !ellipsis;
    has_ellipsis = has_ellipsis || ellipsis;
  }
  size_t named = entries - added - has_ellipsis;
  if (named > dims.size())
    return n.invalid("expected entries for dims of " + to_string(dims) + ", found " + std::to_string(named));
  std::vector<int64_t> steps, reversed;
  auto keep = [&] {
    result.push_back(dims[starts.size()]);
    starts.push_back(0);
    stops.push_back(dims[stops.size()]);
    steps.push_back(1);
  };
  for (size_t i = 0; i < entries; ++i) {
    if (spec.masked(options.ellipsis_mask(), i)) {
      for (size_t k = dims.size() - named; k > 0; --k) keep();
      named = dims.size();
      continue;
    }
    if (spec.masked(options.new_axis_mask(), i)) {
      result.push_back(1);
      continue;
    }
    size_t d = starts.size();
    QUERNEL_TRY(DimSlice s, slice_of(n, spec, i, dims[d]));
    if (s.step < 0) reversed.push_back(static_cast<int64_t>(d));
    starts.push_back(s.start);
    stops.push_back(s.stop);
    steps.push_back(std::abs(s.step));
    if (!spec.masked(spec.shrink_mask, i))
      result.push_back(floordiv(s.stop - s.start + (steps[d] - 1), steps[d]));
  }
  while (starts.size() < dims.size()) keep();
  ValueId y = n.build.slice(n.in(0), starts, stops, steps);
  if (!reversed.empty()) y = n.build.flip(y, reversed);
  return n.output(n.build.reshape(y, result));
}

// Operands: x, update, first indices, which are clamped so that the update is inside. Each element of x reads the
// update's element at its place, or is kept.
Status import_dynamic_update_slice(NodeImport& n) {
  Shape dims = n.shape(n.in(0)), size = n.shape(n.in(1));
  QUERNEL_CHECK(n.expect_rank(1, n.rank(n.in(0)), n.rank(n.in(0))));
  QUERNEL_CHECK(n.expect_rank(2, 1, 1));
  if (n.dtype(n.in(0)) != n.dtype(n.in(1))) return n.no_kernel();
  QUERNEL_CHECK(
      n.require_equal(n.shape(n.in(2))[0], static_cast<int64_t>(dims.size()), "the number of indices"));
  ValueId update = n.in(1), inside = kNoValue;
  for (size_t d = 0; d < dims.size(); ++d) {
    QUERNEL_CHECK(n.require_at_least(dims[d] - size[d], 0, "what is left beside the update"));
    if (size[d] == dims[d]) continue;  // the index can only be 0
    ValueId first =
        n.build.reshape(n.build.slice(n.in(2), {static_cast<int64_t>(d)}, {static_cast<int64_t>(d) + 1}), {});
    first = n.build.cast(first, DType::kI64);
    first = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, first, 0.0),
                     n.number(DType::kI64, dims[d] - size[d]));
    ValueId place = n.binary(BinaryOp::k_sub, n.positions(DType::kI64, dims[d]), first);
    ValueId last = n.number(DType::kI64, size[d] - 1);
    ValueId here = n.binary(BinaryOp::k_and, n.binary(BinaryOp::k_ge, place, 0.0),
                            n.binary(BinaryOp::k_le, place, last));
    Shape column(dims.size() - d, Dim(1));
    column[0] = dims[d];
    here = n.build.reshape(here, column);
    inside = inside == kNoValue ? here : n.binary(BinaryOp::k_and, inside, here);
    ValueId clamped = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, place, 0.0), last);
    update = n.build.take(update, clamped, static_cast<int64_t>(d));
  }
  return n.output(inside == kNoValue ? update : n.build.where(inside, update, n.in(0)));
}

}  // namespace quernel::tflite_import
