// Movement: reshapes, permutes, slices, pads, concatenation.
#include <algorithm>
#include <numeric>

#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

Status check_count(NodeImport& n, const Shape& dims) {
  for (const Dim& d : dims)
    if (always_lt(d, 0)) return n.invalid("expected dims of at least 0, found " + to_string(dims));
  if (is_static(dims) && !element_count(static_dims(dims)))
    return n.refuse("shape " + to_string(dims) + " has more elements than fit 63 bits");
  return {};
}

// ---- slice

// One axis of a Slice in ONNX's terms: bounds may be negative or far out of range, and the step negative.
struct SliceAxis {
  int64_t axis;
  Dim start, end;
  int64_t step;
};

// A bound that counts from the start or, when negative, from the end of a dim.
Dim from_start(const Dim& value, const Dim& size) {
  if (always_lt(value, 0)) return size + value;
  if (always_le(0, value)) return value;
  Dim is_negative = min(max(Dim(0) - value, 0), 1);
  return value + size * is_negative;
}

// The same as a Dim within the dim.
Dim bound_of(const Dim& value, const Dim& size) {
  if (value.is_const() && value.value() >= INT32_MAX) return size;
  if (value.is_const() && value.value() < INT32_MIN) return 0;
  return max(min(from_start(value, size), size), 0);
}

Status emit_slice(NodeImport& n, ValueId x, const std::vector<SliceAxis>& slices) {
  Shape shape = n.shape(x), starts(shape.size(), Dim(0)), stops = shape;
  std::vector<int64_t> steps(shape.size(), 1), flipped;
  for (const SliceAxis& s : slices) {
    if (s.step == 0) return n.invalid("expected steps other than 0");
    if (s.step > 0) {
      starts[s.axis] = bound_of(s.start, shape[s.axis]);
      stops[s.axis] = bound_of(s.end, shape[s.axis]);
      steps[s.axis] = s.step;
      stops[s.axis] = max(stops[s.axis], starts[s.axis]);
      continue;
    }
    // Backward: the same elements counted from the end of the flipped axis.
    const Dim& size = shape[s.axis];
    auto within = [&](const Dim& value) {
      if (value.is_const() && value.value() >= INT32_MAX) return size - 1;
      if (value.is_const() && value.value() < INT32_MIN) return Dim(-1);
      return max(min(from_start(value, size), size - 1), -1);
    };
    Dim start = within(s.start), end = within(s.end);
    flipped.push_back(s.axis);
    starts[s.axis] = size - 1 - start;
    stops[s.axis] = max(size - 1 - end, size - 1 - start);
    steps[s.axis] = s.step == INT64_MIN ? INT64_MAX : -s.step;
  }
  // A step beyond the axis takes the first element only, as any larger one does.
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].is_const()) steps[i] = std::min(steps[i], std::max<int64_t>(shape[i].value(), 1));
  if (!flipped.empty()) x = n.build.flip(x, flipped);
  return n.output(n.build.slice(x, starts, stops, steps));
}

// ---- pad

// Negative pads cut off first, then positive ones grow.
Status emit_pad(NodeImport& n, const Shape& before, const Shape& after, double fill) {
  constexpr int64_t kLimit = int64_t{1} << 40;
  std::string mode = n.attr_string("mode", "constant");
  PadMode pad_mode;
  if (mode == "constant")
    pad_mode = PadMode::kConstant;
  else if (mode == "edge")
    pad_mode = PadMode::kEdge;
  else if (mode == "reflect")
    pad_mode = PadMode::kReflect;
  else if (mode == "wrap" && n.opset >= 19)
    pad_mode = PadMode::kWrap;
  else
    return n.invalid("attribute 'mode': expected constant, reflect, edge or wrap (opset 19), found '" + mode +
                     "'");
  ValueId x = n.in(0);
  Shape shape = n.shape(x), starts(shape.size(), Dim(0)), stops = shape, grow_before, grow_after;
  bool cuts = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (always_lt(kLimit, max(before[i], after[i])) || always_lt(min(before[i], after[i]), -kLimit))
      return n.refuse("expected pads below 2^40 elements");
    starts[i] = max(Dim(0) - before[i], 0);
    stops[i] = shape[i] + min(after[i], 0);
    cuts = cuts || !(starts[i] == Dim(0)) || !(stops[i] == shape[i]);
    if (always_lt(stops[i], starts[i]))
      return n.invalid("negative pads cut more than dim " + std::to_string(i) + " of " + to_string(shape) +
                       " has");
    grow_before.push_back(max(before[i], 0));
    grow_after.push_back(max(after[i], 0));
  }
  if (cuts) x = n.build.slice(x, starts, stops);
  return n.output(n.build.pad(x, grow_before, grow_after, pad_mode, fill));
}

Expected<double> exact_fill(NodeImport& n, int operand) {
  QUERNEL_TRY(Tensor tensor, n.constant_in(operand, "constant_value"));
  if (tensor.count() != 1)
    return n.invalid("expected one constant_value, found " + std::to_string(tensor.count()));
  if (!is_float(tensor.dtype) && std::abs(element_as_f64(tensor, 0)) > static_cast<double>(int64_t{1} << 53))
    return n.refuse("integer fill values beyond 2^53 are not supported");
  return element_as_f64(tensor, 0);
}

// ---- squeeze

Shape without(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
      result.push_back(shape[i]);
  return result;
}

}  // namespace

Status import_reshape(NodeImport& n) {
  if (!n.has(1)) return n.invalid("expected a shape as the second input");
  // One dim can only be that of all elements, whatever the operand says.
  if (n.shape(n.in(1)) == Shape{1} && !n.constant(n.in(1)))
    return n.ignore_attribute("allowzero"),
           n.output(n.build.reshape(n.in(0), {element_count(n.shape(n.in(0)))}));
  QUERNEL_TRY(Shape wanted, n.dims_in(1, "shape"));
  bool allow_zero = n.opset >= 14 && n.attr_int("allowzero", 0) != 0;
  Shape from = n.shape(n.in(0)), to;
  int64_t inferred = -1, known = 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Dim d = wanted[i];
    if (d == Dim(-1)) {
      if (inferred >= 0) return n.invalid("expected at most one dim of -1, found shape " + to_string(wanted));
      inferred = static_cast<int64_t>(i);
      d = 1;
    } else if (d == Dim(0) && !allow_zero) {
      if (i >= from.size())
        return n.invalid("dim " + std::to_string(i) + " of 0 copies a dim that " + to_string(from) +
                         " does not have");
      d = from[i];
    } else if (always_lt(d, 0)) {
      return n.invalid("expected dims of at least -1, found shape " + to_string(wanted));
    }
    to.push_back(d);
    if (d.is_const() && __builtin_mul_overflow(known, d.value(), &known))
      return n.invalid("shape " + to_string(wanted) + " overflows");
  }
  if (inferred >= 0) {
    Dim count = element_count(from), others = element_count(to);
    std::optional<Dim> rest = divide_exactly(count, others);
    if (others == Dim(0) || (!rest && is_static(from) && is_static(to)))
      return n.invalid("cannot infer the dim of -1: " + to_string(from) + " does not divide by the rest of " +
                       to_string(wanted));
    to[inferred] = rest ? *rest : floordiv(count, others);
  }
  if (!is_static(from) || !is_static(to))
    QUERNEL_CHECK(n.require_equal(element_count(to), element_count(from),
                                  "the elements of the shape " + to_string(wanted)));
  return n.output(n.build.reshape(n.in(0), to));
}

Status import_flatten(NodeImport& n) {
  ValueId x = n.in(0);
  Shape shape = n.shape(x);
  int64_t axis = n.attr_int("axis", 1), rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis > rank)
    return n.invalid("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  if (axis < 0) axis += rank;
  Shape left(shape.begin(), shape.begin() + axis), right(shape.begin() + axis, shape.end());
  return n.output(n.build.reshape(x, {element_count(left), element_count(right)}));
}

Status import_squeeze(NodeImport& n) {
  ValueId x = n.in(0);
  Shape shape = n.shape(x);
  // As many axes as there are dims are all of them, whichever comes first.
  bool all = n.opset >= 13 && n.has(1) && !n.constant(n.in(1)) && n.shape(n.in(1)) == Shape{n.rank(x)};
  std::optional<std::vector<int64_t>> axes;
  if (all) {
    axes.emplace(shape.size());
    std::iota(axes->begin(), axes->end(), 0);
  } else {
    QUERNEL_TRY(axes, n.axes(1, 13));
  }
  if (!axes) {
    axes.emplace();
    Diagnostics errors;  // all, so that every free dim is named
    for (size_t i = 0; i < shape.size(); ++i) {
      Expected<bool> goes = n.is(shape[i], 1);
      if (!goes)
        errors.push_back(goes.take_errors().front());
      else if (*goes)
        axes->push_back(static_cast<int64_t>(i));
    }
    if (!errors.empty()) return errors.front();
  }
  QUERNEL_TRY(axes, n.axes_in_range(*axes, n.rank(x)));
  for (int64_t axis : *axes)
    QUERNEL_CHECK(n.require_equal(shape[axis], 1, "dim " + std::to_string(axis) + " of " + to_string(shape)));
  return n.output(n.build.reshape(x, without(shape, *axes)));
}

Status import_unsqueeze(NodeImport& n) {
  ValueId x = n.in(0);
  // Around a scalar there are new dims only.
  if (Shape count = n.shape(n.in(1)); n.opset >= 13 && n.has(1) && !n.constant(n.in(1)) && n.rank(x) == 0 &&
                                      count.size() == 1 && is_static(count) && count[0].value() <= 64)
    return n.output(n.build.reshape(x, Shape(static_cast<size_t>(count[0].value()), Dim(1))));
  QUERNEL_TRY(std::optional<std::vector<int64_t>> axes, n.axes(1, 13));
  if (!axes) return n.invalid("axes are missing");
  if (axes->size() > 64) return n.refuse("expected at most 64 axes");
  QUERNEL_TRY(axes, n.axes_in_range(*axes, n.rank(x) + static_cast<int>(axes->size())));
  std::sort(axes->begin(), axes->end());
  Shape shape = n.shape(x);
  for (int64_t axis : *axes) shape.insert(shape.begin() + axis, Dim(1));
  return n.output(n.build.reshape(x, shape));
}

Status import_transpose(NodeImport& n) {
  int rank = n.rank(n.in(0));
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = n.attr_ints("perm").value_or(perm);
  if (static_cast<int>(perm.size()) != rank)
    return n.invalid("attribute 'perm': expected " + std::to_string(rank) + " values, found " +
                     std::to_string(perm.size()));
  QUERNEL_TRY(perm, n.axes_in_range(perm, rank));
  return n.output(n.build.permute(n.in(0), perm));
}

Status import_expand(NodeImport& n) {
  QUERNEL_TRY(Shape dims, n.dims_in(1, "shape"));
  QUERNEL_CHECK(check_count(n, dims));
  Expected<Shape> shape = broadcast_shapes(n.shape(n.in(0)), dims);
  if (!shape) {
    n.note_broadcast(n.shape(n.in(0)), dims);
    return n.invalid(shape.errors().front().message);
  }
  return n.output(n.build.broadcast_to(n.in(0), *shape));
}

// [d0, d1, …] as [1, d0, 1, d1, …], expanded to [r0, d0, r1, d1, …] and merged.
Status import_tile(NodeImport& n) {
  QUERNEL_TRY(Shape repeats, n.dims_in(1, "repeats"));
  Shape shape = n.shape(n.in(0)), split, grown, merged;
  if (repeats.size() != shape.size())
    return n.invalid("expected " + std::to_string(shape.size()) + " repeats, found " +
                     std::to_string(repeats.size()));
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (always_lt(repeats[i], 0))
      return n.invalid("expected repeats of at least 0, found " + to_string(repeats[i]));
    for (const Dim& factor : {repeats[i], shape[i]})
      if (factor.is_const() && __builtin_mul_overflow(count, factor.value(), &count))
        return n.refuse("a tiled tensor of more elements than fit 63 bits");
    split.insert(split.end(), {Dim(1), shape[i]});
    grown.insert(grown.end(), {repeats[i], shape[i]});
    merged.push_back(shape[i] * repeats[i]);
  }
  return n.output(n.build.reshape(n.build.broadcast_to(n.build.reshape(n.in(0), split), grown), merged));
}

Status import_concat(NodeImport& n) {
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 1), n.rank(n.in(0))));
  if (n.opset >= 4 && !n.attribute("axis")) return n.invalid("attribute 'axis' is missing");
  return n.output(n.build.cat(n.inputs, axis));
}

// Sizes from the attribute (before opset 13) or the operand, else equal parts; the last may be smaller with
// num_outputs.
Status import_split(NodeImport& n) {
  ValueId x = n.in(0);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 0), n.rank(x)));
  int64_t parts = n.proto.output_size();
  std::optional<Shape> sizes;
  if (n.opset < 13) {
    if (std::optional<std::vector<int64_t>> given = n.attr_ints("split")) sizes = make_shape(*given);
  } else if (n.has(1) && parts == 1 && !n.constant(n.in(1))) {
    sizes = Shape{n.shape(x)[static_cast<size_t>(axis)]};  // nothing else adds up
  } else if (n.has(1)) {
    QUERNEL_TRY(sizes, n.dims_in(1, "split"));
  }
  if (n.opset >= 18 && n.attribute("num_outputs") && n.attr_int("num_outputs", 0) != parts)
    return n.invalid("attribute 'num_outputs': expected " + std::to_string(parts) + ", found " +
                     std::to_string(n.attr_int("num_outputs", 0)));
  Dim total = n.shape(x)[static_cast<size_t>(axis)];
  if (!sizes) {
    if (n.opset < 18 && total.is_const() && total.value() % parts != 0)
      return n.invalid("expected dim " + std::to_string(axis) + " of " + to_string(n.shape(x)) +
                       " to divide by " + std::to_string(parts));
    if (n.opset < 18)
      QUERNEL_CHECK(
          n.require_equal(floormod(total, parts), 0,
                          "the rest of dim " + std::to_string(axis) + " by " + std::to_string(parts)));
    Dim part = ceildiv(total, parts);
    sizes.emplace(static_cast<size_t>(parts), part);
    sizes->back() = total - part * (parts - 1);
    // Of a free dim too few for all parts the last ones have what is left, or nothing.
    for (int64_t i = 1; !total.is_const() && !always_le(0, sizes->back()) && i <= parts; ++i)
      (*sizes)[static_cast<size_t>(i - 1)] = min(part * i, total) - min(part * (i - 1), total);
  }
  Dim start = 0;
  for (const Dim& size : *sizes) {
    start += size;
    if (always_lt(size, 0) || always_lt(total, start))
      return n.invalid("expected split sizes that add up to " + to_string(total));
  }
  bool adds_up = start == total || !start.is_const() || !total.is_const();
  if (adds_up) QUERNEL_CHECK(n.require_equal(start, total, "the sum of the split sizes"));
  if (!adds_up || static_cast<int64_t>(sizes->size()) != parts)
    return n.invalid("expected " + std::to_string(parts) + " split sizes that add up to " + to_string(total));
  std::vector<ValueId> outputs;
  Shape starts(n.shape(x).size(), Dim(0)), stops = n.shape(x);
  start = 0;
  for (const Dim& size : *sizes) {
    starts[axis] = start;
    stops[axis] = start += size;
    outputs.push_back(n.build.slice(x, starts, stops));
  }
  return n.set_outputs(outputs);
}

Status import_slice_attributes(NodeImport& n) {
  std::optional<std::vector<int64_t>> starts = n.attr_ints("starts"), ends = n.attr_ints("ends"),
                                      axes = n.attr_ints("axes");
  if (!starts || !ends || starts->size() != ends->size() || (axes && axes->size() != starts->size()))
    return n.invalid("expected attributes 'starts', 'ends' and 'axes' of one length");
  std::vector<int64_t> order(starts->size());
  std::iota(order.begin(), order.end(), 0);
  QUERNEL_TRY(order, n.axes_in_range(axes.value_or(order), n.rank(n.in(0))));
  std::vector<SliceAxis> slices;
  for (size_t i = 0; i < order.size(); ++i) slices.push_back({order[i], (*starts)[i], (*ends)[i], 1});
  return emit_slice(n, n.in(0), slices);
}

Status import_slice(NodeImport& n) {
  QUERNEL_TRY(Shape starts, n.dims_in(1, "starts"));
  QUERNEL_TRY(Shape ends, n.dims_in(2, "ends"));
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (n.has(3)) {
    QUERNEL_TRY(axes, n.ints_in(3, "axes"));
  }
  if (n.has(4)) {
    QUERNEL_TRY(steps, n.ints_in(4, "steps"));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return n.invalid("expected starts, ends, axes and steps of one length");
  QUERNEL_TRY(axes, n.axes_in_range(axes, n.rank(n.in(0))));
  std::vector<SliceAxis> slices;
  for (size_t i = 0; i < axes.size(); ++i) slices.push_back({axes[i], starts[i], ends[i], steps[i]});
  return emit_slice(n, n.in(0), slices);
}

Status import_pad_attributes(NodeImport& n) {
  size_t rank = static_cast<size_t>(n.rank(n.in(0)));
  std::vector<int64_t> pads = n.attr_ints("pads").value_or(std::vector<int64_t>());
  if (pads.size() != 2 * rank)
    return n.invalid("attribute 'pads': expected " + std::to_string(2 * rank) + " values, found " +
                     std::to_string(pads.size()));
  double fill = n.attr_float("value", 0);
  auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  return emit_pad(n, Shape(pads.begin(), middle), Shape(middle, pads.end()), fill);
}

Status import_pad(NodeImport& n) {
  int rank = n.rank(n.in(0));
  QUERNEL_TRY(Shape pads, n.dims_in(1, "pads"));
  double fill = 0;
  bool grows = !std::all_of(pads.begin(), pads.end(), [](const Dim& d) { return always_le(d, 0); });
  if (n.has(2) && grows && n.attr_string("mode", "constant") == "constant") {
    QUERNEL_TRY(fill, exact_fill(n, 2));
  }
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (n.has(3)) {
    QUERNEL_TRY(axes, n.ints_in(3, "axes"));
    QUERNEL_TRY(axes, n.axes_in_range(axes, rank));
  }
  if (pads.size() != 2 * axes.size())
    return n.invalid("expected " + std::to_string(2 * axes.size()) + " pads, found " +
                     std::to_string(pads.size()));
  Shape before(static_cast<size_t>(rank), 0), after(before);
  for (size_t i = 0; i < axes.size(); ++i) {
    before[axes[i]] = pads[i];
    after[axes[i]] = pads[axes.size() + i];
  }
  return emit_pad(n, before, after, fill);
}

Status import_depth_to_space(NodeImport& n) {
  int64_t block = n.attr_int("blocksize", 0);
  std::string mode = n.opset < 11 ? "DCR" : n.attr_string("mode", "DCR");
  Shape d = n.shape(n.in(0));
  if (d.size() != 4 || block < 1 || block > (1 << 20) || !divide_exactly(d[1], block * block))
    return n.invalid("expected [N,C,H,W] with channels in blocks of " + std::to_string(block) +
                     " squared, found " + to_string(n.shape(n.in(0))));
  if (mode != "DCR" && mode != "CRD")
    return n.invalid("attribute 'mode': expected DCR or CRD, found '" + mode + "'");
  Dim channels = floordiv(d[1], block * block);
  bool depth_first = mode == "DCR";
  ValueId x = depth_first ? n.build.reshape(n.in(0), {d[0], block, block, channels, d[2], d[3]})
                          : n.build.reshape(n.in(0), {d[0], channels, block, block, d[2], d[3]});
  x = n.build.permute(
      x, depth_first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3});
  return n.output(n.build.reshape(x, {d[0], channels, d[2] * block, d[3] * block}));
}

Status import_space_to_depth(NodeImport& n) {
  int64_t block = n.attr_int("blocksize", 0);
  std::string mode = n.opset < 28 ? "DCR" : n.attr_string("mode", "DCR");
  Shape d = n.shape(n.in(0));
  auto divides = [&](const Dim& size) { return !size.is_const() || size.value() % block == 0; };
  if (d.size() != 4 || block < 1 || block > (1 << 20) || !divides(d[2]) || !divides(d[3]))
    return n.invalid("expected [N,C,H,W] with height and width in blocks of " + std::to_string(block) +
                     ", found " + to_string(n.shape(n.in(0))));
  if (mode != "DCR" && mode != "CRD")
    return n.invalid("attribute 'mode': expected DCR or CRD, found '" + mode + "'");
  for (int i = 2; i < 4; ++i)
    QUERNEL_CHECK(n.require_equal(
        floormod(d[static_cast<size_t>(i)], block), 0,
        "the rest of dim " + std::to_string(i) + " by the block of " + std::to_string(block)));
  Dim rows = floordiv(d[2], block), columns = floordiv(d[3], block);
  ValueId x = n.build.reshape(n.in(0), {d[0], d[1], rows, block, columns, block});
  x = n.build.permute(
      x, mode == "DCR" ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4});
  return n.output(n.build.reshape(x, {d[0], d[1] * (block * block), rows, columns}));
}

namespace {

// The mask of known sizes and diagonal, as a constant.
ValueId constant_triangle(NodeImport& n, int64_t rows, int64_t columns, int64_t diagonal, bool upper) {
  diagonal = std::clamp(diagonal, -rows, columns);
  std::vector<uint8_t> mask(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      mask[static_cast<size_t>(i * columns + j)] = upper ? j >= i + diagonal : j <= i + diagonal;
  return n.build.constant({DType::kBool, {rows, columns}, Bytes::own(std::move(mask))});
}

}  // namespace

// Keeps a triangle of the last two dims, by a mask: a constant, or distances from the main diagonal compared
// with k.
Status import_trilu(NodeImport& n) {
  constexpr int64_t kMaxMask = int64_t{1} << 26;
  bool upper = n.attr_int("upper", 1) != 0;
  ValueId x = n.in(0);
  int rank = n.rank(x);
  if (rank < 2) return n.invalid("expected rank 2 or more, found " + to_string(n.shape(x)));
  const Tensor* known = n.has(1) ? n.constant(n.in(1)) : nullptr;
  if (n.has(1) && (is_float(n.dtype(n.in(1))) || !(element_count(n.shape(n.in(1))) == Dim(1))))
    return n.invalid("expected k of one integer, found " + to_string(n.build.graph().type(n.in(1))));
  int64_t diagonal = known ? element_as_i64(*known, 0) : 0;
  Dim rows = n.shape(x)[static_cast<size_t>(rank) - 2], columns = n.shape(x)[static_cast<size_t>(rank) - 1];
  ValueId keep = kNoValue;
  bool small = rows.is_const() && columns.is_const() &&
               (rows.value() == 0 || columns.value() <= kMaxMask / rows.value());
  if (small && (known || !n.has(1))) {
    keep = constant_triangle(n, rows.value(), columns.value(), diagonal, upper);
  } else {
    ValueId distance =
        n.binary(BinaryOp::k_sub, n.positions(DType::kI64, columns), n.positions(DType::kI64, rows, 1));
    ValueId k = known || !n.has(1) ? n.build.constant(i64_tensor({}, {diagonal}))
                                   : n.build.cast(n.build.reshape(n.in(1), {}), DType::kI64);
    keep = n.binary(upper ? BinaryOp::k_ge : BinaryOp::k_le, distance, k);
  }
  return n.output(n.build.where(keep, x, n.scalar(n.dtype(x), 0)));
}

}  // namespace quernel::onnx_import
