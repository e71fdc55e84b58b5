// Weights of 2, 4 or 8 bits in blocks that share a scale and a zero point.
#include <algorithm>
#include <numeric>

#include "frontends/onnx/matmul.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/quantize.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

// The elements of `bits` bits in the bytes of the last dim, low-order ones first, as bytes of their own:
// [..., M] -> [..., M * 8 / bits].
ValueId split_bytes(NodeImport& n, ValueId bytes, int64_t bits) {
  const int64_t per_byte = 8 / bits, mask = (int64_t{1} << bits) - 1;
  if (per_byte == 1) return bytes;
  Shape one = n.shape(bytes), all = one;
  one.push_back(1);
  all.back() = all.back() * Dim(per_byte);
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < per_byte; ++i) {
    ValueId part = bytes;
    if (i > 0) part = n.binary(BinaryOp::k_shr, part, static_cast<double>(i * bits));
    if (i + 1 < per_byte) part = n.binary(BinaryOp::k_and, part, static_cast<double>(mask));
    parts.push_back(n.build.reshape(part, one));
  }
  return n.build.reshape(n.build.cat(parts, static_cast<int64_t>(one.size()) - 1), all);
}

// A constant of bytes that hold elements of `bits` bits each, of these dims.
ValueId unpacked(NodeImport& n, Tensor packed, std::vector<int64_t> dims, int64_t bits) {
  if (bits == 2) {
    Shape shape;
    for (int64_t d : dims) shape.emplace_back(d);
    packed.dims = {packed.count()};
    return n.build.reshape(split_bytes(n, n.build.constant(std::move(packed)), bits), shape);
  }
  packed.dtype = bits == 4 ? DType::kU4 : DType::kU8;
  packed.dims = std::move(dims);
  return n.build.constant(std::move(packed));
}

// The rows of a product in the order of the blocks that g_idx names, if each block gets `block` of them, the last one the
// rest; nullopt if not, or if g_idx is no constant.
std::optional<std::vector<int64_t>> rows_by_block(NodeImport& n, ValueId g_idx, int64_t rows, int64_t block) {
  const Tensor* blocks = n.build.graph().constant(g_idx);
  if (!blocks) return std::nullopt;
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return element_as_i64(*blocks, a) < element_as_i64(*blocks, b);
  });
  for (int64_t i = 0; i < rows; ++i)
    if (element_as_i64(*blocks, order[static_cast<size_t>(i)]) != i / block) return std::nullopt;
  return order;
}

// `accuracy_level` is the least that A is multiplied in: 1 f32, 2 f16, 3 bf16, 4 i8; 0 asks for nothing.
Status check_accuracy(NodeImport& n) {
  const int64_t level = n.attr_int("accuracy_level", 0);
  if (level < 0 || level > 4)
    return n.invalid("attribute 'accuracy_level': expected 0 to 4, found " + std::to_string(level));
  if (n.activations != DType::kI8 || level == 0 || level == 4) return {};
  return n.invalid("attribute 'accuracy_level': expected 0 or 4 (i8) with --activations i8, found " +
                   std::to_string(level) + ", which asks for floats");
}

}  // namespace

// A [..., K] times the transpose of B [N,K], whose elements of 2, 4 or 8 bits share a scale per block along K.
Status import_matmul_n_bits(NodeImport& n) {
  int64_t k = n.attr_int("K", 0), columns = n.attr_int("N", 0), bits = n.attr_int("bits", 4),
          block = n.attr_int("block_size", 0);
  QUERNEL_CHECK(check_accuracy(n));
  if (bits != 2 && bits != 4 && bits != 8)
    return n.refuse("attribute 'bits': only 2, 4 and 8 are supported, found " + std::to_string(bits));
  constexpr int64_t kLimit = int64_t{1} << 31;
  if (k < 1 || columns < 1 || block < 1 || k > kLimit || columns > kLimit || block > kLimit ||
      block * bits % 8 != 0)
    return n.invalid("expected attributes 'K', 'N' and a 'block_size' of whole bytes");
  int64_t blocks = (k + block - 1) / block, padded = blocks * block;
  QUERNEL_TRY(Tensor packed, n.constant_in(1, "B"));
  if (packed.dtype != DType::kU8 || packed.count() * 8 != columns * padded * bits)
    return n.invalid("expected uint8 weights of " + std::to_string(columns) + " rows of " +
                     std::to_string(padded) + " elements, found " + to_string(n.shape(n.in(1))));
  for (int i : {2, 3}) {
    if (!n.has(i) || (i == 3 && !is_float(n.dtype(n.in(i))))) continue;
    if (!is_float(n.dtype(n.in(i))) || !(element_count(n.shape(n.in(i))) == Dim(columns * blocks)))
      return n.invalid("expected " + std::string(i == 2 ? "scales" : "zero points") + " of floats, " +
                       std::to_string(columns) + " rows of " + std::to_string(blocks) + ", found " +
                       to_string(n.build.graph().type(n.in(i))));
  }
  ValueId scales = n.build.reshape(n.in(2), {columns, blocks});
  ValueId zeros;
  const DType stored = bits == 4 ? DType::kU4 : DType::kU8;
  if (!n.has(3)) {
    zeros = n.build.full(stored, {columns, blocks}, static_cast<double>(int64_t{1} << (bits - 1)));
  } else if (is_float(n.dtype(n.in(3)))) {
    zeros = n.build.cast(n.build.reshape(n.in(3), {columns, blocks}), DType::kF32);
  } else {
    // Rows of packed zero points are whole bytes.
    QUERNEL_TRY(Tensor points, n.constant_in(3, "zero_points"));
    int64_t per_byte = 8 / bits, row = (blocks + per_byte - 1) / per_byte * per_byte;
    if (points.dtype != DType::kU8 || points.count() * 8 != columns * row * bits)
      return n.invalid("expected uint8 zero points of " + std::to_string(columns) + " rows of " +
                       std::to_string(blocks) + ", found " + to_string(n.shape(n.in(3))));
    zeros = n.build.slice(unpacked(n, std::move(points), {columns, row}, bits), {0, 0}, {columns, blocks});
  }
  ValueId weights =
      n.build.slice(unpacked(n, std::move(packed), {columns, padded}, bits), {0, 0}, {columns, k});
  ValueId a = n.widen(n.in(0));
  if (n.has(4)) {
    // Each row of the product names its block. Sorted by blocks, along with A's columns, they are blocks.
    if (n.rank(n.in(4)) != 1 || !always_le(k, n.shape(n.in(4))[0]))
      return n.invalid("expected g_idx of at least " + std::to_string(k) + " elements, found " +
                       to_string(n.shape(n.in(4))));
    ValueId block_of = n.build.slice(n.in(4), {0}, {k});
    QUERNEL_CHECK(check_indices(n, n.in(4), blocks));
    if (std::optional<std::vector<int64_t>> order = rows_by_block(n, n.in(4), k, block)) {
      if (!std::is_sorted(order->begin(), order->end())) {
        const ValueId rows = n.build.constant(i64_tensor({k}, *order));
        weights = n.build.take(weights, rows, 1);
        a = n.build.take(a, rows, n.build.graph().rank(a) - 1);
      }
      weights = n.build.dequantize(weights, scales, zeros, {1, block});
    } else {
      weights = n.build.dequantize(weights, n.build.take(scales, block_of, 1),
                                   n.build.take(zeros, block_of, 1), {1, 1});
    }
  } else {
    weights = n.build.dequantize(weights, scales, zeros, {1, block});
  }
  QUERNEL_TRY(ValueId y, matmul(n, a, n.build.permute(weights, {1, 0})));
  if (n.has(5)) y = n.binary(BinaryOp::k_add, y, n.widen(n.in(5)));
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
}

// Rows of block-quantised data, by index: gathered as they are stored, then widened.
Status import_gather_block_quantized(NodeImport& n) {
  const int64_t rank = n.rank(n.in(0)), block = n.attr_int("block_size", 128);
  int64_t gathered = n.attr_int("gather_axis", 0), quantized = n.attr_int("quantize_axis", 1),
          bits = n.attr_int("bits", 4);
  for (auto [axis, name] : {std::pair(&gathered, "gather_axis"), std::pair(&quantized, "quantize_axis")}) {
    if (*axis < -rank || *axis >= rank)
      return n.invalid("attribute '" + std::string(name) + "': expected a dim of " +
                       to_string(n.shape(n.in(0))) + ", found " + std::to_string(*axis));
    if (*axis < 0) *axis += rank;
  }
  if (gathered == quantized)
    return n.invalid("expected 'gather_axis' and 'quantize_axis' to differ, found both at " +
                     std::to_string(gathered));
  if (block < 1)
    return n.invalid("attribute 'block_size': expected at least 1, found " + std::to_string(block));
  const DType stored = n.dtype(n.in(0));
  const bool in_bytes = stored == DType::kU8;
  if (!in_bytes && stored != DType::kI4 && stored != DType::kU4)
    return n.invalid("expected data of uint8, int4 or uint4, found " + std::string(to_string(stored)));
  if (in_bytes ? bits != 2 && bits != 4 && bits != 8 : bits != 4)
    return n.refuse("attribute 'bits': expected 4, or with uint8 data 2, 4 or 8, found " +
                    std::to_string(bits));
  if (in_bytes && bits < 8 && quantized != rank - 1)
    return n.invalid("expected the last dim of packed data to be 'quantize_axis', found " +
                     std::to_string(quantized));
  ValueId data = n.in(0), scales = n.in(2), zeros = n.in(3);
  if (!is_float(n.dtype(scales)))
    return n.invalid("expected floats as scales, found " + std::string(to_string(n.dtype(scales))));
  const DType wide = n.dtype(n.widen(scales));
  auto widened = [&](ValueId v) { return n.build.cast(in_bytes ? split_bytes(n, v, bits) : v, wide); };
  Shape elements = n.shape(data);
  if (in_bytes) elements.back() = elements.back() * Dim(8 / bits);
  Shape blocks = elements;
  const auto axis = static_cast<size_t>(quantized);
  blocks[axis] = floordiv(elements[axis] + Dim(block - 1), block);
  if (n.shape(scales) != blocks)
    return n.invalid("expected scales " + to_string(blocks) + ", found " + to_string(n.shape(scales)));
  QUERNEL_CHECK(check_indices(n, n.in(1), elements[static_cast<size_t>(gathered)]));
  auto taken = [&](ValueId v) { return n.build.take(v, n.in(1), static_cast<int>(gathered)); };
  // Indices of any rank take the place of the gathered dim.
  const int64_t moved = quantized < gathered ? quantized : quantized + n.rank(n.in(1)) - 1;
  ValueId y = widened(taken(data));
  const Shape shape = n.shape(y);
  auto spread = [&](ValueId by_block) { return spread_parameter(n, by_block, shape, moved, block); };
  if (zeros == kNoValue) {
    if (in_bytes) y = n.binary(BinaryOp::k_sub, y, static_cast<double>(int64_t{1} << (bits - 1)));
  } else {
    // The last dim of packed ones is whole bytes.
    ValueId points = widened(taken(zeros));
    Shape stops = n.shape(points);
    if (n.dtype(zeros) != stored || stops.size() != shape.size() ||
        !always_le(blocks[axis], stops[static_cast<size_t>(moved)]))
      return n.invalid("expected zero points of the data's dtype for scales " + to_string(blocks) +
                       ", found " + std::string(to_string(n.dtype(zeros))) + to_string(n.shape(zeros)));
    stops[static_cast<size_t>(moved)] = blocks[axis];
    QUERNEL_TRY(points, spread(n.build.slice(points, Shape(stops.size(), Dim(0)), stops)));
    y = n.binary(BinaryOp::k_sub, y, points);
  }
  QUERNEL_TRY(ValueId factor, spread(n.widen(taken(scales))));
  y = n.binary(BinaryOp::k_mul, y, factor);
  return n.output(n.build.cast(y, n.dtype(scales)));
}

}  // namespace quernel::onnx_import
