// Pools: a view with the window's positions as trailing axes, reduced over them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/onnx/operators.h"
#include "frontends/onnx/pool.h"
#include "frontends/onnx/window.h"

namespace quernel::onnx_import {
namespace {

struct Pool {
  Window window;
  Shape dims;                 // of the input
  Shape spatial;              // its spatial part
  std::vector<int64_t> axes;  // of the window in the view [N, C, out…, kernel…]
};

Expected<Pool> read_pool(NodeImport& n) {
  Pool pool;
  pool.dims = n.shape(n.in(0));
  if (pool.dims.size() < 3)
    return n.invalid("expected an input [N,C,D...], found " + to_string(n.shape(n.in(0))));
  pool.spatial.assign(pool.dims.begin() + 2, pool.dims.end());
  std::optional<std::vector<int64_t>> kernel = n.attr_ints("kernel_shape");
  if (!kernel) return n.invalid("attribute 'kernel_shape' is missing");
  QUERNEL_TRY(pool.window, read_window(n, *kernel, pool.spatial, n.attr_int("ceil_mode", 0) != 0));
  for (size_t i = 0; i < pool.spatial.size(); ++i)
    pool.axes.push_back(static_cast<int64_t>(2 + pool.spatial.size() + i));
  return pool;
}

// [N, C, out…, kernel…] from the padded input.
ValueId windows(NodeImport& n, ValueId x, const Pool& pool, double fill) {
  const Window& w = pool.window;
  ValueId padded = pad_for_windows(n, x, w, pool.spatial, fill);
  Shape dims{pool.dims[0], pool.dims[1]};
  dims.insert(dims.end(), w.out.begin(), w.out.end());
  dims.insert(dims.end(), w.kernel.begin(), w.kernel.end());
  if (is_static(dims) && !element_count(static_dims(dims)))
    return n.build.fail(n.refuse("the windows have more elements than fit 63 bits"));
  IndexMap map;
  map.indices = {IndexExpr::axis(0), IndexExpr::axis(1)};
  for (size_t i = 0; i < w.rank(); ++i)
    map.indices.push_back(IndexExpr::axis(static_cast<int>(2 + i)) * w.strides[i] +
                          IndexExpr::axis(static_cast<int>(2 + w.rank() + i)) * w.dilations[i]);
  return n.build.view(padded, dims, std::move(map));
}

// How many elements of the input (or of its padding, which the node asked for) each window position covers,
// per spatial dim.
std::vector<int64_t> covered(const Window& w, int64_t size, size_t i, bool include_pad) {
  int64_t before = w.pad_before[i].value(), lo = include_pad ? -before : 0,
          hi = size + (include_pad ? w.pad_after[i].value() : 0);
  std::vector<int64_t> counts(static_cast<size_t>(w.out[i].value()));
  for (size_t o = 0; o < counts.size(); ++o)
    for (int64_t k = 0; k < w.kernel[i]; ++k) {
      int64_t position = static_cast<int64_t>(o) * w.strides[i] - before + k * w.dilations[i];
      counts[o] += position >= lo && position < hi;
    }
  return counts;
}

// The same, at least 1, where the sizes are free: sums of windows over ones.
ValueId count_covered(NodeImport& n, const Window& w, const Dim& size, size_t i, bool include_pad) {
  Dim inside = size + (include_pad ? w.pad_before[i] + w.pad_after[i] : Dim(0)),
      before = include_pad ? Dim(0) : w.pad_before[i];
  ValueId ones = n.full(DType::kF32, {inside}, 1);
  ValueId padded = n.build.pad(ones, {before}, {max(w.reach[i] - before - inside, 0)});
  IndexMap map;
  map.indices = {IndexExpr::axis(0) * w.strides[i] + IndexExpr::axis(1) * w.dilations[i]};
  ValueId windows = n.build.view(padded, {w.out[i], w.kernel[i]}, std::move(map));
  return n.binary(BinaryOp::k_max, n.build.reduce(OpKind::k_reduce_sum, windows, {1}, false), 1.0);
}

double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return is_signed_integer(dtype) ? -std::ldexp(1.0, bit_width(dtype) - 1) : 0;
}

// (sum |x|^p)^(1/p) over axes.
ValueId p_norm(NodeImport& n, ValueId x, int64_t p, const std::vector<int64_t>& axes, bool keepdims) {
  DType dtype = n.dtype(x);
  x = n.unary(UnaryOp::k_abs, n.widen(x));
  auto narrow = [&](ValueId v) { return n.build.cast(v, dtype); };
  if (p == 2)
    return narrow(n.unary(UnaryOp::k_sqrt, n.build.reduce(OpKind::k_reduce_sum,
                                                          n.binary(BinaryOp::k_mul, x, x), axes, keepdims)));
  if (p == 1) return narrow(n.build.reduce(OpKind::k_reduce_sum, x, axes, keepdims));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, n.binary(BinaryOp::k_pow, x, static_cast<double>(p)),
                               axes, keepdims);
  return narrow(n.binary(BinaryOp::k_pow, sum, 1.0 / static_cast<double>(p)));
}

// The position in its plane of each window's first element that is no padding, [1, 1, out…]; -1 where there
// is none. `strides`: of the numbers that positions have.
Tensor first_elements(const Window& w, const std::vector<int64_t>& spatial,
                      const std::vector<int64_t>& strides) {
  std::vector<int64_t> dims{1, 1}, result{0};
  for (size_t i = 0; i < spatial.size(); ++i) {
    dims.push_back(w.out[i].value());
    std::vector<int64_t> next;
    for (int64_t outer : result)
      for (int64_t o = 0; o < dims.back(); ++o) {
        int64_t start = o * w.strides[i] - w.pad_before[i].value(), step = w.dilations[i];
        int64_t tap = start < 0 ? (step - 1 - start) / step : 0, at = start + tap * step;
        bool inside = tap < w.kernel[i] && at < spatial[i];
        next.push_back(outer < 0 || !inside ? -1 : outer + at * strides[i]);
      }
    result = std::move(next);
  }
  return i64_tensor(dims, result);
}

// The largest elements' positions in the flattened input: the windows of a constant that numbers one plane,
// read where the data's windows have their maximum, plus the plane's offset. Padding is never chosen: where
// it would be, nothing is larger than it, and the first element is the maximum; a window without elements has
// -1. `column_major`: spatial dims are numbered first to last.
ValueId max_pool_indices(NodeImport& n, const Pool& pool, ValueId data_windows, bool column_major) {
  constexpr int64_t kMaxPlane = int64_t{1} << 24;
  const Window& w = pool.window;
  Expected<std::vector<int64_t>> dims = n.dims(n.in(0));
  if (!dims) return n.build.fail(dims.take_errors().front());
  std::vector<int64_t> spatial(dims->begin() + 2, dims->end());
  std::optional<int64_t> plane = element_count(spatial),
                         planes = element_count(std::vector<int64_t>{(*dims)[0], (*dims)[1]});
  if (!plane || !planes || *plane > kMaxPlane || *planes > kMaxPlane)
    return n.build.fail(n.refuse("indices of planes of more than 2^24 elements are not supported"));
  std::optional<int64_t> count = is_static(w.out) ? element_count(static_dims(w.out)) : std::nullopt;
  if (!count || *count > kMaxPlane)
    return n.build.fail(n.refuse("indices of more than 2^24 windows of a plane are not supported"));
  std::vector<int64_t> positions(static_cast<size_t>(*plane)), offsets(static_cast<size_t>(*planes));
  std::vector<int64_t> strides(spatial.size(), 1);
  for (size_t k = 1; k < spatial.size(); ++k) {
    size_t d = column_major ? k : spatial.size() - 1 - k, inner = column_major ? d - 1 : d + 1;
    strides[d] = strides[inner] * spatial[inner];
  }
  for (int64_t i = 0; i < *plane; ++i) {
    int64_t rest = i, number = 0;
    for (size_t d = spatial.size(); d-- > 0; rest /= spatial[d]) number += rest % spatial[d] * strides[d];
    positions[static_cast<size_t>(i)] = number;
  }
  for (int64_t i = 0; i < *planes; ++i) offsets[static_cast<size_t>(i)] = i * *plane;
  std::vector<int64_t> one_plane{1, 1}, rows{(*dims)[0], (*dims)[1]}, result, offset_dims = rows;
  one_plane.insert(one_plane.end(), spatial.begin(), spatial.end());
  for (const Dim& size : w.out) rows.push_back(size.value());
  result = rows;
  offset_dims.resize(rows.size(), 1);
  rows.push_back(element_count(w.kernel).value_or(0));
  std::vector<int64_t> plane_rows = rows;
  plane_rows[0] = plane_rows[1] = 1;
  Pool numbers = pool;
  numbers.dims[0] = numbers.dims[1] = 1;
  ValueId numbered = windows(n, n.build.constant(i64_tensor(one_plane, positions)), numbers, -1);
  ValueId candidates = n.build.broadcast_to(n.reshape(numbered, plane_rows), make_shape(rows));
  int64_t last = static_cast<int64_t>(rows.size()) - 1;
  ValueId best = n.build.reduce(OpKind::k_reduce_argmax, n.reshape(data_windows, rows), {last}, true);
  Attributes along_last;
  along_last.ints = {last};
  ValueId found = n.build.add(OpKind::k_gather_elements, {candidates, best}, std::move(along_last));
  found = n.reshape(found, result);
  ValueId offset = n.build.constant(i64_tensor(offset_dims, offsets));
  bool padded = false, empty = false;
  for (size_t i = 0; i < spatial.size(); ++i)
    padded = padded || !(w.pad_before[i] == Dim(0)) || always_lt(spatial[i], w.reach[i]);
  if (!padded) return n.binary(BinaryOp::k_add, found, offset);
  Tensor first = first_elements(w, spatial, strides);
  for (int64_t i = 0; i < first.count(); ++i) empty = empty || first.at<int64_t>(i) < 0;
  found = n.build.where(n.binary(BinaryOp::k_lt, found, 0.0), n.build.constant(std::move(first)), found);
  ValueId index = n.binary(BinaryOp::k_add, found, offset);
  return empty ? n.build.where(n.binary(BinaryOp::k_lt, found, 0.0), found, index) : index;
}

}  // namespace

Expected<std::vector<int64_t>> spatial_axes(NodeImport& n) {
  std::vector<int64_t> axes;
  for (int i = 2; i < n.rank(n.in(0)); ++i) axes.push_back(i);
  if (n.rank(n.in(0)) < 2)
    return n.invalid("expected an input [N,C,D...], found " + to_string(n.shape(n.in(0))));
  return axes;
}

Status import_max_pool(NodeImport& n) {
  bool column_major = n.attr_int("storage_order", 0) != 0;
  QUERNEL_TRY(Pool pool, read_pool(n));
  ValueId x = windows(n, n.in(0), pool, lowest(n.dtype(n.in(0))));
  ValueId indices = n.wants_output(1) ? max_pool_indices(n, pool, x, column_major) : kNoValue;
  return n.set_outputs({n.build.reduce(OpKind::k_reduce_max, x, pool.axes, false), indices});
}

Expected<ValueId> average_pool(NodeImport& n, ValueId x) {
  bool include_pad = n.attr_int("count_include_pad", 0) != 0;
  QUERNEL_TRY(Pool pool, read_pool(n));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, windows(n, x, pool, 0), pool.axes, false);
  // The divisor is a product over the spatial dims; a dim where it does not vary gives a 1 in the constant's
  // shape.
  int64_t uniform = 1;
  ValueId result = sum;
  for (size_t i = 0; i < pool.spatial.size(); ++i) {
    constexpr int64_t kMaxSteps = int64_t{1} << 24;
    const Window& w = pool.window;
    bool whole = (include_pad || (w.pad_before[i] == Dim(0) && w.pad_after[i] == Dim(0))) &&
                 always_le(w.reach[i], pool.spatial[i] + w.pad_before[i] + w.pad_after[i]);
    if (whole) {
      uniform *= w.kernel[i];
      continue;
    }
    if (!w.out[i].is_const()) {
      ValueId counts = count_covered(n, w, pool.spatial[i], i, include_pad);
      Shape dims(pool.spatial.size() - i, 1);
      dims[0] = w.out[i];
      result = n.binary(BinaryOp::k_div, result, n.build.reshape(n.build.cast(counts, n.dtype(sum)), dims));
      continue;
    }
    if (w.out[i].value() > kMaxSteps / w.kernel[i])
      return n.refuse("the pool's windows are too many to count");
    std::vector<int64_t> counts = covered(w, pool.spatial[i].value(), i, include_pad);
    if (std::all_of(counts.begin(), counts.end(), [&](int64_t c) { return c == counts[0]; })) {
      if (!counts.empty()) uniform *= std::max<int64_t>(1, counts[0]);
      continue;
    }
    std::vector<int64_t> dims(pool.spatial.size() - i, 1);
    dims[0] = static_cast<int64_t>(counts.size());
    std::vector<float> divisors(counts.begin(), counts.end());
    for (float& d : divisors) d = std::max(d, 1.0f);
    result = n.binary(BinaryOp::k_div, result,
                      n.build.cast(n.build.constant(f32_tensor(dims, divisors)), n.dtype(sum)));
  }
  if (uniform != 1) result = n.binary(BinaryOp::k_div, result, static_cast<double>(uniform));
  return result;
}

Status import_average_pool(NodeImport& n) {
  QUERNEL_TRY(ValueId y, average_pool(n, n.widen(n.in(0))));
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
}

// The inverse of cutting an image [N, C, P…] into blocks: each pixel sums what the blocks [N, C*block,
// blocks] hold of it, seen as a view [N, C, P…, block…] that is zero where no block has the pixel.
Status import_col2im(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(n.in(0)));
  QUERNEL_TRY(std::vector<int64_t> image, n.ints_in(1, "image_shape"));
  QUERNEL_TRY(std::vector<int64_t> block, n.ints_in(2, "block_shape"));
  size_t rank = image.size();
  if (dims.size() != 3 || block.size() != rank)
    return n.invalid("expected an input [N,C*block,blocks] and a block_shape of the image's rank, found " +
                     to_string(n.shape(n.in(0))));
  QUERNEL_TRY(std::vector<int64_t> strides, read_window_steps(n, "strides", rank));
  QUERNEL_TRY(std::vector<int64_t> dilations, read_window_steps(n, "dilations", rank));
  QUERNEL_TRY(WindowPads pads, read_window_pads(n, rank));
  std::optional<int64_t> elements = element_count(block);
  if (!elements || *elements < 1 || dims[1] % *elements != 0)
    return n.invalid("expected a multiple of the block's elements on dim 1, found " +
                     to_string(n.shape(n.in(0))));
  std::vector<int64_t> result{dims[0], dims[1] / *elements}, axes;
  result.insert(result.end(), image.begin(), image.end());
  std::vector<int64_t> counts;
  for (size_t i = 0; i < rank; ++i) {
    constexpr int64_t kMaxSize = int64_t{1} << 31;
    if (block[i] < 1 || block[i] > kMaxSize || image[i] < 0 || image[i] > kMaxSize)
      return n.invalid("expected sizes of at least 1 and below 2^31");
    int64_t room = image[i] + pads.before[i] + pads.after[i] - ((block[i] - 1) * dilations[i] + 1);
    if (room < 0) return n.invalid("expected a block that fits the padded image");
    counts.push_back(room / strides[i] + 1);
  }
  if (element_count(counts) != dims[2])
    return n.invalid("expected as many blocks on dim 2 as fit the padded image, found " +
                     std::to_string(dims[2]));
  IndexExpr row = IndexExpr::axis(1), column = 0;
  IndexMap map;
  for (size_t i = 0; i < rank; ++i) {
    axes.push_back(static_cast<int64_t>(2 + rank + i));
    IndexExpr tap = IndexExpr::axis(static_cast<int>(2 + rank + i));
    IndexExpr from = IndexExpr::axis(static_cast<int>(2 + i)) + tap * -dilations[i] + pads.before[i];
    map.guards.push_back({from, 0, counts[i] * strides[i]});
    if (strides[i] > 1) map.guards.push_back({floormod(from, strides[i]), 0, 1});
    row = row * block[i] + tap;
    column = column * counts[i] + floordiv(from, strides[i]);
  }
  map.indices = {IndexExpr::axis(0), row, column};
  result.insert(result.end(), block.begin(), block.end());
  if (!element_count(result)) return n.refuse("the blocks have more elements than fit 63 bits");
  ValueId parts = n.build.view(n.widen(n.in(0)), make_shape(result), std::move(map));
  return n.output(n.build.cast(n.build.reduce(OpKind::k_reduce_sum, parts, axes, false), n.dtype(n.in(0))));
}

Status import_lp_pool(NodeImport& n) {
  int64_t p = n.attr_int("p", 2);
  if (p < 1) return n.invalid("attribute 'p': expected at least 1, found " + std::to_string(p));
  QUERNEL_TRY(Pool pool, read_pool(n));
  return n.output(p_norm(n, windows(n, n.in(0), pool, 0), p, pool.axes, false));
}

Status import_global_average_pool(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> axes, spatial_axes(n));
  return n.output(n.mean(n.in(0), axes, true));
}

Status import_global_max_pool(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> axes, spatial_axes(n));
  return n.output(n.build.reduce(OpKind::k_reduce_max, n.in(0), axes, true));
}

Status import_global_lp_pool(NodeImport& n) {
  int64_t p = n.attr_int("p", 2);
  if (p < 1) return n.invalid("attribute 'p': expected at least 1, found " + std::to_string(p));
  QUERNEL_TRY(std::vector<int64_t> axes, spatial_axes(n));
  return n.output(p_norm(n, n.in(0), p, axes, true));
}

}  // namespace quernel::onnx_import
