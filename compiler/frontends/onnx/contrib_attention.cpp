// com.microsoft's attention operators: other operand forms of the same products.
#include <cmath>

#include "frontends/onnx/contrib_attention.h"
#include "frontends/onnx/matmul.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/quantize.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

// Part `i` of a packed [B,S,H,parts,D] as [B,H,S,D].
ValueId unpack(NodeImport& n, ValueId x, int64_t i) {
  Shape s = n.shape(x);
  ValueId part = n.build.slice(x, {0, 0, 0, i, 0}, {s[0], s[1], s[2], i + 1, s[4]});
  return n.build.permute(n.build.reshape(part, {s[0], s[1], s[2], s[4]}), {0, 2, 1, 3});
}

// What the padding mask adds to the scores: `filter` for hidden keys. [B] counts keys; [2B] are ends, then
// starts; [B,T] and [B,S,T] say for each.
Expected<ValueId> padding_bias(NodeImport& n, ValueId mask, const Dim& batch, const Dim& keys, DType dtype) {
  ValueId zero = n.scalar(dtype, 0), filter = n.scalar(dtype, n.attr_float("mask_filter_value", -10000));
  Shape s = n.shape(mask);
  ValueId seen = kNoValue;
  if (s == Shape{batch}) {
    seen = length_mask(n, mask, keys);
  } else if (s == Shape{batch * Dim(2)}) {
    seen = length_mask(n, n.build.slice(mask, {0}, {batch}), keys);
    ValueId hidden = length_mask(n, n.build.slice(mask, {batch}, {batch * Dim(2)}), keys);
    seen = n.binary(BinaryOp::k_and, seen, n.unary(UnaryOp::k_not, hidden));
  } else if ((s.size() == 2 || s.size() == 3) && s[0] == batch && s.back() == keys) {
    s.insert(s.begin() + 1, Dim(1));
    if (s.size() == 3) s.insert(s.begin() + 1, Dim(1));
    seen = n.binary(BinaryOp::k_ne, n.build.reshape(mask, s), 0.0);
  } else {
    if (s.size() == 2 || s.size() == 3) {
      n.build.note_unequal(s[0], batch, true);
      n.build.note_unequal(s.back(), keys, true);
    }
    return n.refuse("expected a mask of [B], [2B], [B,T] or [B,S,T], found " + to_string(n.shape(mask)));
  }
  return n.build.where(seen, zero, filter);
}

// scores + a + b where both are given
ValueId sum_of(NodeImport& n, ValueId a, ValueId b) {
  return a == kNoValue ? b : b == kNoValue ? a : n.binary(BinaryOp::k_add, a, b);
}

// The last query sees the last key.
void hide_later_keys(NodeImport& n, AttentionOperands& x) {
  Dim queries = n.shape(x.query)[2], keys = n.shape(x.key)[2];
  ValueId offset = n.number(DType::kI64, keys - queries);
  x.allowed = both_allowed(n, x.allowed, window_mask(n, queries, keys, offset, -1, 0));
}

}  // namespace

ValueId features(NodeImport& n, ValueId x, int64_t from, int64_t to) {
  Shape s = n.shape(x);
  return n.build.slice(x, {0, 0, from}, {s[0], s[1], to});
}

Status widen_operands(NodeImport& n, AttentionOperands& x) {
  for (ValueId* operand : {&x.query, &x.key, &x.value}) *operand = n.widen(*operand);
  QUERNEL_TRY(int64_t head_size, n.dim(x.query, 3));
  x.scale = n.attr_float("scale", 0);
  if (x.scale == 0) x.scale = 1 / std::sqrt(static_cast<double>(head_size));
  return {};
}

namespace {

// The operands of Attention and QAttention besides those that make the projections, by number; -1: none.
struct AttentionInputs {
  int mask = -1, past = -1, bias = -1;
};

// How the columns of the weights [F, width] divide into queries, keys and values.
Expected<std::vector<int64_t>> projection_sizes(NodeImport& n) {
  if (n.attr_int("do_rotary", 0) != 0) return n.refuse("attribute 'do_rotary': only 0 is supported");
  // Without such a buffer past_sequence_length means nothing.
  if (n.attr_int("past_present_share_buffer", 0) != 0)
    return n.refuse("a buffer shared by past and present is not supported");
  n.ignore_attribute("rotary_embedding_dim");  // without rotation it means nothing
  if (n.rank(n.in(0)) != 3 || n.rank(n.in(1)) != 2)
    return n.invalid("expected an input [B,S,F] and weights [F,3*H*D], found " + to_string(n.shape(n.in(0))) +
                     " and " + to_string(n.shape(n.in(1))));
  QUERNEL_TRY(int64_t width, n.dim(n.in(1), 1));
  std::vector<int64_t> sizes = n.attr_ints("qkv_hidden_sizes").value_or(std::vector<int64_t>(3, width / 3));
  if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] + sizes[1] + sizes[2] != width)
    return n.invalid("expected weights for queries, keys and values, found " + to_string(n.shape(n.in(1))));
  return sizes;
}

// `projected`: [B,S,width] of queries, keys and values, in f32. Results are of `dtype`.
Status attend_projected(NodeImport& n, ValueId projected, const std::vector<int64_t>& sizes,
                        const AttentionInputs& inputs, DType dtype) {
  int64_t heads = n.attr_int("num_heads", 0);
  bool causal = n.attr_int("unidirectional", 0) != 0;
  int64_t width = sizes[0] + sizes[1] + sizes[2];
  auto given = [&](int i) { return i >= 0 && n.has(i); };
  AttentionOperands a;
  QUERNEL_TRY(a.query, split_heads(n, features(n, projected, 0, sizes[0]), heads));
  QUERNEL_TRY(a.key, split_heads(n, features(n, projected, sizes[0], 2 * sizes[0]), heads));
  QUERNEL_TRY(a.value, split_heads(n, features(n, projected, 2 * sizes[0], width), heads));
  if (given(inputs.past)) {  // [2,B,H,P,D]
    Shape past = n.shape(n.in(inputs.past));
    if (past.size() != 5) return n.invalid("expected a past of [2,B,H,P,D], found " + to_string(past));
    auto half = [&](int64_t i) {
      ValueId part =
          n.build.slice(n.in(inputs.past), {i, 0, 0, 0, 0}, {i + 1, past[1], past[2], past[3], past[4]});
      return n.widen(n.build.reshape(part, {past[1], past[2], past[3], past[4]}));
    };
    a.key = n.build.cat({half(0), a.key}, 2);
    a.value = n.build.cat({half(1), a.value}, 2);
  }
  QUERNEL_CHECK(widen_operands(n, a));
  if (given(inputs.mask)) {
    QUERNEL_TRY(a.bias, padding_bias(n, n.in(inputs.mask), n.shape(projected)[0], n.shape(a.key)[2],
                                     n.dtype(projected)));
  }
  if (given(inputs.bias)) a.bias = sum_of(n, a.bias, n.widen(n.in(inputs.bias)));
  if (causal) hide_later_keys(n, a);
  QUERNEL_TRY(AttentionValues r, attend(n, a));
  ValueId present = kNoValue;
  if (n.wants_output(1)) {
    auto stacked = [&](ValueId v) {
      Shape s = n.shape(v);
      s.insert(s.begin(), Dim(1));
      return n.build.reshape(v, s);
    };
    if (n.shape(a.key) != n.shape(a.value))
      return n.invalid("expected keys and values of one shape in the present");
    present = n.build.cast(n.build.cat({stacked(a.key), stacked(a.value)}, 0), dtype);
  }
  return n.set_outputs({n.build.cast(merge_heads(n, r.output), dtype), present});
}

}  // namespace

// Projects the input to queries, keys and values first.
Status import_contrib_attention(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> sizes, projection_sizes(n));
  QUERNEL_TRY(ValueId projected, matmul(n, n.widen(n.in(0)), n.widen(n.in(1))));
  if (n.has(2)) projected = n.binary(BinaryOp::k_add, projected, n.widen(n.in(2)));
  return attend_projected(n, projected, sizes, {.mask = 3, .past = 4, .bias = 5}, n.dtype(n.in(0)));
}

// The same with a quantised input and quantised weights; their scales meet in the projections.
Status import_qattention(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> sizes, projection_sizes(n));
  QUERNEL_TRY(ValueId projected, integer_matmul(n, n.in(0), n.in(6), n.in(1), n.in(7)));
  auto scale = [&](int i) {
    ValueId v = n.widen(n.in(i));
    return element_count(n.shape(v)) == Dim(1) ? n.build.reshape(v, {}) : v;
  };
  projected = n.binary(BinaryOp::k_mul, n.build.cast(projected, DType::kF32),
                       n.binary(BinaryOp::k_mul, scale(3), scale(4)));
  if (n.has(2)) projected = n.binary(BinaryOp::k_add, projected, n.widen(n.in(2)));
  return attend_projected(n, projected, sizes, {.mask = 5, .past = 8}, n.dtype(n.in(3)));
}

// Queries, keys and values are ready, apart or packed.
Status import_multi_head_attention(NodeImport& n) {
  int64_t heads = n.attr_int("num_heads", 0);
  bool causal = n.attr_int("unidirectional", 0) != 0;
  DType dtype = n.dtype(n.in(0));
  ValueId query = n.in(0), key = n.in(1), value = n.in(2);
  AttentionOperands a;
  if (n.rank(query) == 5) {
    a.query = unpack(n, query, 0);
    a.key = unpack(n, query, 1);
    a.value = unpack(n, query, 2);
    if (n.has(3)) return n.refuse("a bias of packed queries is not supported");
  } else {
    auto with_bias = [&](ValueId x, int64_t from, int64_t to) {
      if (!n.has(3)) return x;
      return n.binary(BinaryOp::k_add, n.widen(x), n.widen(n.build.slice(n.in(3), {from}, {to})));
    };
    if (n.rank(query) != 3 || key == kNoValue)
      return n.invalid("expected queries [B,S,H*D] and keys, found " + to_string(n.shape(query)));
    QUERNEL_TRY(int64_t width, n.dim(query, 2));
    QUERNEL_TRY(a.query, split_heads(n, with_bias(query, 0, width), heads));
    if (n.rank(key) == 5) {
      a.key = unpack(n, key, 0);
      a.value = unpack(n, key, 1);
      if (n.has(3)) return n.refuse("a bias of packed keys is not supported");
    } else if (n.rank(key) == 4) {
      if (n.rank(value) != 4) return n.invalid("expected values [B,H,T,D] beside the keys");
      a.key = key;
      a.value = value;
    } else {
      if (n.rank(value) != 3) return n.invalid("expected values [B,T,H*D] beside the keys");
      QUERNEL_TRY(int64_t value_width, n.dim(value, 2));
      QUERNEL_TRY(a.key, split_heads(n, with_bias(key, width, 2 * width), heads));
      QUERNEL_TRY(a.value, split_heads(n, with_bias(value, 2 * width, 2 * width + value_width), heads));
    }
  }
  if (n.has(6) != n.has(7)) return n.invalid("expected past_key and past_value together");
  if (n.has(6) && (n.has(8) || n.has(9)))
    return n.refuse("a buffer shared by past and present is not supported");
  if (n.has(6) || n.wants_output(1) || n.wants_output(2)) {
    // What is attended to is what the present says, rounded.
    a.key = n.build.cast(a.key, dtype);
    a.value = n.build.cast(a.value, dtype);
  }
  if (n.has(6)) {
    a.key = n.build.cat({n.in(6), a.key}, 2);
    a.value = n.build.cat({n.in(7), a.value}, 2);
  }
  ValueId present_key = a.key, present_value = a.value;
  QUERNEL_CHECK(widen_operands(n, a));
  if (n.has(4)) {
    QUERNEL_TRY(a.bias, padding_bias(n, n.in(4), n.shape(a.query)[0], n.shape(a.key)[2], n.dtype(a.query)));
  }
  if (n.has(5)) a.bias = sum_of(n, a.bias, n.widen(n.in(5)));
  if (causal) hide_later_keys(n, a);
  n.ignore_attribute("mask_filter_value");  // without a mask there is nothing to fill
  QUERNEL_TRY(AttentionValues r, attend(n, a));
  return n.set_outputs({n.build.cast(merge_heads(n, r.output), dtype), present_key, present_value,
                        n.wants_output(3) ? n.build.cast(r.raw, dtype) : kNoValue});
}

// As the default domain's, with the positions before the caches; [1] is where all rows begin.
Status import_contrib_rotary_embedding(NodeImport& n) {
  bool interleaved = n.attr_int("interleaved", 0) != 0;
  int64_t heads = n.attr_int("num_heads", 0), rotated = n.attr_int("rotary_embedding_dim", 0);
  if (n.attr_int("is_packed_batching", 0) != 0)
    return n.refuse("attribute 'is_packed_batching': only 0 is supported");
  if (n.attr_float("scale", 1) != 1) return n.refuse("attribute 'scale': only 1 is supported");
  ValueId x = n.widen(n.in(0)), cosines = n.widen(n.in(2)), sines = n.widen(n.in(3));
  Shape shape = n.shape(x);
  bool flat = shape.size() == 3;
  if ((!flat && shape.size() != 4) || n.rank(cosines) != 2)
    return n.invalid("expected an input of rank 3 or 4 and caches of rank 2, found " + to_string(shape));
  QUERNEL_TRY(int64_t half, n.dim(cosines, 1));
  if (flat) {
    QUERNEL_TRY(int64_t width, n.dim(shape[2]));
    int64_t size = rotated > 0 && heads > 0 ? width / heads : 2 * half;
    if (size < 1 || width % size != 0) return n.invalid("expected whole heads, found " + to_string(shape));
    x = n.build.reshape(x, {shape[0], shape[1], width / size, size});
  } else {
    x = n.build.permute(x, {0, 2, 1, 3});
  }
  ValueId where = n.in(1);
  if (n.rank(where) == 1)
    QUERNEL_CHECK(n.require_equal(n.shape(where)[0], 1, "the number of positions without a batch"));
  if (element_count(n.shape(where)) == Dim(1)) {
    Dim steps = n.shape(x)[1];
    where = n.binary(BinaryOp::k_add, n.build.reshape(n.positions(n.dtype(where), steps), {1, steps}),
                     n.build.reshape(where, {}));
  }
  if (n.rank(cosines) > 0) QUERNEL_CHECK(check_indices(n, where, n.shape(cosines)[0], "position"));
  ValueId y =
      rotate(n, x, n.build.take(cosines, where, 0), n.build.take(sines, where, 0), 2 * half, interleaved);
  y = flat ? n.build.reshape(y, shape) : n.build.permute(y, {0, 2, 1, 3});
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
}

}  // namespace quernel::onnx_import
