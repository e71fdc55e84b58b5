// Attention and RotaryEmbedding of the default domain, FlexAttention of ai.onnx.preview.
#include <cmath>
#include <limits>

#include "frontends/onnx/attend.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

Expected<DType> softmax_precision(NodeImport& n, DType wide) {
  if (!n.attribute("softmax_precision")) return wide;
  QUERNEL_TRY(DType dtype,
              dtype_from_onnx(static_cast<int>(n.attr_int("softmax_precision", 0)), n.build.location()));
  if (!is_float(dtype) || dtype >= DType::kI4)
    return n.invalid("attribute 'softmax_precision': expected a float type, found " +
                     std::string(to_string(dtype)));
  return dtype;
}

// The mask operand, padded to all keys with hidden ones, as what may be seen or what is added.
Status read_mask(NodeImport& n, ValueId mask, const Dim& keys, AttentionOperands& x) {
  int rank = n.rank(mask);
  if (rank < 1 || rank > 4)
    return n.invalid("expected a mask of rank 1 to 4, found " + to_string(n.shape(mask)));
  Dim columns = n.shape(mask)[static_cast<size_t>(rank) - 1];
  if (always_lt(keys, columns) && !(columns == Dim(1)))
    return n.invalid("expected a mask for at most " + to_string(keys) + " keys, found " +
                     to_string(n.shape(mask)));
  bool is_bool = n.dtype(mask) == DType::kBool;
  if (!is_bool) mask = n.build.cast(mask, n.dtype(x.query));
  Shape before(static_cast<size_t>(rank), Dim(0)), after = before;
  after.back() = keys - columns;
  mask = n.build.pad(mask, before, after, PadMode::kConstant,
                     is_bool ? 0 : -std::numeric_limits<double>::infinity());
  (is_bool ? x.allowed : x.bias) = mask;
  return {};
}

// What a graph attribute makes of scores or weights; null without the attribute.
std::function<ValueId(ValueId)> modifier(NodeImport& n, const char* name) {
  const onnx::AttributeProto* attribute = n.attribute(name);
  if (!attribute || !attribute->has_g()) return nullptr;
  return [&n, attribute, name](ValueId x) -> ValueId {
    ValueId iteration = n.build.constant(i64_tensor({}, {0}));
    const TensorType type = n.build.graph().type(x);
    std::vector<ValueId> y = n.inline_body(attribute->g(), {x}, iteration);
    if (y.size() != 1 || is_collection(y[0]) || !(n.build.graph().type(y[0]) == type))
      return n.build.fail(n.invalid(std::string("attribute '") + name + "': expected one result of " +
                                    to_string(type) + " as its input"));
    return y[0];
  };
}

}  // namespace

Status import_flex_attention(NodeImport& n) {
  AttentionOperands x;
  x.query = n.widen(n.in(0));
  DType wide = n.dtype(x.query);
  x.key = n.build.cast(n.in(1), wide);
  x.value = n.build.cast(n.in(2), wide);
  QUERNEL_TRY(DType rounding, softmax_precision(n, wide));
  if (rounding != wide) x.softmax_rounding = rounding;
  if (n.rank(x.query) != 4)
    return n.invalid("expected queries of rank 4, found " + to_string(n.shape(x.query)));
  QUERNEL_TRY(int64_t head_size, n.dim(x.query, 3));
  x.scale = n.attr_float("scale", 1 / std::sqrt(static_cast<double>(head_size)));
  x.score_mod = modifier(n, "score_mod");
  x.weight_mod = modifier(n, "prob_mod");
  QUERNEL_TRY(AttentionValues r, attend(n, x));
  return n.output(n.build.cast(r.output, n.dtype(n.in(0))));
}

Status import_attention(NodeImport& n) {
  bool causal = n.attr_int("is_causal", 0) != 0;
  int64_t q_heads = n.attr_int("q_num_heads", 0), kv_heads = n.attr_int("kv_num_heads", 0);
  int64_t mode = n.attr_int("qk_matmul_output_mode", 0);
  int64_t left = n.opset < 25 ? -1 : n.attr_int("left_window_size", -1),
          right = n.opset < 25 ? -1 : n.attr_int("right_window_size", -1);
  if (mode < 0 || mode > 3)
    return n.invalid("attribute 'qk_matmul_output_mode': expected 0 to 3, found " + std::to_string(mode));
  DType dtype = n.dtype(n.in(0));
  bool flat = n.rank(n.in(0)) == 3;
  AttentionOperands x;
  x.query = n.widen(n.in(0));
  DType wide = n.dtype(x.query);
  x.softcap = n.attr_float("softcap", 0);
  QUERNEL_TRY(DType rounding, softmax_precision(n, wide));
  if (rounding != wide) x.softmax_rounding = rounding;
  ValueId key = n.in(1), value = n.in(2);
  if (flat) {
    QUERNEL_TRY(x.query, split_heads(n, x.query, q_heads));
    QUERNEL_TRY(key, split_heads(n, key, kv_heads));
    QUERNEL_TRY(value, split_heads(n, value, kv_heads));
  }
  if (n.has(4) != n.has(5)) return n.invalid("expected past_key and past_value together");
  Dim past = 0;
  if (n.has(4)) {
    if (n.rank(n.in(4)) != 4)
      return n.invalid("expected past keys [B,H,T,D], found " + to_string(n.shape(n.in(4))));
    past = n.shape(n.in(4))[2];
    key = n.build.cat({n.in(4), key}, 2);
    value = n.build.cat({n.in(5), value}, 2);
  }
  if (n.rank(x.query) != 4 || n.rank(key) != 4)
    return n.invalid("expected operands of rank 3 or 4, found " + to_string(n.shape(n.in(0))));
  x.key = n.build.cast(key, wide);
  x.value = n.build.cast(value, wide);
  QUERNEL_TRY(int64_t head_size, n.dim(x.query, 3));
  x.scale = n.attr_float("scale", 1 / std::sqrt(static_cast<double>(head_size)));
  Dim queries = n.shape(x.query)[2], keys = n.shape(x.key)[2];
  if (n.has(3)) QUERNEL_CHECK(read_mask(n, n.in(3), keys, x));
  if (causal) right = right < 0 ? 0 : std::min<int64_t>(right, 0);
  ValueId lengths = n.in(6);
  if (lengths != kNoValue && n.has(4))
    return n.invalid("expected either nonpad_kv_seqlen or past keys, found both");
  if (left >= 0 || right >= 0) {
    ValueId offset = n.number(DType::kI64, past);
    if (lengths != kNoValue)
      offset = n.binary(
          BinaryOp::k_sub,
          n.build.reshape(n.build.cast(lengths, DType::kI64), {element_count(n.shape(lengths)), 1, 1, 1}),
          n.number(DType::kI64, queries));
    x.allowed = both_allowed(n, x.allowed, window_mask(n, queries, keys, offset, left, right));
  }
  if (lengths != kNoValue) x.allowed = both_allowed(n, x.allowed, length_mask(n, lengths, keys));
  QUERNEL_TRY(AttentionValues r, attend(n, x));
  ValueId shown = kNoValue;
  if (n.wants_output(3)) {
    ValueId steps[] = {r.raw, r.capped, r.biased, r.weights};
    shown = n.build.cast(steps[mode], dtype);
  }
  ValueId y = n.build.cast(flat ? merge_heads(n, r.output) : r.output, dtype);
  return n.set_outputs({y, key, value, shown});
}

// x is [B,H,S,D], or [B,S,H*D]; the caches are rows of cosines and sines that position_ids picks, or are
// ready per token.
Status import_rotary_embedding(NodeImport& n) {
  bool interleaved = n.attr_int("interleaved", 0) != 0;
  int64_t heads = n.attr_int("num_heads", 0), rotated = n.attr_int("rotary_embedding_dim", 0);
  ValueId x = n.widen(n.in(0));
  Shape shape = n.shape(x);
  bool flat = shape.size() == 3;
  if (flat) {
    QUERNEL_TRY(int64_t features, n.dim(shape[2]));
    if (heads < 1 || features % heads != 0)
      return n.invalid("attribute 'num_heads': expected a divisor of " + std::to_string(features) +
                       ", found " + std::to_string(heads));
    x = n.build.reshape(x, {shape[0], shape[1], heads, features / heads});
  } else if (shape.size() == 4) {
    x = n.build.permute(x, {0, 2, 1, 3});
  } else {
    return n.invalid("expected an input of rank 3 or 4, found " + to_string(shape));
  }
  QUERNEL_TRY(int64_t head_size, n.dim(x, 3));
  if (rotated == 0) rotated = head_size;
  if (rotated < 0 || rotated > head_size || rotated % 2 != 0)
    return n.invalid("attribute 'rotary_embedding_dim': expected an even number up to " +
                     std::to_string(head_size) + ", found " + std::to_string(rotated));
  ValueId cosines = n.widen(n.in(1)), sines = n.widen(n.in(2));
  if (n.has(3)) {
    if (n.rank(cosines) > 0) QUERNEL_CHECK(check_indices(n, n.in(3), n.shape(cosines)[0], "position"));
    cosines = n.build.take(cosines, n.in(3), 0);
    sines = n.build.take(sines, n.in(3), 0);
  }
  if (n.rank(cosines) != 3 || n.shape(cosines)[2] != Dim(rotated / 2) || n.shape(sines) != n.shape(cosines))
    return n.invalid("expected caches with rows of " + std::to_string(rotated / 2) + ", found " +
                     to_string(n.shape(n.in(1))) + " and " + to_string(n.shape(n.in(2))));
  ValueId y = rotate(n, x, cosines, sines, rotated, interleaved);
  y = flat ? n.build.reshape(y, shape) : n.build.permute(y, {0, 2, 1, 3});
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
}

}  // namespace quernel::onnx_import
