// com.microsoft's GroupQueryAttention: causal attention whose keys and values serve several heads each, with
// rotation inside and a cache that may be longer than what it holds.
#include "frontends/onnx/contrib_attention.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/scatter.h"

namespace quernel::onnx_import {
namespace {

// Where the new tokens stand among the keys.
struct Place {
  Dim keys = 0;                // length of the present
  ValueId lengths = kNoValue;  // i64 [B]: keys of each row, the new ones included
  ValueId past = kNoValue;     // i64 [B]: those before
  bool after_whole_past = false;
};

// Queries, keys and values apart, [B,S,heads*D].
Status split_packed(NodeImport& n, ValueId (&parts)[3], int64_t heads, int64_t groups) {
  if (parts[1] != kNoValue) return {};
  QUERNEL_TRY(int64_t width, n.dim(parts[0], 2));
  if (width % (heads + 2 * groups) != 0) return n.invalid("expected packed queries, keys and values");
  int64_t size = width / (heads + 2 * groups);
  parts[1] = features(n, parts[0], heads * size, (heads + groups) * size);
  parts[2] = features(n, parts[0], (heads + groups) * size, width);
  parts[0] = features(n, parts[0], 0, heads * size);
  return {};
}

// A prompt's tokens are all there are, and stand at 0. Others end where the row's keys end: in a batch of one
// that has grown by them, behind the whole past, else within a cache that past and present share.
Expected<Place> find_place(NodeImport& n, const Dim& batch, const Dim& steps) {
  if (!n.has(5)) return n.invalid("expected input 5, seqlens_k, found it missing");
  if (n.has(3) != n.has(4)) return n.invalid("expected past_key and past_value together");
  if (n.has(3) && (n.rank(n.in(3)) != 4 || n.rank(n.in(4)) != 4))
    return n.invalid("expected past keys and values [B,G,P,D], found " + to_string(n.shape(n.in(3))));
  auto integer = [&](ValueId v, const Shape& shape) {
    return n.build.reshape(n.build.cast(v, DType::kI64), shape);
  };
  Place place;
  place.lengths = n.binary(BinaryOp::k_add, integer(n.in(5), {batch}), 1.0);  // seqlens_k counts from 0
  Dim capacity = n.has(3) ? n.shape(n.in(3))[2] : Dim(0);
  Expected<Shape> total = n.dims_in(6, "total_sequence_length");
  if (!total && !n.has(3)) total = Shape{steps};  // without a past there are the new tokens only
  if (total && total->size() != 1) return n.invalid("expected a total_sequence_length of one element");
  if (!total && !capacity.is_const()) return total.take_errors();
  // Without its number the present can only have the past's length.
  place.keys = total ? max(capacity, (*total)[0]) : capacity;
  if (!n.has(3) && total && !is_static(*total))
    QUERNEL_CHECK(n.require_equal((*total)[0], steps, "the total_sequence_length without a past"));
  ValueId start = n.full(DType::kI64, {batch}, 0);
  bool is_prompt = total && (*total)[0] == steps;
  if (!n.has(3) && !is_prompt)
    return n.invalid(
        "expected a total_sequence_length of the new tokens' number where there is no past, found " +
        (total ? to_string((*total)[0]) : std::string("a computed one")));
  place.after_whole_past = total && (*total)[0] == capacity + steps && batch == Dim(1) && !is_prompt;
  if (place.after_whole_past) {
    place.past = n.build.reshape(n.number(DType::kI64, capacity), {1});
  } else if (is_prompt) {
    place.past = start;
  } else {
    if (!total && !n.has(6)) return n.invalid("expected input 6, found it missing");
    ValueId all = total ? n.number(DType::kI64, (*total)[0]) : integer(n.in(6), {});
    ValueId prompt = n.binary(BinaryOp::k_eq, all, n.number(DType::kI64, steps));
    ValueId before = n.binary(BinaryOp::k_sub, place.lengths, n.number(DType::kI64, steps));
    place.past = n.build.where(prompt, start, before);
  }
  return place;
}

// That the cache `past` [B,G,P,D] has the heads of x [B,G,S,D].
Status require_heads_of(NodeImport& n, ValueId past, ValueId x, const std::string& name) {
  if (past == kNoValue) return {};
  for (int axis : {0, 1, 3})
    QUERNEL_CHECK(n.require_equal(n.shape(past)[axis], n.shape(x)[axis],
                                  "dim " + std::to_string(axis) + " of " + name));
  return {};
}

// Keys or values [B,G,S,D] in their place behind those of the past.
ValueId with_past(NodeImport& n, ValueId past, ValueId x, const Place& place) {
  if (past == kNoValue) return x;
  if (place.after_whole_past) return n.build.cat({past, x}, 2);
  Shape shape = n.shape(past), before(4, Dim(0)), after = before;
  if (shape.size() != 4) return kNoValue;
  after[2] = place.keys - shape[2];
  if (!(after[2] == Dim(0))) past = n.build.pad(past, before, after);
  return write_rows(n, past, x, place.past, 2, false);
}

// Queries and keys [B,H,S,D] rotated by their positions; queries become wide, keys are rounded, as the
// present has them.
Status rotate_operands(NodeImport& n, AttentionOperands& a, const Place& place, const Dim& steps,
                       bool interleaved) {
  if (!n.has(7) || !n.has(8) || n.rank(n.in(7)) != 2)
    return n.invalid("expected caches [P,D/2] of cosines and sines");
  QUERNEL_TRY(int64_t half, n.dim(n.in(7), 1));
  Shape column{n.shape(place.past)[0], 1};
  ValueId positions = n.has(9) ? n.in(9)
                               : n.binary(BinaryOp::k_add, n.build.reshape(place.past, column),
                                          n.build.reshape(n.positions(DType::kI64, steps), {1, steps}));
  ValueId cosines = n.widen(n.build.take(n.in(7), positions, 0)),
          sines = n.widen(n.build.take(n.in(8), positions, 0));
  DType cached = n.dtype(a.key);
  for (ValueId* x : {&a.query, &a.key}) {
    ValueId by_token = n.widen(n.build.permute(*x, {0, 2, 1, 3}));
    *x = n.build.permute(rotate(n, by_token, cosines, sines, 2 * half, interleaved), {0, 2, 1, 3});
  }
  a.key = n.build.cast(a.key, cached);
  return n.build.status();
}

}  // namespace

Status import_group_query_attention(NodeImport& n) {
  int64_t heads = n.attr_int("num_heads", 0), groups = n.attr_int("kv_num_heads", 0);
  bool rotates = n.attr_int("do_rotary", 0) != 0, interleaved = n.attr_int("rotary_interleaved", 0) != 0;
  int64_t window = n.attr_int("local_window_size", -1);
  AttentionOperands a;
  a.softcap = n.attr_float("softcap", 0);
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (n.attr_string(name, "NONE") != "NONE") return n.refuse("quantised keys and values are not supported");
  n.ignore_attribute("kv_cache_bit_width");
  if (n.attr_int("qk_output", 0) != 0) return n.refuse("attribute 'qk_output': only 0 is supported");
  if (n.rank(n.in(0)) != 3 || groups < 1 || heads < 1 || heads % groups != 0)
    return n.invalid("expected queries [B,S,H*D] and heads in whole groups, found " +
                     to_string(n.shape(n.in(0))));
  ValueId parts[] = {n.in(0), n.in(1), n.in(2)};
  QUERNEL_CHECK(split_packed(n, parts, heads, groups));
  QUERNEL_TRY(a.query, split_heads(n, parts[0], heads));
  QUERNEL_TRY(a.key, split_heads(n, parts[1], groups));
  QUERNEL_TRY(a.value, split_heads(n, parts[2], groups));
  Dim batch = n.shape(a.query)[0], steps = n.shape(a.query)[2];
  QUERNEL_TRY(Place place, find_place(n, batch, steps));
  QUERNEL_CHECK(require_heads_of(n, n.in(3), a.key, "past_key"));
  QUERNEL_CHECK(require_heads_of(n, n.in(4), a.value, "past_value"));
  if (rotates) QUERNEL_CHECK(rotate_operands(n, a, place, steps, interleaved));
  a.key = with_past(n, n.in(3), a.key, place);
  a.value = with_past(n, n.in(4), a.value, place);
  ValueId present_key = a.key, present_value = a.value;
  QUERNEL_CHECK(widen_operands(n, a));
  ValueId offset = n.build.reshape(place.past, {n.shape(place.past)[0], 1, 1, 1});
  a.allowed = both_allowed(n, window_mask(n, steps, place.keys, offset, window < 0 ? -1 : window - 1, 0),
                           length_mask(n, place.lengths, place.keys));
  if (n.has(10)) a.bias = n.widen(n.in(10));
  if (n.has(11)) a.sink = n.widen(n.in(11));
  if (n.attr_int("smooth_softmax", 0) == 1 && !n.has(11)) a.sink = n.full(n.dtype(a.query), {Dim(heads)}, 0);
  QUERNEL_TRY(AttentionValues r, attend(n, a));
  return n.set_outputs(
      {n.build.cast(merge_heads(n, r.output), n.dtype(n.in(0))), present_key, present_value});
}

}  // namespace quernel::onnx_import
