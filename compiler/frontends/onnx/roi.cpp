// Pools over regions whose corners are operands: RoiAlign and MaxRoiPool.
#include <cmath>
#include <limits>

#include "frontends/onnx/operators.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

// Column `i` of a matrix as [rows, 1 × trailing].
ValueId column(NodeImport& n, ValueId matrix, int64_t i, int trailing) {
  Dim rows = n.shape(matrix)[0];
  Shape result(static_cast<size_t>(trailing) + 1, Dim(1));
  result[0] = rows;
  return n.build.reshape(n.build.slice(matrix, {0, i}, {rows, i + 1}), result);
}

// The two elements around each sample along one dim, and their weights; a sample far outside weighs nothing.
struct Neighbours {
  ValueId low, high;                // i32, clamped
  ValueId low_weight, high_weight;  // 0 outside
};
Neighbours around(NodeImport& n, ValueId at, const Dim& size, DType index_dtype) {
  ValueId last = n.number(n.dtype(at), size - 1);
  ValueId inside = n.binary(BinaryOp::k_and, n.binary(BinaryOp::k_ge, at, -1.0),
                            n.binary(BinaryOp::k_le, at, n.number(n.dtype(at), size)));
  ValueId p = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, at, 0.0), last);
  ValueId low = n.unary(UnaryOp::k_floor, p),
          high = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_add, low, 1.0), last);
  ValueId fraction = n.binary(BinaryOp::k_sub, p, low), zero = n.scalar(n.dtype(at), 0);
  ValueId rest = n.binary(BinaryOp::k_sub, n.scalar(n.dtype(at), 1), fraction);
  return {n.build.cast(low, index_dtype), n.build.cast(high, index_dtype), n.build.where(inside, rest, zero),
          n.build.where(inside, fraction, zero)};
}

}  // namespace

// Each bin averages (or takes the largest of) samples between elements, of which sampling_ratio² lie in a
// regular grid.
Status import_roi_align(NodeImport& n) {
  std::string mode = n.attr_string("mode", "avg");
  bool half_pixel = false;
  if (n.opset >= 16) {
    std::string transform = n.attr_string("coordinate_transformation_mode", "half_pixel");
    if (transform != "half_pixel" && transform != "output_half_pixel")
      return n.invalid(
          "attribute 'coordinate_transformation_mode': expected half_pixel or output_half_pixel, found '" +
          transform + "'");
    half_pixel = transform == "half_pixel";
  }
  int64_t height = n.attr_int("output_height", 1), width = n.attr_int("output_width", 1),
          ratio = n.attr_int("sampling_ratio", 0);
  double scale = n.attr_float("spatial_scale", 1);
  if (mode != "avg" && mode != "max")
    return n.invalid("attribute 'mode': expected avg or max, found '" + mode + "'");
  constexpr int64_t kLimit = 1 << 12;
  if (height < 1 || width < 1 || height > kLimit || width > kLimit || ratio > kLimit)
    return n.invalid("expected output sizes from 1 to 4096");
  if (ratio < 1)
    return n.refuse("attribute 'sampling_ratio': only a fixed number of samples is supported, found " +
                        std::to_string(ratio),
                    "export the model with a sampling ratio of at least 1");
  Shape dims = n.shape(n.in(0)), rois = n.shape(n.in(1));
  if (dims.size() != 4 || rois.size() != 2 || !(rois[1] == Dim(4)) || n.shape(n.in(2)) != Shape{rois[0]})
    return n.invalid("expected an input [N,C,H,W], regions [R,4] and batch indices [R], found " +
                     to_string(n.shape(n.in(0))) + ", " + to_string(n.shape(n.in(1))) + " and " +
                     to_string(n.shape(n.in(2))));
  constexpr int64_t kMaxIndex = (int64_t{1} << 31) - 1;
  Dim regions = rois[0], plane = dims[2] * dims[3], pixel_count = dims[0] * plane;
  if (always_lt(plane, 1) || always_lt(kMaxIndex, pixel_count))
    return n.refuse("expected images of at least one and below 2^31 elements, found " +
                    to_string(n.shape(n.in(0))));
  // Nothing can be read from images that may be empty.
  QUERNEL_CHECK(n.require_at_least(dims[2], 1, "the height of the images"));
  QUERNEL_CHECK(n.require_at_least(dims[3], 1, "the width of the images"));
  DType index_dtype = pixel_count.bounds().hi <= kMaxIndex ? DType::kI32 : DType::kI64;
  DType dtype = n.dtype(n.in(0));
  ValueId x = n.widen(n.in(0)), corners = n.build.cast(n.in(1), n.dtype(x));
  DType wide = n.dtype(x);
  // Samples along one dim, [R, bins * ratio].
  auto samples = [&](int64_t first, int64_t bins) {
    double shift = half_pixel ? 0.5 : 0;
    auto corner = [&](int64_t i) {
      return n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_mul, column(n, corners, i, 1), scale), shift);
    };
    ValueId start = corner(first), length = n.binary(BinaryOp::k_sub, corner(first + 2), start);
    if (!half_pixel) length = n.binary(BinaryOp::k_max, length, 1.0);
    ValueId step = n.binary(BinaryOp::k_div, length, static_cast<double>(bins * ratio));
    ValueId index = n.binary(BinaryOp::k_add, n.positions(wide, bins * ratio), 0.5);
    return n.binary(BinaryOp::k_add, start, n.binary(BinaryOp::k_mul, index, step));
  };
  Neighbours rows = around(n, samples(1, height), dims[2], index_dtype),
             columns = around(n, samples(0, width), dims[3], index_dtype);
  int64_t tall = height * ratio, wide_count = width * ratio;
  // The channels of one element are a row: [N*H*W, C].
  ValueId pixels = n.build.reshape(n.build.permute(x, {0, 2, 3, 1}), {pixel_count, dims[1]});
  QUERNEL_CHECK(check_indices(n, n.in(2), n.shape(x)[0], "image"));
  ValueId image = n.binary(BinaryOp::k_mul, n.build.cast(n.in(2), index_dtype), n.number(index_dtype, plane));
  auto read = [&](ValueId row, ValueId row_weight, ValueId at, ValueId at_weight) {
    ValueId index = n.binary(BinaryOp::k_add,
                             n.binary(BinaryOp::k_add, n.build.reshape(image, {regions, 1, 1}),
                                      n.binary(BinaryOp::k_mul, n.build.reshape(row, {regions, tall, 1}),
                                               n.number(index_dtype, dims[3]))),
                             n.build.reshape(at, {regions, 1, wide_count}));
    ValueId weight = n.binary(BinaryOp::k_mul, n.build.reshape(row_weight, {regions, tall, 1, 1}),
                              n.build.reshape(at_weight, {regions, 1, wide_count, 1}));
    return n.binary(BinaryOp::k_mul, n.build.take(pixels, index, 0), weight);
  };
  ValueId terms[] = {read(rows.low, rows.low_weight, columns.low, columns.low_weight),
                     read(rows.low, rows.low_weight, columns.high, columns.high_weight),
                     read(rows.high, rows.high_weight, columns.low, columns.low_weight),
                     read(rows.high, rows.high_weight, columns.high, columns.high_weight)};
  bool average = mode == "avg";
  ValueId y = terms[0];
  // In the mode max ONNX takes the largest of the weighted neighbours, not of their sums.
  for (int i = 1; i < 4; ++i) y = n.binary(average ? BinaryOp::k_add : BinaryOp::k_max, y, terms[i]);
  y = n.build.reshape(y, {regions, height, ratio, width, ratio, dims[1]});
  y = average ? n.mean(y, {2, 4}, false) : n.build.reduce(OpKind::k_reduce_max, y, {2, 4}, false);
  return n.output(n.build.cast(n.build.permute(y, {0, 3, 1, 2}), dtype));
}

// The largest element of each bin, whose bounds are whole elements. Separable: first along rows, then along
// columns.
Status import_max_roi_pool(NodeImport& n) {
  std::vector<int64_t> pooled = n.attr_ints("pooled_shape").value_or(std::vector<int64_t>());
  double scale = n.attr_float("spatial_scale", 1);
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(n.in(0)));
  QUERNEL_TRY(std::vector<int64_t> rois, n.dims(n.in(1)));
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1 || pooled[0] > 4096 || pooled[1] > 4096)
    return n.invalid("attribute 'pooled_shape': expected two sizes of at least 1");
  if (dims.size() != 4 || rois.size() != 2 || rois[1] != 5)
    return n.invalid("expected an input [N,C,H,W] and regions [R,5], found " + to_string(n.shape(n.in(0))) +
                     " and " + to_string(n.shape(n.in(1))));
  ValueId x = n.widen(n.in(0)), corners = n.build.cast(n.in(1), n.dtype(x));
  DType wide = n.dtype(x);
  ValueId lowest = n.scalar(wide, -std::numeric_limits<double>::infinity());
  // bool [R, bins, size]: whether an element lies in a bin.
  auto members = [&](int64_t first, int64_t bins, int64_t size) {
    auto corner = [&](int64_t i) {  // rounded, halves upwards
      ValueId c = n.binary(BinaryOp::k_mul, column(n, corners, i, 1), scale);
      return n.unary(UnaryOp::k_floor, n.binary(BinaryOp::k_add, c, 0.5));
    };
    ValueId start = corner(first);
    ValueId length = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_sub, corner(first + 2), start), 1.0);
    ValueId step =
        n.binary(BinaryOp::k_div, n.binary(BinaryOp::k_max, length, 1.0), static_cast<double>(bins));
    ValueId index = n.positions(wide, bins);
    ValueId from =
        n.binary(BinaryOp::k_add, n.unary(UnaryOp::k_floor, n.binary(BinaryOp::k_mul, index, step)), start);
    ValueId past =
        n.unary(UnaryOp::k_ceil, n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_add, index, 1.0), step));
    past = n.binary(BinaryOp::k_add, past, start);
    Shape per_bin{rois[0], bins, 1};
    ValueId element = n.positions(wide, size);
    return n.binary(BinaryOp::k_and, n.binary(BinaryOp::k_ge, element, n.build.reshape(from, per_bin)),
                    n.binary(BinaryOp::k_lt, element, n.build.reshape(past, per_bin)));
  };
  ValueId batch = n.build.cast(n.build.reshape(column(n, corners, 0, 0), {rois[0]}), DType::kI32);
  ValueId images = n.build.take(x, batch, 0);  // [R, C, H, W]
  ValueId in_column = n.reshape(members(1, pooled[1], dims[3]), {rois[0], 1, 1, pooled[1], dims[3]});
  ValueId y = n.build.where(in_column, n.reshape(images, {rois[0], dims[1], dims[2], 1, dims[3]}), lowest);
  y = n.build.reduce(OpKind::k_reduce_max, y, {4}, false);  // [R, C, H, PW]
  ValueId in_row = n.reshape(members(2, pooled[0], dims[2]), {rois[0], 1, pooled[0], dims[2], 1});
  y = n.build.where(in_row, n.reshape(y, {rois[0], dims[1], 1, dims[2], pooled[1]}), lowest);
  y = n.build.reduce(OpKind::k_reduce_max, y, {3}, false);
  // An empty bin gives 0.
  ValueId any_column = n.build.reduce(OpKind::k_reduce_or, in_column, {4}, false),
          any_row = n.build.reduce(OpKind::k_reduce_or, in_row, {3}, false);
  y = n.build.where(n.binary(BinaryOp::k_and, any_row, any_column), y, n.scalar(wide, 0));
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
}

}  // namespace quernel::onnx_import
