// com.microsoft's operators that ONNX Runtime's optimiser makes of several: products with an activation, and
// normalisations of sums.
#include <algorithm>

#include "frontends/onnx/activation.h"
#include "frontends/onnx/conv.h"
#include "frontends/onnx/matmul.h"
#include "frontends/onnx/normalization.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/quantize.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

// The activation that the node names, with its parameters in the operator's own order.
Expected<ValueId> activate(NodeImport& n, ValueId y, const std::vector<double>& parameters) {
  std::string name = n.attr_string("activation", "");
  auto parameter = [&](size_t i, double fallback) {
    return i < parameters.size() ? parameters[i] : fallback;
  };
  auto clip = [&](ValueId x, double lo, double hi) {
    return n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, x, lo), hi);
  };
  if (name.empty()) return y;
  if (name == "Relu") return n.binary(BinaryOp::k_max, y, 0.0);
  if (name == "Sigmoid") return sigmoid(n, y);
  if (name == "Tanh") return n.unary(UnaryOp::k_tanh, y);
  if (name == "LeakyRelu") return leaky_relu(n, y, parameter(0, 0.01f));
  if (name == "Clip" && parameters.size() == 2) return clip(y, parameters[0], parameters[1]);
  if (name == "HardSigmoid" || name == "HardSwish") {
    bool swishes = name == "HardSwish";
    ValueId line = n.binary(BinaryOp::k_mul, y, swishes ? 1.0 / 6 : parameter(0, 0.2f));
    ValueId gate = clip(n.binary(BinaryOp::k_add, line, swishes ? 0.5 : parameter(1, 0.5)), 0, 1);
    return swishes ? n.binary(BinaryOp::k_mul, y, gate) : gate;
  }
  return n.refuse("attribute 'activation': '" + name + "' is not supported");
}

// scale and shift of the normalised sum of the operands, and the sum itself.
Status skip_normalization(NodeImport& n, bool centres, int bias) {
  double epsilon = n.attr_float("epsilon", 1e-12f);
  ValueId x = n.in(0);
  int rank = n.rank(x);
  if (rank < 1 || n.rank(n.in(1)) > rank)
    return n.invalid("expected an input and a skip of [B,S,H], found " + to_string(n.shape(x)) + " and " +
                     to_string(n.shape(n.in(1))));
  ValueId sum = n.binary(BinaryOp::k_add, n.widen(x), n.widen(n.in(1)));
  if (n.has(bias)) sum = n.binary(BinaryOp::k_add, sum, n.widen(n.in(bias)));
  std::vector<int64_t> axes{rank - 1};
  Standardized s = centres ? standardize(n, sum, axes, epsilon) : divide_by_rms(n, sum, axes, epsilon);
  ValueId y = n.binary(BinaryOp::k_mul, s.value, n.widen(n.in(2)));
  if (centres && n.has(3)) y = n.binary(BinaryOp::k_add, y, n.widen(n.in(3)));
  DType dtype = n.dtype(x);
  return n.set_outputs(
      {n.build.cast(y, dtype), centres ? s.mean : kNoValue, s.inverse_deviation, n.build.cast(sum, dtype)});
}

}  // namespace

// activation(conv(x, w) + b + z)
Status import_fused_conv(NodeImport& n) {
  n.compute_wide();
  QUERNEL_TRY(ValueId y, convolve(n, n.in(0), n.in(1)));
  if (n.has(2)) {
    QUERNEL_TRY(y, add_bias(n, y, n.in(2)));
  }
  if (n.has(3)) y = n.binary(BinaryOp::k_add, y, n.in(3));
  QUERNEL_TRY(y, activate(n, y, n.attr_floats("activation_params").value_or(std::vector<double>())));
  return n.output(y);
}

Status import_fused_gemm(NodeImport& n) {
  n.compute_wide();
  std::vector<double> parameters;
  if (n.attribute("activation_alpha")) parameters.push_back(n.attr_float("activation_alpha", 0));
  if (n.attribute("activation_beta")) parameters.push_back(n.attr_float("activation_beta", 0));
  n.ignore_attribute("activation_gamma");  // no activation here has a third parameter
  QUERNEL_TRY(ValueId y, gemm(n));
  QUERNEL_TRY(y, activate(n, y, parameters));
  return n.output(y);
}

// alpha * op(A) op(B); op may swap the last two dims, and may take the first dim for the rows.
Status import_fused_matmul(NodeImport& n) {
  double alpha = n.attr_float("alpha", 1);
  if (alpha != 1) n.compute_wide();
  auto operand = [&](int i, const char* swaps, const char* takes_first) {
    bool swap = n.attr_int(swaps, 0) != 0, first = n.attr_int(takes_first, 0) != 0;
    ValueId x = i == 1 && alpha != 1 ? stored_weights(n, n.in(i)) : n.in(i);
    int rank = n.rank(x);
    if (rank < 2) return x;
    std::vector<int64_t> order;
    for (int64_t d = 0; d < rank; ++d) order.push_back(d);
    if (first) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (swap) std::swap(order[order.size() - 1], order[order.size() - 2]);
    return n.build.permute(x, order);
  };
  ValueId a = operand(0, "transA", "transBatchA"), b = operand(1, "transB", "transBatchB");
  QUERNEL_TRY(ValueId y, matmul(n, a, b));
  return n.output(alpha == 1 ? y : n.binary(BinaryOp::k_mul, y, alpha));
}

Status import_skip_layer_normalization(NodeImport& n) { return skip_normalization(n, true, 4); }
Status import_skip_simplified_layer_normalization(NodeImport& n) { return skip_normalization(n, false, 3); }

namespace {

// The tables of EmbedLayerNormalization and of its quantised form; kNoValue: none.
struct EmbedTables {
  ValueId word = kNoValue, position = kNoValue, segment = kNoValue, gamma = kNoValue, beta = kNoValue;
  // Widens rows of a table that were taken.
  std::function<ValueId(ValueId rows, int table)> widen;
  int mask = 7, positions = 8;  // operands
  DType dtype = DType::kF32;    // of the results
};

// Word, position and segment embeddings, summed and normalised.
Status embed_and_normalize(NodeImport& n, const EmbedTables& t) {
  double epsilon = n.attr_float("epsilon", 1e-12f);
  n.ignore_attribute("mask_index_type");  // the mask index is the number of tokens, as by default
  if (n.attr_int("mask_index_type", 1) > 1)
    return n.refuse("attribute 'mask_index_type': only 0 and 1 are supported");
  if (n.rank(n.in(0)) != 2) return n.invalid("expected tokens [B,S], found " + to_string(n.shape(n.in(0))));
  Shape tokens = n.shape(n.in(0));
  const ValueId positions = t.positions < 0 ? kNoValue : n.in(t.positions);
  for (auto [table, index] :
       {std::pair(t.word, n.in(0)), std::pair(t.position, positions), std::pair(t.segment, n.in(1))})
    if (table != kNoValue && index != kNoValue && n.rank(table) > 0)
      QUERNEL_CHECK(check_indices(n, index, n.shape(table)[0]));
  ValueId sum = t.widen(n.build.take(t.word, n.in(0), 0), 2);
  ValueId position;
  if (positions != kNoValue) {
    position = n.build.take(t.position, positions, 0);
  } else {
    if (n.rank(t.position) != 2) return n.invalid("expected position embeddings [P,H]");
    position = n.build.slice(t.position, {0, 0}, {tokens[1], n.shape(t.position)[1]});
  }
  sum = n.binary(BinaryOp::k_add, sum, t.widen(position, 3));
  if (n.has(1) && t.segment != kNoValue)
    sum = n.binary(BinaryOp::k_add, sum, t.widen(n.build.take(t.segment, n.in(1), 0), 4));
  Standardized s = standardize(n, sum, {2}, epsilon);
  ValueId y =
      n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, s.value, t.widen(t.gamma, 5)), t.widen(t.beta, 6));
  ValueId mask_index = n.full(DType::kI32, {tokens[0]}, 0);
  if (n.has(t.mask))
    mask_index = n.build.reduce(OpKind::k_reduce_sum, n.build.cast(n.in(t.mask), DType::kI32), {1}, false);
  std::vector<ValueId> results{n.build.cast(y, t.dtype), mask_index};
  if (n.wants_output(2)) results.push_back(n.build.cast(sum, t.dtype));
  return n.set_outputs(std::move(results));
}

Expected<EmbedTables> embed_tables(NodeImport& n) {
  for (int i : {2, 3, 5, 6})
    if (!n.has(i)) return n.invalid("expected input " + std::to_string(i) + ", found it missing");
  EmbedTables t;
  t.word = n.in(2), t.position = n.in(3), t.segment = n.in(4), t.gamma = n.in(5), t.beta = n.in(6);
  return t;
}

}  // namespace

Status import_embed_layer_normalization(NodeImport& n) {
  QUERNEL_TRY(EmbedTables t, embed_tables(n));
  t.widen = [&](ValueId rows, int) { return n.widen(rows); };
  t.dtype = n.dtype(n.in(2));
  return embed_and_normalize(n, t);
}

// Each of the five tables has a scale and, further on, a zero point; rows are widened when they are taken.
Status import_qembed_layer_normalization(NodeImport& n) {
  constexpr int kTables = 2, kScales = 8, kZeros = 13;  // operands: the first of each
  QUERNEL_TRY(EmbedTables t, embed_tables(n));
  for (int i : {0, 1, 3, 4})
    if (!n.has(kScales + i))
      return n.invalid("expected input " + std::to_string(kScales + i) + ", a scale, found it missing");
  if (n.has(kTables + 2) && !n.has(kScales + 2))
    return n.invalid("expected a scale of the segment embedding, found it missing");
  for (int i = 0; i < 5; ++i)
    for (int operand : {kScales + i, kZeros + i})
      if (n.has(operand) && element_count(n.shape(n.in(operand))) != Dim(1))
        return n.invalid("expected one scale and zero point for each table, found " +
                         to_string(n.shape(n.in(operand))));
  t.widen = [&](ValueId rows, int table) {
    auto one = [&](int operand) { return n.has(operand) ? n.build.reshape(n.in(operand), {}) : kNoValue; };
    const int i = table - kTables;
    return dequantize(n, rows, {one(kScales + i), one(kZeros + i)});
  };
  t.positions = -1;
  t.dtype = n.dtype(n.in(kScales));
  return embed_and_normalize(n, t);
}

}  // namespace quernel::onnx_import
