// Random numbers: threefry2x32 of a key from the node's seed and the number of the element, so that they are
// the same in every run and on every device. A node without a seed has one of its own, by its output's name.
#include <cmath>
#include <cstring>

#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

uint64_t key_of(NodeImport& n) {
  if (n.attribute("seed")) {
    float seed = static_cast<float>(n.attr_float("seed", 0));
    uint32_t bits = 0;
    std::memcpy(&bits, &seed, sizeof bits);
    return bits;
  }
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  if (n.proto.output_size() > 0)
    for (char c : n.proto.output(0)) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// 64 random bits per element, as u64. Each iteration of a loop has a key of its own, whether it is unrolled
// or runs.
ValueId random_bits(NodeImport& n, const Shape& shape) {
  ValueId counter = n.build.reshape(n.positions(DType::kU64, element_count(shape)), shape);
  ValueId key = n.build.constant(make_tensor<uint64_t>(DType::kU64, {}, {key_of(n)}));
  for (ValueId iteration : n.iterations)
    key = n.binary(BinaryOp::k_threefry2x32, key,
                   n.build.cast(n.binary(BinaryOp::k_add, iteration, 1.0), DType::kU64));
  return n.binary(BinaryOp::k_threefry2x32, key, counter);
}

ValueId u64(NodeImport& n, uint64_t value) {
  return n.build.constant(make_tensor<uint64_t>(DType::kU64, {}, {value}));
}

// Bits shift … shift+count-1 as an integer below 2^count, in the float dtype that is computed in.
ValueId bits_as_float(NodeImport& n, ValueId bits, int shift, int count, DType compute) {
  ValueId x = n.binary(BinaryOp::k_shr, bits, u64(n, static_cast<uint64_t>(shift)));
  if (shift + count < 64) x = n.binary(BinaryOp::k_and, x, u64(n, (uint64_t{1} << count) - 1));
  return n.build.cast(count < 32 ? n.build.cast(x, DType::kI32) : x, compute);
}

DType compute_dtype(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

// In [0, 1), multiples of the dtype's 2^-precision from the highest bits.
ValueId uniform(NodeImport& n, const Shape& shape, DType dtype) {
  int precision = dtype == DType::kF64 ? 53 : dtype == DType::kF32 ? 24 : dtype == DType::kF16 ? 11 : 8;
  ValueId x = bits_as_float(n, random_bits(n, shape), 64 - precision, precision, compute_dtype(dtype));
  return n.binary(BinaryOp::k_mul, x, std::ldexp(1.0, -precision));
}

// Box and Muller: the radius from the lower word, the angle from the upper.
ValueId normal(NodeImport& n, const Shape& shape, DType dtype) {
  int precision = dtype == DType::kF64 ? 32 : 24;
  double step = std::ldexp(1.0, -precision);
  ValueId bits = random_bits(n, shape);
  ValueId low = bits_as_float(n, bits, 32 - precision, precision, compute_dtype(dtype));
  ValueId high = bits_as_float(n, bits, 64 - precision, precision, compute_dtype(dtype));
  ValueId log = n.unary(UnaryOp::k_log, n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_add, low, 1.0), step));
  ValueId radius = n.unary(UnaryOp::k_sqrt, n.binary(BinaryOp::k_mul, log, -2.0));
  ValueId angle = n.binary(BinaryOp::k_mul, high, 2 * M_PI * step);
  return n.binary(BinaryOp::k_mul, radius, n.unary(UnaryOp::k_cos, angle));
}

Expected<DType> read_dtype(NodeImport& n, DType fallback) {
  DType dtype = fallback;
  if (n.attribute("dtype")) {
    QUERNEL_TRY(dtype, dtype_from_onnx(static_cast<int>(n.attr_int("dtype", 0)), n.build.location()));
  }
  return dtype;
}

Expected<DType> read_float_dtype(NodeImport& n, DType fallback) {
  QUERNEL_TRY(DType dtype, read_dtype(n, fallback));
  if (!is_float(dtype) || dtype >= DType::kI4)
    return n.invalid("expected a float dtype, found " + std::string(to_string(dtype)));
  return dtype;
}

Expected<Shape> read_shape(NodeImport& n) {
  std::optional<std::vector<int64_t>> dims = n.attr_ints("shape");
  if (!dims) return n.invalid("attribute 'shape' is missing");
  for (int64_t d : *dims)
    if (d < 0) return n.invalid("expected dims of at least 0, found " + std::to_string(d));
  if (!element_count(*dims)) return n.refuse("a tensor of more elements than fit 63 bits");
  return make_shape(*dims);
}

Status finish_uniform(NodeImport& n, const Shape& shape, DType dtype) {
  double low = n.attr_float("low", 0), high = n.attr_float("high", 1);
  ValueId x = n.binary(BinaryOp::k_mul, uniform(n, shape, dtype), high - low);
  return n.output(n.build.cast(n.binary(BinaryOp::k_add, x, low), dtype));
}

Status finish_normal(NodeImport& n, const Shape& shape, DType dtype) {
  double mean = n.attr_float("mean", 0), scale = n.attr_float("scale", 1);
  ValueId x = n.binary(BinaryOp::k_mul, normal(n, shape, dtype), scale);
  return n.output(n.build.cast(n.binary(BinaryOp::k_add, x, mean), dtype));
}

using Finish = Status (*)(NodeImport& n, const Shape& shape, DType dtype);

Status import_random(NodeImport& n, Finish finish) {
  QUERNEL_TRY(Shape shape, read_shape(n));
  QUERNEL_TRY(DType dtype, read_float_dtype(n, DType::kF32));
  return finish(n, shape, dtype);
}

Status import_random_like(NodeImport& n, Finish finish) {
  QUERNEL_TRY(DType dtype, read_float_dtype(n, n.dtype(n.in(0))));
  return finish(n, n.shape(n.in(0)), dtype);
}

}  // namespace

Status import_random_uniform(NodeImport& n) { return import_random(n, finish_uniform); }
Status import_random_uniform_like(NodeImport& n) { return import_random_like(n, finish_uniform); }
Status import_random_normal(NodeImport& n) { return import_random(n, finish_normal); }
Status import_random_normal_like(NodeImport& n) { return import_random_like(n, finish_normal); }

// 1 where a uniform number is below the probability.
Status import_bernoulli(NodeImport& n) {
  ValueId x = n.in(0);
  QUERNEL_TRY(DType dtype, read_dtype(n, n.dtype(x)));
  ValueId drawn = uniform(n, n.shape(x), n.dtype(x));
  return n.output(n.build.cast(n.binary(BinaryOp::k_lt, drawn, n.build.cast(x, n.dtype(drawn))), dtype));
}

// The class whose part of the cumulated exp(x) a uniform number falls into.
Status import_multinomial(NodeImport& n) {
  ValueId x = n.widen(n.in(0));
  int64_t samples = n.attr_int("sample_size", 1);
  QUERNEL_TRY(DType dtype, read_dtype(n, DType::kI32));
  Shape shape = n.shape(x);
  if (shape.size() != 2) return n.invalid("expected an input [batch,classes], found " + to_string(shape));
  if (samples < 1 || samples > (int64_t{1} << 31))
    return n.invalid("expected a sample_size of at least 1 and at most 2^31, found " +
                     std::to_string(samples));
  if (dtype != DType::kI32 && dtype != DType::kI64)
    return n.invalid("expected int32 or int64, found " + std::string(to_string(dtype)));
  QUERNEL_TRY(int64_t classes, n.dim(shape[1]));
  if (classes < 1) return n.invalid("expected at least one class");
  ValueId largest = n.build.reduce(OpKind::k_reduce_max, x, {1}, true);
  ValueId e = n.unary(UnaryOp::k_exp, n.binary(BinaryOp::k_sub, x, largest));
  ValueId sums = n.build.scan(OpKind::k_scan_sum, e, 1, false, false);
  ValueId total = n.build.slice(sums, {0, classes - 1}, {shape[0], classes});
  ValueId drawn = n.binary(BinaryOp::k_mul, uniform(n, {shape[0], samples}, n.dtype(x)), total);
  ValueId below = n.binary(BinaryOp::k_le, n.build.reshape(sums, {shape[0], 1, classes}),
                           n.build.reshape(drawn, {shape[0], samples, 1}));
  ValueId passed = n.build.reduce(OpKind::k_reduce_sum, n.build.cast(below, dtype), {2}, false);
  return n.output(n.binary(BinaryOp::k_min, passed, static_cast<double>(classes - 1)));
}

}  // namespace quernel::onnx_import
