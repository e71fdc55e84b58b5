// Operators that move elements or describe shapes; quantized elements keep their integers.
#include <algorithm>
#include <numeric>

#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {
namespace {

// The dims of `wanted` with -1 replaced by what the number of elements leaves for it.
Expected<Shape> complete_shape(NodeImport& n, Shape wanted, const Dim& count) {
  Dim known = 1;
  int unknown = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!(wanted[i] == Dim(-1))) {
      QUERNEL_CHECK(n.require_at_least(wanted[i], 0, "a dim of the new shape"));
      known *= wanted[i];
    } else if (unknown >= 0) {
      return n.invalid("expected at most one dim of -1 in the new shape, found " + to_string(wanted));
    } else {
      unknown = static_cast<int>(i);
    }
  }
  if (unknown >= 0) wanted[static_cast<size_t>(unknown)] = known == Dim(0) ? Dim(0) : floordiv(count, known);
  Dim total = 1;
  for (const Dim& d : wanted) total *= d;
  QUERNEL_CHECK(n.require_equal(total, count, "the elements of the new shape " + to_string(wanted)));
  return wanted;
}

Expected<int64_t> one_axis(NodeImport& n, int operand) {
  QUERNEL_TRY(int64_t axis, n.int_in(operand, "the axis"));
  return n.axis(axis, n.rank(n.in(0)));
}

Expected<std::vector<int64_t>> block_sizes(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> blocks, n.ints_in(1, "the block shape"));
  if (n.rank(n.in(0)) <= static_cast<int>(blocks.size()) ||
      std::any_of(blocks.begin(), blocks.end(), [](int64_t b) { return b < 1 || b > (1 << 20); }))
    return n.invalid("expected blocks of at least 1 for dims of " + to_string(n.shape(n.in(0))) + ", found " +
                     to_string(make_shape(blocks)));
  return blocks;
}

// [pairs, 2], as dims before and after.
struct Amounts {
  Shape before, after;
};
Expected<Amounts> amounts_in(NodeImport& n, int operand, size_t pairs, const std::string& what) {
  QUERNEL_TRY(Tensor tensor, n.constant_in(operand, what));
  Amounts result;
  if (tensor.count() != static_cast<int64_t>(pairs) * 2 || is_float(tensor.dtype))
    return n.invalid("expected " + what + " of [" + std::to_string(pairs) + ",2], found " +
                     to_string(make_shape(tensor.dims)));
  for (size_t i = 0; i < pairs; ++i)
    for (Shape* side : {&result.before, &result.after}) {
      int64_t value = element_as_i64(tensor, static_cast<int64_t>(2 * i) + (side == &result.after));
      if (value < 0 || value > (int64_t{1} << 31))
        return n.invalid("expected " + what + " of at least 0, found " + std::to_string(value));
      side->push_back(value);
    }
  return result;
}

Expected<int64_t> block_size(NodeImport& n, int64_t block) {
  QUERNEL_CHECK(n.expect_rank(0, 4, 4));
  if (block >= 1 && block <= (1 << 15)) return block;
  return n.bad_option("block_size", "at least 1", std::to_string(block));
}

}  // namespace

Status import_reshape(NodeImport& n) {
  std::vector<int32_t> option = elements(n.options<tflite::ReshapeOptions>().new_shape());
  Shape wanted;
  if (n.has(1)) {
    QUERNEL_TRY(wanted, n.dims_in(1, "the new shape"));
  } else if (!(option.size() == 1 && option[0] == 0)) {  // [0] stands for a scalar
    for (int32_t d : option) wanted.push_back(d);
  }
  Shape dims = n.shape(n.in(0));
  if (n.is_complex(0)) dims.pop_back();
  QUERNEL_TRY(wanted, complete_shape(n, std::move(wanted), element_count(dims)));
  if (n.is_complex(0)) wanted.push_back(2);
  return n.output(n.build.reshape(n.in(0), wanted));
}

Status import_squeeze(NodeImport& n) {
  std::vector<int32_t> given = elements(n.options<tflite::SqueezeOptions>().squeeze_dims());
  Shape dims = n.shape(n.in(0)), kept;
  std::vector<int64_t> axes;
  for (int32_t axis : given) {
    QUERNEL_TRY(int64_t positive, n.axis(axis, n.rank(n.in(0))));
    axes.push_back(positive);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    bool dropped = named;
    if (given.empty()) {
      QUERNEL_TRY(dropped, n.is(dims[i], 1));
    }
    if (named) QUERNEL_CHECK(n.require_equal(dims[i], 1, "dim " + std::to_string(i)));
    if (!dropped) kept.push_back(dims[i]);
  }
  return n.output(n.build.reshape(n.in(0), kept));
}

Status import_expand_dims(NodeImport& n) {
  QUERNEL_TRY(int64_t axis, n.int_in(1, "the axis"));
  QUERNEL_TRY(axis, n.axis(axis, n.rank(n.in(0)) + 1));
  Shape dims = n.shape(n.in(0));
  dims.insert(dims.begin() + axis, Dim(1));
  return n.output(n.build.reshape(n.in(0), dims));
}

Status import_transpose(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> order, n.ints_in(1, "the order of the dims"));
  QUERNEL_TRY(order, n.axes_in_range(std::move(order), n.rank(n.in(0))));
  if (static_cast<int>(order.size()) != n.rank(n.in(0)))
    return n.invalid("expected an order of all dims of " + to_string(n.shape(n.in(0))) + ", found " +
                     std::to_string(order.size()));
  return n.output(n.build.permute(n.in(0), order));
}

Status import_concatenation(NodeImport& n) {
  const auto& options = n.options<tflite::ConcatenationOptions>();
  QUERNEL_TRY(int64_t axis, n.axis(options.axis(), n.rank(n.in(0))));
  std::vector<ValueId> parts;
  for (int i = 0; i < n.input_count(); ++i) {
    if (n.dtype(n.in(i)) != n.dtype(n.in(0))) return n.no_kernel();
    bool rescaled = n.is_quantized(i) && !(n.in_quantization(i) == n.out_quantization(0));
    if (rescaled && n.dtype(n.in(i)) == DType::kI16) return n.no_kernel();
    parts.push_back(rescaled ? rescale(n, n.in(i), n.in_quantization(i)) : n.in(i));
  }
  ValueId y = parts.size() == 1 ? parts[0] : n.build.cat(parts, axis);
  if (n.is_output_quantized()) return n.output(clamp_integers(n, y, options.fused_activation_function()));
  QUERNEL_TRY(y, activate(n, y, options.fused_activation_function()));
  return n.output(y);
}

Status import_pack(NodeImport& n) {
  const auto& options = n.options<tflite::PackOptions>();
  if (options.values_count() != n.input_count())
    return n.bad_option("values_count", std::to_string(n.input_count()),
                        std::to_string(options.values_count()));
  QUERNEL_TRY(int64_t axis, n.axis(options.axis(), n.rank(n.in(0)) + 1));
  Shape dims = n.shape(n.in(0));
  dims.insert(dims.begin() + axis, Dim(1));
  std::vector<ValueId> parts;
  for (int i = 0; i < n.input_count(); ++i) {
    if (n.dtype(n.in(i)) != n.dtype(n.in(0))) return n.no_kernel();
    QUERNEL_CHECK(n.expect_rank(i, n.rank(n.in(0)), n.rank(n.in(0))));
    parts.push_back(n.build.reshape(n.in(i), dims));
  }
  return n.output(parts.size() == 1 ? parts[0] : n.build.cat(parts, axis));
}

Status import_unpack(NodeImport& n) {
  const auto& options = n.options<tflite::UnpackOptions>();
  if (options.num() != n.output_count())
    return n.bad_option("num", std::to_string(n.output_count()), std::to_string(options.num()));
  QUERNEL_TRY(int64_t axis, n.axis(options.axis(), n.rank(n.in(0))));
  Shape dims = n.shape(n.in(0)), starts(dims.size(), Dim(0)), stops = dims, one = dims;
  QUERNEL_CHECK(n.require_equal(dims[static_cast<size_t>(axis)], n.output_count(), "the number of results"));
  one.erase(one.begin() + axis);
  std::vector<ValueId> parts;
  for (int i = 0; i < n.output_count(); ++i) {
    starts[static_cast<size_t>(axis)] = i;
    stops[static_cast<size_t>(axis)] = i + 1;
    parts.push_back(n.build.reshape(n.build.slice(n.in(0), starts, stops), one));
  }
  return n.set_outputs(std::move(parts));
}

namespace {

Status split(NodeImport& n, ValueId x, int64_t axis, const Shape& sizes) {
  Shape dims = n.shape(x), starts(dims.size(), Dim(0)), stops = dims;
  size_t d = static_cast<size_t>(axis);
  Dim total = 0;
  for (const Dim& size : sizes) total += size;
  QUERNEL_CHECK(n.require_equal(dims[d], total, "the dim that is split"));
  std::vector<ValueId> parts;
  Dim start = 0;
  for (const Dim& size : sizes) {
    starts[d] = start;
    stops[d] = start = start + size;
    parts.push_back(n.build.slice(x, starts, stops));
  }
  return n.set_outputs(std::move(parts));
}

}  // namespace

// Operands: the axis, x.
Status import_split(NodeImport& n) {
  int64_t parts = n.options<tflite::SplitOptions>().num_splits();
  if (parts != n.output_count())
    return n.bad_option("num_splits", std::to_string(n.output_count()), std::to_string(parts));
  QUERNEL_TRY(int64_t axis, n.int_in(0, "the axis"));
  QUERNEL_TRY(axis, n.axis(axis, n.rank(n.in(1))));
  Dim size = floordiv(n.shape(n.in(1))[static_cast<size_t>(axis)], parts);
  return split(n, n.in(1), axis, Shape(static_cast<size_t>(parts), size));
}

// Operands: x, sizes of which one may be -1, the axis.
Status import_split_v(NodeImport& n) {
  int64_t parts = n.options<tflite::SplitVOptions>().num_splits();
  if (parts != n.output_count())
    return n.bad_option("num_splits", std::to_string(n.output_count()), std::to_string(parts));
  QUERNEL_TRY(int64_t axis, one_axis(n, 2));
  QUERNEL_TRY(Shape sizes, n.dims_in(1, "the sizes"));
  if (static_cast<int64_t>(sizes.size()) != parts)
    return n.invalid("expected a size for each result, found " + std::to_string(sizes.size()));
  Dim known = 0;
  for (const Dim& size : sizes) known += size == Dim(-1) ? Dim(0) : size;
  for (Dim& size : sizes)
    if (size == Dim(-1)) size = n.shape(n.in(0))[static_cast<size_t>(axis)] - known;
  return split(n, n.in(0), axis, sizes);
}

Status import_tile(NodeImport& n) {
  Shape dims = n.shape(n.in(0)), apart, tiled, result;
  QUERNEL_TRY(Shape counts, n.dims_in(1, "the numbers of copies"));
  if (counts.size() != dims.size())
    return n.invalid("expected a number of copies for each dim of " + to_string(dims) + ", found " +
                     std::to_string(counts.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    QUERNEL_CHECK(n.require_at_least(counts[i], 0, "a number of copies"));
    apart.insert(apart.end(), {1, dims[i]});
    tiled.insert(tiled.end(), {counts[i], dims[i]});
    result.push_back(counts[i] * dims[i]);
  }
  return n.output(n.build.reshape(n.build.broadcast_to(n.build.reshape(n.in(0), apart), tiled), result));
}

// The third operand of PADV2 is what it fills with.
Status import_pad(NodeImport& n) {
  QUERNEL_TRY(Amounts pads, amounts_in(n, 1, static_cast<size_t>(n.rank(n.in(0))), "the padding"));
  double fill = n.is_quantized(0) ? static_cast<double>(n.in_quantization(0).zero()) : 0;
  if (n.has(2)) {
    QUERNEL_TRY(Tensor value, n.constant_in(2, "the fill value"));
    if (value.count() != 1 || value.dtype != n.dtype(n.in(0)) || bit_width(value.dtype) < 8)
      return n.invalid("expected one fill value of " + std::string(to_string(n.dtype(n.in(0)))) + ", found " +
                       to_string(TensorType{value.dtype, make_shape(value.dims)}));
    fill = element_as_f64(value, 0);
    bool exact = is_float(value.dtype) || static_cast<int64_t>(fill) == element_as_i64(value, 0);
    if (!exact) return n.refuse("a fill value of more than 53 bits is not supported");
  }
  return n.output(n.build.pad(n.in(0), pads.before, pads.after, PadMode::kConstant, fill));
}

Status import_mirror_pad(NodeImport& n) {
  tflite::MirrorPadMode mode = n.options<tflite::MirrorPadOptions>().mode();
  QUERNEL_TRY(Amounts pads, amounts_in(n, 1, static_cast<size_t>(n.rank(n.in(0))), "the padding"));
  if (mode == tflite::MirrorPadMode::REFLECT)
    return n.output(n.build.pad(n.in(0), pads.before, pads.after, PadMode::kReflect));
  if (mode != tflite::MirrorPadMode::SYMMETRIC)
    return n.bad_option("mode", "REFLECT or SYMMETRIC", std::to_string(static_cast<int>(mode)));
  // Edges are repeated: the elements of each dim by their places.
  ValueId x = n.in(0);
  for (int64_t axis = 0; axis < n.rank(x); ++axis) {
    size_t d = static_cast<size_t>(axis);
    if (pads.before[d] == Dim(0) && pads.after[d] == Dim(0)) continue;
    QUERNEL_TRY(int64_t size, n.dim(x, axis));
    int64_t before = pads.before[d].value(), after = pads.after[d].value();
    if (before > size || after > size)
      return n.invalid("expected padding of at most " + std::to_string(size) + " elements, found " +
                       std::to_string(std::max(before, after)));
    std::vector<int64_t> places;
    for (int64_t i = -before; i < size + after; ++i)
      places.push_back(i < 0 ? -1 - i : i < size ? i : 2 * size - 1 - i);
    x = n.build.take(x, n.build.constant(i64_tensor({static_cast<int64_t>(places.size())}, places)), axis);
  }
  return n.output(x);
}

Status import_reverse_v2(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> axes, n.ints_in(1, "the axes"));
  QUERNEL_TRY(axes, n.axes_in_range(std::move(axes), n.rank(n.in(0))));
  std::sort(axes.begin(), axes.end());
  return n.output(axes.empty() ? n.in(0) : n.build.flip(n.in(0), axes));
}

Status import_broadcast_to(NodeImport& n) {
  QUERNEL_TRY(Shape shape, n.dims_in(1, "the shape"));
  return n.output(n.build.broadcast_to(n.in(0), shape));
}

Status import_broadcast_args(NodeImport& n) {
  QUERNEL_TRY(Shape a, n.dims_in(0, "a shape"));
  QUERNEL_TRY(Shape b, n.dims_in(1, "a shape"));
  QUERNEL_TRY(Shape both, broadcast_shapes(a, b));
  QUERNEL_TRY(std::vector<int64_t> dims, [&]() -> Expected<std::vector<int64_t>> {
    std::vector<int64_t> values;
    for (const Dim& d : both) {
      QUERNEL_TRY(int64_t value, n.dim(d));
      values.push_back(value);
    }
    return values;
  }());
  ValueId v = n.build.constant(i64_tensor({static_cast<int64_t>(dims.size())}, dims));
  return n.output(n.build.cast(v, n.out_dtype(0)));
}

// Operands: the shape, one value.
Status import_fill(NodeImport& n) {
  QUERNEL_TRY(Shape shape, n.dims_in(0, "the shape"));
  return n.output(n.build.broadcast_to(n.build.reshape(n.in(1), {}), shape));
}

Status import_zeros_like(NodeImport& n) { return n.output(n.full(n.dtype(n.in(0)), n.shape(n.in(0)), 0)); }

Status import_shape(NodeImport& n) {
  n.options<tflite::ShapeOptions>();  // the file's type of the result says the same
  Attributes attributes;
  attributes.shape = n.shape(n.in(0));
  return n.output(n.build.cast(n.build.add(OpKind::k_dims, {}, std::move(attributes)), n.out_dtype(0)));
}

Status import_rank(NodeImport& n) { return n.output(n.scalar(n.out_dtype(0), n.rank(n.in(0)))); }

Status import_depth_to_space(NodeImport& n) {
  QUERNEL_TRY(int64_t b, block_size(n, n.options<tflite::DepthToSpaceOptions>().block_size()));
  Shape d = n.shape(n.in(0));
  Dim channels = floordiv(d[3], b * b);
  QUERNEL_CHECK(n.require_equal(d[3], channels * (b * b), "the channels"));
  ValueId x =
      n.build.permute(n.build.reshape(n.in(0), {d[0], d[1], d[2], b, b, channels}), {0, 1, 3, 2, 4, 5});
  return n.output(n.build.reshape(x, {d[0], d[1] * b, d[2] * b, channels}));
}

Status import_space_to_depth(NodeImport& n) {
  QUERNEL_TRY(int64_t b, block_size(n, n.options<tflite::SpaceToDepthOptions>().block_size()));
  Shape d = n.shape(n.in(0));
  Dim rows = floordiv(d[1], b), columns = floordiv(d[2], b);
  QUERNEL_CHECK(n.require_equal(d[1], rows * b, "the rows"));
  QUERNEL_CHECK(n.require_equal(d[2], columns * b, "the columns"));
  ValueId x =
      n.build.permute(n.build.reshape(n.in(0), {d[0], rows, b, columns, b, d[3]}), {0, 1, 3, 2, 4, 5});
  return n.output(n.build.reshape(x, {d[0], rows, columns, d[3] * (b * b)}));
}

// [blocks, batch, …] to [batch, size, block, …]: the blocks lead the batch.
Status import_batch_to_space_nd(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> blocks, block_sizes(n));
  QUERNEL_TRY(Amounts crops, amounts_in(n, 2, blocks.size(), "the crops"));
  Shape dims = n.shape(n.in(0)), apart, result = dims;
  size_t m = blocks.size();
  Dim batch = dims[0];
  for (int64_t b : blocks) {
    apart.push_back(b);
    batch = floordiv(batch, b);
  }
  apart.push_back(batch);
  apart.insert(apart.end(), dims.begin() + 1, dims.end());
  std::vector<int64_t> order{static_cast<int64_t>(m)};
  result[0] = batch;
  for (size_t i = 0; i < m; ++i) {
    order.insert(order.end(), {static_cast<int64_t>(m + 1 + i), static_cast<int64_t>(i)});
    result[i + 1] = dims[i + 1] * blocks[i];
  }
  for (size_t i = 2 * m + 1; i < apart.size(); ++i) order.push_back(static_cast<int64_t>(i));
  ValueId x = n.build.reshape(n.build.permute(n.build.reshape(n.in(0), apart), order), result);
  Shape starts(dims.size(), Dim(0)), stops = result;
  for (size_t i = 0; i < m; ++i) {
    starts[i + 1] = crops.before[i];
    stops[i + 1] = result[i + 1] - crops.after[i];
    QUERNEL_CHECK(n.require_at_least(stops[i + 1] - starts[i + 1], 0, "a cropped dim"));
  }
  return n.output(n.build.slice(x, starts, stops));
}

Status import_space_to_batch_nd(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> blocks, block_sizes(n));
  QUERNEL_TRY(Amounts pads, amounts_in(n, 2, blocks.size(), "the padding"));
  size_t m = blocks.size(), rank = static_cast<size_t>(n.rank(n.in(0)));
  Shape before(rank, Dim(0)), after = before;
  std::copy(pads.before.begin(), pads.before.end(), before.begin() + 1);
  std::copy(pads.after.begin(), pads.after.end(), after.begin() + 1);
  double fill = n.is_quantized(0) ? static_cast<double>(n.in_quantization(0).zero()) : 0;
  ValueId x = n.build.pad(n.in(0), before, after, PadMode::kConstant, fill);
  Shape dims = n.shape(x), apart{dims[0]}, result = dims;
  std::vector<int64_t> order;
  for (size_t i = 0; i < m; ++i) {
    Dim size = floordiv(dims[i + 1], blocks[i]);
    QUERNEL_CHECK(n.require_equal(dims[i + 1], size * blocks[i], "a padded dim"));
    apart.insert(apart.end(), {size, blocks[i]});
    result[0] = result[0] * blocks[i];
    result[i + 1] = size;
    order.push_back(static_cast<int64_t>(2 * i + 2));
  }
  apart.insert(apart.end(), dims.begin() + static_cast<std::ptrdiff_t>(m) + 1, dims.end());
  order.push_back(0);
  for (size_t i = 0; i < m; ++i) order.push_back(static_cast<int64_t>(2 * i + 1));
  for (size_t i = 2 * m + 1; i < apart.size(); ++i) order.push_back(static_cast<int64_t>(i));
  return n.output(n.build.reshape(n.build.permute(n.build.reshape(x, apart), order), result));
}

}  // namespace quernel::tflite_import
