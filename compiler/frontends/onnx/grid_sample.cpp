// Reading a tensor at computed positions between its elements: GridSample, AffineGrid and DeformConv.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/conv.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/window.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {
namespace {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Outside { kZeros, kBorder, kReflection };

struct Sampling {
  Interpolation interpolation = Interpolation::kLinear;
  Outside outside = Outside::kZeros;
  bool align_corners = false;
};

ValueId clamp(NodeImport& n, ValueId x, ValueId lo, ValueId hi) {
  return n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, x, lo), hi);
}

// Folds x back and forth between lo and hi.
ValueId reflect(NodeImport& n, ValueId x, ValueId lo, ValueId hi) {
  ValueId range = n.binary(BinaryOp::k_sub, hi, lo);
  ValueId distance = n.unary(UnaryOp::k_abs, n.binary(BinaryOp::k_sub, x, lo));
  ValueId folds = n.unary(UnaryOp::k_floor, n.binary(BinaryOp::k_div, distance, range));
  ValueId rest = n.binary(BinaryOp::k_sub, distance, n.binary(BinaryOp::k_mul, folds, range));
  ValueId odd = n.binary(BinaryOp::k_ne, n.binary(BinaryOp::k_fmod, folds, 2.0), 0.0);
  ValueId folded =
      n.build.where(odd, n.binary(BinaryOp::k_sub, hi, rest), n.binary(BinaryOp::k_add, rest, lo));
  return n.build.where(n.binary(BinaryOp::k_le, range, 0.0), lo, folded);
}

// What one spatial dim contributes to a sample: an index, a weight (kNoValue: 1), and whether it is inside
// (kNoValue: always).
struct Tap {
  ValueId index, weight, inside;
};

// Convolution weights of Keys' cubic with a = -0.75 at distance `d`, which is between 0 and 1 (near) or 1
// and 2.
ValueId cubic_weight(NodeImport& n, ValueId d, bool near) {
  constexpr double a = -0.75;
  auto step = [&](ValueId x, double add) { return n.binary(BinaryOp::k_add, x, add); };
  auto times = [&](ValueId x, ValueId y) { return n.binary(BinaryOp::k_mul, x, y); };
  if (near) {
    ValueId inner = step(n.binary(BinaryOp::k_mul, d, a + 2), -(a + 3));
    return step(times(times(inner, d), d), 1);
  }
  ValueId inner = step(n.binary(BinaryOp::k_mul, d, a), -5 * a);
  return step(times(step(times(inner, d), 8 * a), d), -4 * a);
}

// The taps along one dim of `size` elements at float positions.
std::vector<Tap> taps_along(NodeImport& n, ValueId position, const Dim& size, DType index_dtype,
                            const Sampling& s) {
  DType dtype = n.dtype(position);
  ValueId zero = n.scalar(dtype, 0), last = n.number(dtype, size - 1);
  ValueId lo = s.align_corners ? zero : n.scalar(dtype, -0.5);
  ValueId hi = s.align_corners ? last : n.binary(BinaryOp::k_add, last, 0.5);
  if (s.interpolation == Interpolation::kNearest) position = n.unary(UnaryOp::k_round, position);
  // Where a cubic's position lies outside, only its taps move inside.
  bool moves = s.interpolation != Interpolation::kCubic;
  if (moves && s.outside == Outside::kReflection) position = reflect(n, position, lo, hi);
  if (moves && s.outside == Outside::kBorder) {
    ValueId beyond = n.binary(BinaryOp::k_or, n.binary(BinaryOp::k_lt, position, lo),
                              n.binary(BinaryOp::k_gt, position, hi));
    position = n.build.where(beyond, clamp(n, position, zero, last), position);
  }
  auto tap = [&](ValueId at, ValueId weight) {
    ValueId inside = kNoValue;
    if (s.outside == Outside::kZeros)
      inside =
          n.binary(BinaryOp::k_and, n.binary(BinaryOp::k_ge, at, 0.0), n.binary(BinaryOp::k_le, at, last));
    if (s.outside == Outside::kReflection) at = n.unary(UnaryOp::k_trunc, reflect(n, at, lo, hi));
    return Tap{n.build.cast(clamp(n, at, zero, last), index_dtype), weight, inside};
  };
  if (s.interpolation == Interpolation::kNearest) return {tap(position, kNoValue)};
  ValueId base = n.unary(UnaryOp::k_floor, position), fraction = n.binary(BinaryOp::k_sub, position, base);
  ValueId rest = n.binary(BinaryOp::k_sub, n.scalar(n.dtype(position), 1), fraction);
  auto at = [&](double step) { return n.binary(BinaryOp::k_add, base, step); };
  if (s.interpolation == Interpolation::kLinear) return {tap(base, rest), tap(at(1), fraction)};
  return {tap(at(-1), cubic_weight(n, n.binary(BinaryOp::k_add, fraction, 1.0), false)),
          tap(base, cubic_weight(n, fraction, true)), tap(at(1), cubic_weight(n, rest, true)),
          tap(at(2), cubic_weight(n, n.binary(BinaryOp::k_add, rest, 1.0), false))};
}

// x [N, C, D...] read at positions (one value of [N, P] per spatial dim): [N, C, P].
Expected<ValueId> sample(NodeImport& n, ValueId x, const Shape& dims, const std::vector<ValueId>& position,
                         const Sampling& s) {
  constexpr int64_t kMaxPlane = (int64_t{1} << 31) - 1;
  Shape spatial(dims.begin() + 2, dims.end());
  std::optional<int64_t> known = is_static(spatial) ? element_count(static_dims(spatial)) : 1;
  if (!known || *known > kMaxPlane)
    return n.refuse("sampling planes of more than 2^31 elements is not supported");
  for (const Dim& d : spatial) {
    // Nothing can be read from a plane that may be empty.
    if (!d.is_const()) QUERNEL_CHECK(n.require_at_least(d, 1, "a dim that is sampled"));
    if (d == Dim(0)) return n.invalid("expected elements to sample, found " + to_string(n.shape(x)));
  }
  Dim plane = element_count(spatial);
  DType index_dtype = plane.bounds().hi <= kMaxPlane ? DType::kI32 : DType::kI64;
  ValueId flat = n.build.reshape(x, {dims[0], dims[1], plane});
  // Every combination of taps, one per dim.
  std::vector<Tap> combined{{kNoValue, kNoValue, kNoValue}};
  auto join = [&](BinaryOp op, ValueId a, ValueId b) {
    return a == kNoValue ? b : b == kNoValue ? a : n.binary(op, a, b);
  };
  for (size_t d = 0; d < spatial.size(); ++d) {
    std::vector<Tap> next;
    std::vector<Tap> along = taps_along(n, position[d], spatial[d], index_dtype, s);
    for (const Tap& outer : combined)
      for (const Tap& inner : along) {
        ValueId index = inner.index;
        if (outer.index != kNoValue)
          index = n.binary(BinaryOp::k_add,
                           n.binary(BinaryOp::k_mul, outer.index, n.number(index_dtype, spatial[d])), index);
        next.push_back({index, join(BinaryOp::k_mul, outer.weight, inner.weight),
                        join(BinaryOp::k_and, outer.inside, inner.inside)});
      }
    combined = std::move(next);
  }
  Shape points = n.shape(combined[0].index);
  Shape one_channel{points[0], 1, points[1]}, all_channels{points[0], dims[1], points[1]};
  ValueId sum = kNoValue;
  for (const Tap& tap : combined) {
    ValueId index = n.build.broadcast_to(n.build.reshape(tap.index, one_channel), all_channels);
    Attributes along_plane;
    along_plane.ints = {2};
    ValueId term = n.build.add(OpKind::k_gather_elements, {flat, index}, std::move(along_plane));
    if (tap.inside != kNoValue)
      term = n.build.where(n.build.reshape(tap.inside, one_channel), term, n.scalar(n.dtype(x), 0));
    if (tap.weight != kNoValue)
      term =
          n.binary(BinaryOp::k_mul, term, n.build.cast(n.build.reshape(tap.weight, one_channel), n.dtype(x)));
    sum = join(BinaryOp::k_add, sum, term);
  }
  return sum;
}

Expected<Sampling> read_sampling(NodeImport& n) {
  Sampling s;
  std::string mode = n.attr_string("mode", n.opset < 20 ? "bilinear" : "linear"),
              padding = n.attr_string("padding_mode", "zeros");
  if (mode == "nearest")
    s.interpolation = Interpolation::kNearest;
  else if (mode == "cubic" || mode == "bicubic")
    s.interpolation = Interpolation::kCubic;
  else if (mode != "linear" && mode != "bilinear")
    return n.invalid("attribute 'mode': expected linear, nearest or cubic, found '" + mode + "'");
  if (padding == "border")
    s.outside = Outside::kBorder;
  else if (padding == "reflection")
    s.outside = Outside::kReflection;
  else if (padding != "zeros")
    return n.invalid("attribute 'padding_mode': expected zeros, border or reflection, found '" + padding +
                     "'");
  s.align_corners = n.attr_int("align_corners", 0) != 0;
  return s;
}

}  // namespace

Status import_grid_sample(NodeImport& n) {
  QUERNEL_TRY(Sampling s, read_sampling(n));
  Shape dims = n.shape(n.in(0)), grid = n.shape(n.in(1));
  size_t spatial = dims.size() - 2;
  if (dims.size() < 3 || grid.size() != dims.size() || !(grid[0] == dims[0]) ||
      !(grid.back() == Dim(static_cast<int64_t>(spatial))))
    return n.invalid("expected an input [N,C,D...] and a grid [N,O...," + std::to_string(spatial) +
                     "], found " + to_string(n.shape(n.in(0))) + " and " + to_string(n.shape(n.in(1))));
  DType dtype = n.dtype(n.in(0));
  bool nearest = s.interpolation == Interpolation::kNearest;
  if (!nearest && !is_float(dtype))
    return n.refuse("interpolating " + std::string(to_string(dtype)) + " is not supported",
                    "cast to float before");
  Shape result{dims[0], dims[1]};
  result.insert(result.end(), grid.begin() + 1, grid.end() - 1);
  Dim points = element_count(Shape(grid.begin() + 1, grid.end() - 1));
  if (element_count(result) == Dim(0)) return n.output(n.full(dtype, result, 0));
  ValueId flat_grid = n.build.reshape(n.widen(n.in(1)), {dims[0], points, grid.back()});
  std::vector<ValueId> position;
  for (size_t d = 0; d < spatial; ++d) {
    // The grid names the last spatial dim first.
    int64_t column = static_cast<int64_t>(spatial - 1 - d);
    ValueId g = n.build.reshape(n.build.slice(flat_grid, {0, 0, column}, {dims[0], points, column + 1}),
                                {dims[0], points});
    ValueId from_start = n.binary(BinaryOp::k_add, g, 1.0);
    auto scaled = [&](const Dim& size) {
      return n.binary(BinaryOp::k_mul, from_start, n.number(n.dtype(g), size));
    };
    ValueId twice =
        s.align_corners ? scaled(dims[d + 2] - 1) : n.binary(BinaryOp::k_sub, scaled(dims[d + 2]), 1.0);
    position.push_back(n.binary(BinaryOp::k_div, twice, 2.0));
  }
  QUERNEL_TRY(ValueId y, sample(n, nearest ? n.in(0) : n.widen(n.in(0)), dims, position, s));
  return n.output(n.build.cast(n.build.reshape(y, result), dtype));
}

// theta [N,k,k+1] applied to the homogeneous coordinates of a regular grid, which are constants.
Status import_affine_grid(NodeImport& n) {
  bool align_corners = n.attr_int("align_corners", 0) != 0;
  QUERNEL_TRY(std::vector<int64_t> size, n.ints_in(1, "size"));
  QUERNEL_TRY(std::vector<int64_t> theta, n.dims(n.in(0)));
  if (size.size() < 4 || size.size() > 5 || theta.size() != 3 || theta[0] != size[0] ||
      theta[1] != static_cast<int64_t>(size.size()) - 2 || theta[2] != theta[1] + 1)
    return n.invalid("expected a size [N,C,(D,)H,W] and matrices that fit it, found " +
                     to_string(make_shape(size)) + " and " + to_string(n.shape(n.in(0))));
  int64_t rank = theta[1], points = 1;
  for (size_t i = 2; i < size.size(); ++i) {
    if (size[i] < 1 || size[i] > (1 << 24) || (points *= size[i]) > (1 << 24))
      return n.refuse("expected a grid of 1 to 2^24 points, found " + to_string(make_shape(size)));
  }
  std::vector<double> grid(static_cast<size_t>(points * (rank + 1)), 1.0);
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (int64_t d = 0; d < rank; ++d) {  // from the last dim, which comes first in a coordinate
      int64_t extent = size[static_cast<size_t>(rank + 1 - d)], i = rest % extent;
      rest /= extent;
      double at =
          align_corners
              ? (extent == 1 ? -1 : -1 + 2.0 * static_cast<double>(i) / static_cast<double>(extent - 1))
              : (2.0 * static_cast<double>(i) + 1) / static_cast<double>(extent) - 1;
      grid[static_cast<size_t>(p * (rank + 1) + d)] = at;
    }
  }
  ValueId x = n.widen(n.in(0));
  ValueId base =
      n.build.cast(n.build.constant(make_tensor<double>(DType::kF64, {points, rank + 1}, grid)), n.dtype(x));
  ContractionBuilder c;
  IndexExpr b = c.axis("b", theta[0]), p = c.axis("p", points), i = c.axis("i", rank),
            j = c.reduction("j", rank + 1);
  ValueId y = c.emit(n, x, {b, i, j}, base, {p, j}, {b, p, i});
  std::vector<int64_t> result{size[0]};
  result.insert(result.end(), size.begin() + 2, size.end());
  result.push_back(rank);
  return n.output(n.build.cast(n.reshape(y, result), n.dtype(n.in(0))));
}

// Every kernel position of every window is sampled where its offset moves it; then the products are one
// contraction.
Status import_deform_conv(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(n.in(0)));
  QUERNEL_TRY(std::vector<int64_t> weights, n.dims(n.in(1)));
  QUERNEL_TRY(std::vector<int64_t> offsets, n.dims(n.in(2)));
  int64_t groups = n.attr_int("group", 1), parts = n.attr_int("offset_group", 1);
  if (dims.size() != 4 || weights.size() != 4 || offsets.size() != 4)
    return n.refuse("expected two spatial dims, found " + to_string(n.shape(n.in(0))));
  if (auto declared = n.attr_ints("kernel_shape");
      declared && *declared != std::vector<int64_t>{weights[2], weights[3]})
    return n.invalid("attribute 'kernel_shape' disagrees with weights of shape " +
                     to_string(n.shape(n.in(1))));
  QUERNEL_TRY(Window w, read_window(n, {weights[2], weights[3]}, {dims[2], dims[3]}, false));
  int64_t height = w.out[0].value(), width = w.out[1].value();
  int64_t taps = weights[2] * weights[3], points = height * width;
  if (groups < 1 || parts < 1 || weights[0] % groups != 0 || dims[1] != weights[1] * groups ||
      dims[1] % parts != 0 || offsets != std::vector<int64_t>{dims[0], parts * taps * 2, height, width})
    return n.invalid("expected weights and offsets that fit the input, found " + to_string(n.shape(n.in(1))) +
                     " and " + to_string(n.shape(n.in(2))) + " for " + to_string(n.shape(n.in(0))));
  constexpr int64_t kMaxPositions = int64_t{1} << 26;
  if (points > kMaxPositions / std::max<int64_t>(taps, 1))
    return n.refuse("expected at most 2^26 sampled positions");
  ValueId moved = n.reshape(n.widen(n.in(2)), {dims[0] * parts, taps, 2, points});
  std::vector<ValueId> position;
  for (int64_t d = 0; d < 2; ++d) {
    std::vector<float> undisturbed;
    for (int64_t k = 0; k < taps; ++k)
      for (int64_t p = 0; p < points; ++p) {
        int64_t kernel = d == 0 ? k / weights[3] : k % weights[3], out = d == 0 ? p / width : p % width;
        undisturbed.push_back(
            static_cast<float>(out * w.strides[d] - w.pad_before[d].value() + kernel * w.dilations[d]));
      }
    ValueId offset = n.reshape(n.build.slice(moved, {0, 0, d, 0}, {dims[0] * parts, taps, d + 1, points}),
                               {dims[0] * parts, taps * points});
    ValueId regular =
        n.build.cast(n.build.constant(f32_tensor({taps * points}, undisturbed)), n.dtype(offset));
    position.push_back(n.binary(BinaryOp::k_add, offset, regular));
  }
  std::vector<int64_t> split{dims[0] * parts, dims[1] / parts, dims[2], dims[3]};
  QUERNEL_TRY(ValueId columns,
              sample(n, n.reshape(n.widen(n.in(0)), split), make_shape(split), position, {}));
  if (n.has(4))
    columns =
        n.binary(BinaryOp::k_mul, columns, n.reshape(n.widen(n.in(4)), {dims[0] * parts, 1, taps * points}));
  columns = n.reshape(columns, {dims[0], dims[1], taps, points});
  int64_t in = weights[1], out = weights[0] / groups;
  ContractionBuilder c;
  IndexExpr image = c.axis("n", dims[0]), g = c.axis("g", groups), o = c.axis("o", out),
            p = c.axis("p", points), i = c.reduction("c", in), k = c.reduction("k", taps);
  ValueId y =
      c.emit(n, columns, {image, g * in + i, k, p}, n.reshape(n.widen(n.in(1)), {weights[0], in, taps}),
             {g * out + o, i, k}, {image, g * out + o, p});
  y = n.reshape(y, {dims[0], weights[0], height, width});
  if (n.has(3)) {
    QUERNEL_TRY(y, add_bias(n, y, n.widen(n.in(3))));
  }
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
}

}  // namespace quernel::onnx_import
