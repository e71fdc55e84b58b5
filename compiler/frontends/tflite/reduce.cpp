// Reductions, scans, and the places of largest and smallest elements.
#include <algorithm>
#include <bit>
#include <cmath>

#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {
namespace {

struct Reduction {
  std::vector<int64_t> axes;
  bool keeps = false;
  Dim count = 1;  // of the elements that become one
};

Expected<Reduction> read_reduction(NodeImport& n) {
  Reduction r;
  r.keeps = n.options<tflite::ReducerOptions>().keep_dims();
  QUERNEL_TRY(r.axes, n.ints_in(1, "the axes"));
  for (int64_t& axis : r.axes) {
    QUERNEL_TRY(axis, n.axis(axis, n.rank(n.in(0))));
  }
  std::sort(r.axes.begin(), r.axes.end());
  r.axes.erase(std::unique(r.axes.begin(), r.axes.end()), r.axes.end());
  for (int64_t axis : r.axes) r.count *= n.shape(n.in(0))[static_cast<size_t>(axis)];
  return r;
}

Status reduce_plain(NodeImport& n, OpKind op) {
  QUERNEL_TRY(Reduction r, read_reduction(n));
  return n.output(n.build.reduce(op, n.in(0), r.axes, r.keeps));
}

// Largest and smallest elements of one scale are those of the integers.
Status reduce_ordered(NodeImport& n, OpKind op) {
  if (n.is_quantized(0) && !(n.in_quantization(0) == n.out_quantization(0)))
    return n.refuse("expected operands and result of one scale and zero point");
  return reduce_plain(n, op);
}

Status reduce_logical(NodeImport& n, OpKind op) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kBool}));
  return reduce_plain(n, op);
}

// As TensorFlow Lite Micro divides a multiplier: its integer, of 31 bits, with as many more as the count has.
Multiplier divided_multiplier(double m, int64_t count) {
  constexpr int kBits = 31, kMostShift = 32;
  Multiplier full = make_multiplier(m, IntegerRounding::kSingle);
  int exponent = kBits - full.shift;
  int shift = std::min(
      {static_cast<int>(std::bit_width(static_cast<uint64_t>(count))) - 1, kMostShift, kBits + exponent});
  Multiplier result{(full.q << shift) / count, kBits};
  exponent -= shift;
  if (exponent < 0)
    result.second_shift = -exponent;
  else
    result.shift = kBits - exponent;
  return result;
}

// Sums of integers minus their zero points, scaled to the result: sums, or means where the scale has the count.
Status quantized_sum(NodeImport& n, const Reduction& r, bool mean) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8, DType::kU8, DType::kI16}));
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  QUERNEL_TRY(int64_t count, n.dim(r.count));
  const Quantization &in = n.in_quantization(0), &out = n.out_quantization(0);
  ValueId wide = centred(n, n.in(0), in.zero());
  if (n.dtype(n.in(0)) == DType::kI16) wide = n.build.cast(wide, DType::kI64);
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, wide, r.axes, r.keeps);
  double m = static_cast<double>(in.scale()) / static_cast<double>(out.scale());
  count = std::max<int64_t>(mean ? count : 1, 1);
  Multiplier scaling = n.file.rounding == IntegerRounding::kDouble
                           ? divided_multiplier(m, count)
                           : make_multiplier(m / static_cast<double>(count), IntegerRounding::kSingle);
  if (in_floats(n)) scaling = float_multiplier(in.scale() / out.scale() * (1.0f / static_cast<float>(count)));
  return n.output(requantize(n, sum, {scaling}, ActivationFunctionType::NONE));
}

// Products of integers minus their zero points, one after the other in the elements' order: each is scaled by the
// operand's scale and the root of the result's, so that none becomes large.
Status quantized_product_of_elements(NodeImport& n, const Reduction& r) {
  constexpr int64_t kMostElements = 256;
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8, DType::kI16}));
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  QUERNEL_TRY(int64_t count, n.dim(r.count));
  if (count < 1 || count > kMostElements)
    return n.refuse("expected 1 to 256 elements to be multiplied, found " + std::to_string(count));
  const Quantization &in = n.in_quantization(0), &out = n.out_quantization(0);
  double root = std::pow(static_cast<double>(out.scale()), 1 / static_cast<double>(count));
  Multiplier m = short_multiplier(static_cast<double>(in.scale()) / root);
  const Shape dims = n.shape(n.in(0));
  std::vector<int64_t> order;
  Shape kept, result;
  auto is_reduced = [&](size_t d) {
    return std::binary_search(r.axes.begin(), r.axes.end(), static_cast<int64_t>(d));
  };
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!is_reduced(d)) order.push_back(static_cast<int64_t>(d)), kept.push_back(dims[d]);
    if (r.keeps || !is_reduced(d)) result.push_back(is_reduced(d) ? Dim(1) : dims[d]);
  }
  order.insert(order.end(), r.axes.begin(), r.axes.end());
  Dim rows = element_count(kept);
  ValueId x = n.build.cast(centred(n, n.in(0), in.zero()), DType::kI64);
  x = n.build.reshape(n.build.permute(x, order), {rows, Dim(count)});
  ValueId product = kNoValue;
  for (int64_t i = 0; i < count; ++i) {
    ValueId element = n.build.slice(x, {0, Dim(i)}, {rows, Dim(i + 1)});
    if (i == 0)
      product = element;
    else
      product = scale_integers(n, n.binary(BinaryOp::k_mul, product, element), {m});
  }
  return n.output(requantize(n, n.build.reshape(product, result), {m}, ActivationFunctionType::NONE));
}

Status arg_reduction(NodeImport& n, OpKind op) {
  QUERNEL_TRY(int64_t axis, n.int_in(1, "the axis"));
  QUERNEL_TRY(axis, n.axis(axis, n.rank(n.in(0))));
  Attributes attributes;
  attributes.ints = {axis};
  attributes.dtype = DType::kI64;
  return n.output(n.build.cast(n.build.add(op, {n.in(0)}, std::move(attributes)), n.out_dtype(0)));
}

}  // namespace

Status import_sum(NodeImport& n) {
  if (!n.is_quantized(0)) return reduce_plain(n, OpKind::k_reduce_sum);
  QUERNEL_TRY(Reduction r, read_reduction(n));
  return quantized_sum(n, r, false);
}

Status import_mean(NodeImport& n) {
  QUERNEL_TRY(Reduction r, read_reduction(n));
  if (n.is_quantized(0)) return quantized_sum(n, r, true);
  return n.output(n.mean(n.in(0), r.axes, r.keeps));
}

Status import_reduce_prod(NodeImport& n) {
  if (!n.is_quantized(0)) return reduce_plain(n, OpKind::k_reduce_prod);
  QUERNEL_TRY(Reduction r, read_reduction(n));
  return quantized_product_of_elements(n, r);
}

Status import_reduce_max(NodeImport& n) { return reduce_ordered(n, OpKind::k_reduce_max); }
Status import_reduce_min(NodeImport& n) { return reduce_ordered(n, OpKind::k_reduce_min); }
Status import_reduce_any(NodeImport& n) { return reduce_logical(n, OpKind::k_reduce_or); }
Status import_reduce_all(NodeImport& n) { return reduce_logical(n, OpKind::k_reduce_and); }

Status import_arg_max(NodeImport& n) {
  n.options<tflite::ArgMaxOptions>();  // the file's type of the result says the same
  return arg_reduction(n, OpKind::k_reduce_argmax);
}
Status import_arg_min(NodeImport& n) {
  n.options<tflite::ArgMinOptions>();
  return arg_reduction(n, OpKind::k_reduce_argmin);
}

Status import_cumsum(NodeImport& n) {
  const auto& options = n.options<tflite::CumsumOptions>();
  if (n.is_quantized(0)) return n.no_kernel();
  QUERNEL_TRY(int64_t axis, n.int_in(1, "the axis"));
  QUERNEL_TRY(axis, n.axis(axis, n.rank(n.in(0))));
  return n.output(n.build.scan(OpKind::k_scan_sum, n.in(0), axis, options.exclusive(), options.reverse()));
}

}  // namespace quernel::tflite_import
