// Attention-like operators with a recurrent state: LinearAttention and CausalConvWithState. The state is an
// operand and a result.
#include <cmath>

#include "frontends/onnx/activation.h"
#include "frontends/onnx/attend.h"
#include "frontends/onnx/operators.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {
namespace {

struct Sizes {
  int64_t batch, groups, sharing, keys, values;  // heads = groups * sharing
};

// state[b,g,k,v] += key[b,g,k] * value[b,g,v]
ValueId outer_product(NodeImport& n, const Sizes& z, ValueId key, ValueId value) {
  return n.binary(BinaryOp::k_mul, n.reshape(key, {z.batch, z.groups, z.keys, 1}),
                  n.reshape(value, {z.batch, z.groups, 1, z.values}));
}

// [b,heads,v] = sum over k of query[b,heads,k] * state[b,head's group,k,v]
ValueId read_state(NodeImport& n, const Sizes& z, ValueId query, ValueId state, int64_t sharing) {
  ContractionBuilder c;
  IndexExpr b = c.axis("b", z.batch), g = c.axis("g", z.groups), h = c.axis("h", sharing),
            v = c.axis("v", z.values), k = c.reduction("k", z.keys);
  return c.emit(n, query, {b, g * sharing + h, k}, state, {b, g, k, v}, {b, g * sharing + h, v});
}

}  // namespace

// One step per token, unrolled.
Status import_linear_attention(NodeImport& n) {
  constexpr int64_t kMaxSteps = 512;
  n.ignore_attribute("chunk_size");  // how others schedule it
  std::string rule = n.attr_string("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!gated && !corrects && rule != "linear")
    return n.invalid("attribute 'update_rule': expected linear, gated, delta or gated_delta, found '" + rule +
                     "'");
  if (gated != n.has(4) || corrects != n.has(5))
    return n.invalid("expected decay for the gated rules only, and beta for the delta rules only");
  int64_t heads = n.attr_int("q_num_heads", 0), groups = n.attr_int("kv_num_heads", 0);
  if (groups < 1 || heads < 1 || heads % groups != 0)
    return n.invalid("attribute 'q_num_heads': expected a multiple of kv_num_heads, found " +
                     std::to_string(heads) + " and " + std::to_string(groups));
  QUERNEL_TRY(ValueId query, split_heads(n, n.widen(n.in(0)), heads));
  QUERNEL_TRY(ValueId key, split_heads(n, n.widen(n.in(1)), groups));
  QUERNEL_TRY(ValueId value, split_heads(n, n.widen(n.in(2)), groups));
  QUERNEL_TRY(std::vector<int64_t> q, n.dims(query));
  QUERNEL_TRY(std::vector<int64_t> v, n.dims(value));
  Sizes z{q[0], groups, heads / groups, q[3], v[3]};
  int64_t steps = q[2];
  if (steps > kMaxSteps)
    return n.refuse("expected at most 512 tokens in one run, found " + std::to_string(steps),
                    "give fewer tokens, and the present state as the next run's past state");
  if (n.shape(key) != make_shape({z.batch, groups, steps, z.keys}) || v[0] != z.batch || v[2] != steps)
    return n.invalid("expected keys and values that fit the queries, found " + to_string(n.shape(n.in(1))) +
                     " and " + to_string(n.shape(n.in(2))));
  DType dtype = n.dtype(query);
  auto unpack = [&](int i) -> Expected<ValueId> {  // [B,T,H] or [B,T,H*k] as [B,H or 1,T,1 or k]
    if (n.rank(n.in(i)) != 3)
      return n.invalid("expected gates [B,T,H], found " + to_string(n.shape(n.in(i))));
    QUERNEL_TRY(int64_t width, n.dim(n.in(i), 2));
    return split_heads(n, n.widen(n.in(i)), width == 1 ? 1 : groups);
  };
  ValueId decay = kNoValue, rate = kNoValue;
  if (gated) {
    QUERNEL_TRY(decay, unpack(4));
    decay = n.unary(UnaryOp::k_exp, decay);
  }
  if (corrects) {
    QUERNEL_TRY(rate, unpack(5));
  }
  double scale = n.attr_float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(z.keys));
  DType state_dtype = n.has(3) ? n.dtype(n.in(3)) : n.dtype(n.in(0));
  ValueId state =
      n.has(3) ? n.widen(n.in(3)) : n.full(dtype, make_shape({z.batch, groups, z.keys, z.values}), 0);
  auto at = [&](ValueId x, int64_t t) {  // [B,H,T,D] -> [B,H,D]
    Shape s = n.shape(x);
    if (s.size() != 4) return n.build.slice(x, {}, {});
    ValueId cut = n.build.slice(x, {0, 0, t, 0}, {s[0], s[1], t + 1, s[3]});
    return n.build.reshape(cut, {s[0], s[1], s[3]});
  };
  std::vector<ValueId> outputs;
  for (int64_t t = 0; t < steps; ++t) {
    ValueId k_t = at(key, t), v_t = at(value, t);
    if (gated) {
      ValueId g_t = at(decay, t);
      Shape s = n.shape(g_t);
      s.push_back(Dim(1));
      state = n.binary(BinaryOp::k_mul, state, n.build.reshape(g_t, s));
    }
    if (corrects)
      v_t = n.binary(BinaryOp::k_mul, at(rate, t),
                     n.binary(BinaryOp::k_sub, v_t, read_state(n, z, k_t, state, 1)));
    state = n.binary(BinaryOp::k_add, state, outer_product(n, z, k_t, v_t));
    ValueId o_t = read_state(n, z, n.binary(BinaryOp::k_mul, at(query, t), scale), state, z.sharing);
    outputs.push_back(n.reshape(o_t, {z.batch, 1, heads * z.values}));
  }
  if (outputs.empty()) outputs.push_back(n.full(dtype, make_shape({z.batch, 0, heads * z.values}), 0));
  return n.set_outputs(
      {n.build.cast(n.build.cat(outputs, 1), n.dtype(n.in(0))), n.build.cast(state, state_dtype)});
}

// A depthwise convolution over the past k-1 elements and the new ones, which are the next run's past.
Status import_causal_conv_with_state(NodeImport& n) {
  std::string activation = n.attr_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.invalid("attribute 'activation': expected none, silu or swish, found '" + activation + "'");
  Shape x = n.shape(n.in(0));
  QUERNEL_TRY(std::vector<int64_t> w, n.dims(n.in(1)));
  if (x.size() != 3 || w.size() != 3 || !(x[1] == Dim(w[0])) || w[1] != 1 || w[2] < 1)
    return n.invalid("expected an input [B,C,L] and weights [C,1,K], found " + to_string(n.shape(n.in(0))) +
                     " and " + to_string(n.shape(n.in(1))));
  int64_t past = w[2] - 1;
  ValueId history;
  if (n.has(3))
    history = n.build.cat({n.in(3), n.in(0)}, 2);
  else
    history = n.build.pad(n.in(0), {0, 0, past}, {0, 0, 0});
  ContractionBuilder c;
  IndexExpr b = c.axis("n", x[0]), channel = c.axis("c", x[1]), t = c.axis("x", x[2]),
            k = c.reduction("kx", w[2]);
  ValueId y =
      c.emit(n, n.widen(history), {b, channel, t + k}, n.widen(n.in(1)), {channel, 0, k}, {b, channel, t});
  if (n.has(2)) y = n.binary(BinaryOp::k_add, y, n.build.reshape(n.widen(n.in(2)), {x[1], 1}));
  if (activation != "none") y = swish(n, y);
  ValueId present = n.build.slice(history, {0, 0, x[2]}, {x[0], x[1], x[2] + past});
  return n.set_outputs({n.build.cast(y, n.dtype(n.in(0))), present});
}

}  // namespace quernel::onnx_import
