// RNN, GRU and LSTM. The inputs' part of all gates, of every time step and direction, is one contraction up
// front; `step` adds the state's part for one step. Few steps are unrolled, others are a loop.
#include <algorithm>
#include <cctype>
#include <tuple>

#include "frontends/onnx/activation.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/quantize.h"
#include "frontends/shared/contraction.h"
#include "graph/outline.h"

namespace quernel::onnx_import {
namespace {

constexpr int64_t kUnrolledSteps = 64;  // of all directions; more of them are a loop

enum class CellKind { kRnn, kGru, kLstm };

struct Activation {
  std::string name;  // in lower case
  double alpha = 0, beta = 0;
};

// What a step computes with, of one direction; everything is wide.
struct Cell {
  CellKind kind = CellKind::kRnn;
  int64_t hidden = 0;
  ValueId recurrence = kNoValue;      // [gates * hidden, hidden]; [hidden, gates * hidden] if quantised
  Quantization quantization;          // of `recurrence`, if it is quantised; with a scale
  ValueId candidate_bias = kNoValue;  // GRU with linear_before_reset: [hidden], added before the reset gate
  ValueId peepholes = kNoValue;       // LSTM: [3 * hidden] of input, output and forget gate
  std::vector<Activation> activations;
  std::optional<double> clip;
  bool clips_cell = true;  // LSTM: what clip does to gates, it does to the cell's value, too
  bool linear_before_reset = false, input_forget = false;
};

struct State {
  ValueId h = kNoValue, c = kNoValue;  // [batch, hidden]; c of LSTM only
};

// ---- activations

struct ActivationForm {
  std::string_view name;
  int parameters = 0;  // alpha, alpha and beta
  std::optional<double> alpha, beta;
};
const ActivationForm kActivations[] = {
    {"relu", 0, {}, {}},       {"tanh", 0, {}, {}},
    {"sigmoid", 0, {}, {}},    {"softsign", 0, {}, {}},
    {"softplus", 0, {}, {}},   {"leakyrelu", 1, 0.01f, {}},
    {"elu", 1, 1.0, {}},       {"thresholdedrelu", 1, 1.0, {}},
    {"affine", 2, 1.0, 0.0},   {"hardsigmoid", 2, 0.2f, 0.5},
    {"scaledtanh", 2, {}, {}},
};

// The activations of all directions. alpha and beta have one value per activation that takes them, in order.
Expected<std::vector<Activation>> read_activations(NodeImport& n, std::vector<std::string> names) {
  size_t count = names.size();
  if (const onnx::AttributeProto* a = n.attribute("activations")) {
    names.assign(a->strings().begin(), a->strings().end());
    if (names.size() != count)
      return n.invalid("attribute 'activations': expected " + std::to_string(count) + " names, found " +
                       std::to_string(names.size()));
  }
  std::vector<double> alphas = n.attr_floats("activation_alpha").value_or(std::vector<double>()),
                      betas = n.attr_floats("activation_beta").value_or(std::vector<double>());
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> result;
  for (const std::string& name : names) {
    Activation activation{name, 0, 0};
    for (char& c : activation.name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto* form = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const ActivationForm& f) { return f.name == activation.name; });
    if (form == std::end(kActivations))
      return n.invalid(
          "attribute 'activations': expected Relu, Tanh, Sigmoid, Softsign, Softplus, LeakyRelu, "
          "Elu, ThresholdedRelu, Affine, HardSigmoid or ScaledTanh, found '" +
          name + "'");
    std::optional<double> alpha = form->alpha, beta = form->beta;
    if (form->parameters > 0 && next_alpha < alphas.size()) alpha = alphas[next_alpha++];
    if (form->parameters > 1 && next_beta < betas.size()) beta = betas[next_beta++];
    if ((form->parameters > 0 && !alpha) || (form->parameters > 1 && !beta))
      return n.invalid("activation " + name + " needs attributes 'activation_alpha' and 'activation_beta'");
    activation.alpha = alpha.value_or(0);
    activation.beta = beta.value_or(0);
    result.push_back(std::move(activation));
  }
  if (next_alpha < alphas.size() || next_beta < betas.size())
    return n.invalid("expected " + std::to_string(next_alpha) + " values of 'activation_alpha' and " +
                     std::to_string(next_beta) + " of 'activation_beta', found " +
                     std::to_string(alphas.size()) + " and " + std::to_string(betas.size()));
  return result;
}

ValueId activate(NodeImport& n, const Cell& cell, size_t which, ValueId x) {
  const Activation& a = cell.activations[which];
  if (cell.clip && (which < 2 || cell.clips_cell))
    x = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, x, -*cell.clip), *cell.clip);
  if (a.name == "tanh") return n.unary(UnaryOp::k_tanh, x);
  if (a.name == "sigmoid") return sigmoid(n, x);
  if (a.name == "relu") return n.binary(BinaryOp::k_max, x, 0.0);
  if (a.name == "softsign") return softsign(n, x);
  if (a.name == "softplus") return softplus(n, x);
  if (a.name == "leakyrelu") return leaky_relu(n, x, a.alpha);
  if (a.name == "elu") return elu(n, x, a.alpha);
  if (a.name == "thresholdedrelu") return thresholded_relu(n, x, a.alpha);
  if (a.name == "hardsigmoid") return hard_sigmoid(n, x, a.alpha, a.beta);
  if (a.name == "affine") return n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, x, a.alpha), a.beta);
  return n.binary(BinaryOp::k_mul, n.unary(UnaryOp::k_tanh, n.binary(BinaryOp::k_mul, x, a.beta)), a.alpha);
}

// ---- one step

ValueId add(NodeImport& n, ValueId a, ValueId b) { return n.binary(BinaryOp::k_add, a, b); }
ValueId mul(NodeImport& n, ValueId a, ValueId b) { return n.binary(BinaryOp::k_mul, a, b); }
ValueId one_minus(NodeImport& n, ValueId x) { return n.binary(BinaryOp::k_sub, n.scalar(n.dtype(x), 1), x); }

// Elements `from` to `to` of the last dim.
ValueId part(NodeImport& n, ValueId x, const Dim& from, const Dim& to) {
  Shape starts(n.shape(x).size(), Dim(0)), stops = n.shape(x);
  starts.back() = from;
  stops.back() = to;
  return n.build.slice(x, starts, stops);
}
// Gates `first` to `last`, of `hidden` elements each.
ValueId gates_of(NodeImport& n, const Cell& cell, ValueId x, int64_t first, int64_t last) {
  return part(n, x, first * cell.hidden, last * cell.hidden);
}

// x [..., K], quantised to u8 as DynamicQuantizeLinear does, times weights [K,N].
ValueId quantized_product(NodeImport& n, ValueId x, ValueId weights, const Quantization& of_weights) {
  Quantization q = dynamic_quantization(n, x);
  Expected<ValueId> y = integer_matmul(n, quantize(n, x, q, DType::kU8), q.zero, weights, of_weights.zero);
  if (!y) return n.build.fail(y.take_errors().front());
  return n.binary(BinaryOp::k_mul, n.build.cast(*y, DType::kF32),
                  n.binary(BinaryOp::k_mul, q.scale, of_weights.scale));
}

// h [batch, hidden] times the transposed rows of gates `first` to `last` of the recurrence; all gates of a
// quantised one.
ValueId recur(NodeImport& n, const Cell& cell, ValueId h, int64_t first, int64_t last) {
  ValueId rows = cell.recurrence;
  if (cell.quantization.scale != kNoValue) return quantized_product(n, h, rows, cell.quantization);
  Shape shape = n.shape(rows);
  if (Dim((last - first) * cell.hidden) != shape[0])
    rows = n.build.slice(rows, {first * cell.hidden, 0}, {last * cell.hidden, shape[1]});
  ContractionBuilder c;
  IndexExpr b = c.axis("b", n.shape(h)[0]), g = c.axis("n", (last - first) * cell.hidden),
            k = c.reduction("k", cell.hidden);
  return c.emit(n, h, {b, k}, rows, {g, k}, {b, g});
}

// f(x + h R^T)
State step_rnn(NodeImport& n, const Cell& cell, ValueId x, const State& s) {
  return {activate(n, cell, 0, add(n, x, recur(n, cell, s.h, 0, 1))), kNoValue};
}

// Gates: update, reset, candidate.
State step_gru(NodeImport& n, const Cell& cell, ValueId x, const State& s) {
  ValueId state = recur(n, cell, s.h, 0, cell.linear_before_reset ? 3 : 2);
  ValueId both = activate(
      n, cell, 0,
      add(n, gates_of(n, cell, x, 0, 2), cell.linear_before_reset ? gates_of(n, cell, state, 0, 2) : state));
  ValueId update = gates_of(n, cell, both, 0, 1), reset = gates_of(n, cell, both, 1, 2), kept;
  if (cell.linear_before_reset) {
    kept = gates_of(n, cell, state, 2, 3);
    if (cell.candidate_bias != kNoValue) kept = add(n, kept, cell.candidate_bias);
    kept = mul(n, reset, kept);
  } else {
    kept = recur(n, cell, mul(n, reset, s.h), 2, 3);
  }
  ValueId candidate = activate(n, cell, 1, add(n, gates_of(n, cell, x, 2, 3), kept));
  return {add(n, mul(n, one_minus(n, update), candidate), mul(n, update, s.h)), kNoValue};
}

// Gates: input, output, forget, cell. Peepholes look at the old cell, the output gate's at the new one.
State step_lstm(NodeImport& n, const Cell& cell, ValueId x, const State& s) {
  ValueId all = add(n, x, recur(n, cell, s.h, 0, 4));
  ValueId input, output = kNoValue, forget;
  if (cell.peepholes == kNoValue) {
    ValueId three = activate(n, cell, 0, gates_of(n, cell, all, 0, 3));
    input = gates_of(n, cell, three, 0, 1);
    output = gates_of(n, cell, three, 1, 2);
    forget = gates_of(n, cell, three, 2, 3);
  } else {
    input =
        activate(n, cell, 0,
                 add(n, gates_of(n, cell, all, 0, 1), mul(n, gates_of(n, cell, cell.peepholes, 0, 1), s.c)));
    forget =
        activate(n, cell, 0,
                 add(n, gates_of(n, cell, all, 2, 3), mul(n, gates_of(n, cell, cell.peepholes, 2, 3), s.c)));
  }
  if (cell.input_forget) forget = one_minus(n, input);
  ValueId candidate = activate(n, cell, 1, gates_of(n, cell, all, 3, 4));
  ValueId c = add(n, mul(n, forget, s.c), mul(n, input, candidate));
  if (cell.peepholes != kNoValue)
    output = activate(
        n, cell, 0, add(n, gates_of(n, cell, all, 1, 2), mul(n, gates_of(n, cell, cell.peepholes, 1, 2), c)));
  return {mul(n, output, activate(n, cell, 2, c)), c};
}

// The state after one step; x [batch, gates * hidden] is the input's part of the gates, with all biases.
State step(NodeImport& n, const Cell& cell, ValueId x, const State& s) {
  switch (cell.kind) {
    case CellKind::kRnn:
      return step_rnn(n, cell, x, s);
    case CellKind::kGru:
      return step_gru(n, cell, x, s);
    case CellKind::kLstm:
      return step_lstm(n, cell, x, s);
  }
  return {};
}

// ---- over time

struct Layer {
  CellKind kind = CellKind::kRnn;
  int64_t gates = 1, directions = 1, hidden = 0;
  Dim length = 0;
  bool first_reversed = false;
  bool batch_first = false;
  bool quantized = false;  // weights are [direction, input, gates * hidden] of bytes
  Dim batch = 1;
  ValueId lengths = kNoValue;    // [batch, 1] of i32, where sequences may be shorter
  ValueId projected = kNoValue;  // [direction, time, batch, gates * hidden]
};

// Entry d of the first dim, without it.
ValueId entry(NodeImport& n, ValueId x, const Dim& d) {
  Shape shape = n.shape(x), starts(shape.size(), Dim(0)), stops = shape;
  starts[0] = d;
  stops[0] = d + 1;
  shape.erase(shape.begin());
  return n.build.reshape(n.build.slice(x, starts, stops), shape);
}

// The outputs of one direction: [batch, hidden] of each step, or [time, batch, hidden] of all.
struct Outputs {
  std::vector<ValueId> steps;
  ValueId all = kNoValue;
};

// The output and the state after step t of a direction.
std::pair<ValueId, State> step_at(NodeImport& n, const Layer& layer, const Cell& cell, ValueId projected,
                                  const Dim& t, const State& s) {
  State next = step(n, cell, entry(n, projected, t), s);
  if (layer.lengths == kNoValue) return {next.h, next};
  ValueId inside = n.binary(BinaryOp::k_gt, layer.lengths, n.number(n.dtype(layer.lengths), t));
  ValueId output = n.build.where(inside, next.h, n.scalar(n.dtype(next.h), 0));
  next.h = n.build.where(inside, next.h, s.h);
  if (next.c != kNoValue) next.c = n.build.where(inside, next.c, s.c);
  return {output, next};
}

// The last state, 0 in rows without a step.
State clear_empty_rows(NodeImport& n, const Layer& layer, State s) {
  ValueId any = n.binary(BinaryOp::k_gt, layer.lengths, 0.0), zero = n.scalar(n.dtype(s.h), 0);
  s.h = n.build.where(any, s.h, zero);
  if (s.c != kNoValue) s.c = n.build.where(any, s.c, zero);
  return s;
}

// All steps of direction d, in its order: the last state.
State run_direction(NodeImport& n, const Layer& layer, int64_t d, const Cell& cell, State s,
                    Outputs& outputs) {
  bool reversed = d == 1 || layer.first_reversed;
  ValueId projected = entry(n, layer.projected, d);
  if (layer.length.is_const() && layer.length.value() * layer.directions <= kUnrolledSteps) {
    for (int64_t i = 0; i < layer.length.value(); ++i) {
      ValueId output;
      std::tie(output, s) = step_at(n, layer, cell, projected, reversed ? layer.length - 1 - i : Dim(i), s);
      outputs.steps.push_back(output);
    }
    if (reversed) std::reverse(outputs.steps.begin(), outputs.steps.end());
    return s;
  }
  LoopSpec loop{"step", {s.h}, layer.length, kNoValue};
  if (s.c != kNoValue) loop.initial.push_back(s.c);
  std::optional<std::vector<ValueId>> results =
      build_loop(n.build, loop, [&](const Dim& i, const std::vector<ValueId>& carried) {
        State now{carried[0], carried.size() > 1 ? carried[1] : kNoValue};
        auto [output, next] = step_at(n, layer, cell, projected, reversed ? layer.length - 1 - i : i, now);
        LoopStep made{{next.h}, {output}, kNoValue};
        if (next.c != kNoValue) made.carried.push_back(next.c);
        return std::optional(made);
      });
  if (!results) return {};
  outputs.all = reversed ? n.build.flip(results->back(), {0}) : results->back();
  return {(*results)[0], s.c == kNoValue ? kNoValue : (*results)[1]};
}

// ---- the operator

// Whether operand i has these dims.
Status expect_shape(NodeImport& n, int i, const char* what, const Shape& expected) {
  if (!n.has(i) || n.shape(n.in(i)) == expected) return {};
  Shape found = n.shape(n.in(i));
  if (found.size() == expected.size()) {
    for (size_t k = 0; k < found.size(); ++k) n.build.note_unequal(found[k], expected[k], true);
    for (size_t k = 0; k < found.size(); ++k) {
      if (found[k] == expected[k]) continue;
      QUERNEL_CHECK(n.dim(found[k]));
      QUERNEL_CHECK(n.dim(expected[k]));
    }
  }
  return n.invalid("expected " + std::string(what) + " of shape " + to_string(expected) + ", found " +
                   to_string(found));
}

// Checks all operands' shapes and reads the attributes that all kinds have.
Expected<Layer> read_layer(NodeImport& n, CellKind kind, bool quantized) {
  Layer layer;
  layer.quantized = quantized;
  layer.kind = kind;
  layer.gates = kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 3 : 4;
  std::string direction = n.attr_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.invalid("attribute 'direction': expected forward, reverse or bidirectional, found '" +
                     direction + "'");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.first_reversed = direction == "reverse";
  layer.batch_first = n.opset >= 14 && n.attr_int("layout", 0) != 0;
  if (n.opset < 7) n.ignore_attribute("output_sequence");  // the outputs' names tell
  Shape x = n.shape(n.in(0)), r = n.shape(n.in(2));
  if (x.size() != 3 || r.size() != 3)
    return n.invalid("expected X and R of rank 3, found " + to_string(x) + " and " + to_string(r));
  if (!is_float(n.dtype(n.in(0)))) return n.invalid("expected floats, found another dtype");
  QUERNEL_TRY(layer.hidden, n.dim(r[quantized ? 1 : 2]));
  if (int64_t hidden = n.attr_int("hidden_size", layer.hidden); hidden != layer.hidden || hidden < 1)
    return n.invalid("attribute 'hidden_size': expected " + std::to_string(layer.hidden) +
                     " as R has it, found " + std::to_string(hidden));
  layer.batch = x[layer.batch_first ? 0 : 1];
  Dim d = layer.directions, h = layer.hidden, rows = layer.gates * layer.hidden;
  QUERNEL_CHECK(expect_shape(n, 1, "W", quantized ? Shape{d, x[2], rows} : Shape{d, rows, x[2]}));
  QUERNEL_CHECK(expect_shape(n, 2, "R", quantized ? Shape{d, h, rows} : Shape{d, rows, h}));
  QUERNEL_CHECK(expect_shape(n, 3, "B", {d, rows * Dim(2)}));
  QUERNEL_CHECK(expect_shape(n, 4, "sequence_lens", {layer.batch}));
  Shape state = layer.batch_first ? Shape{layer.batch, d, h} : Shape{d, layer.batch, h};
  QUERNEL_CHECK(expect_shape(n, 5, "initial_h", state));
  QUERNEL_CHECK(expect_shape(n, 6, "initial_c", state));
  QUERNEL_CHECK(expect_shape(n, 7, "P", {d, h * Dim(3)}));
  layer.length = x[layer.batch_first ? 1 : 0];
  // Lengths that are known to be full need no masks.
  if (n.has(4)) {
    const Tensor* known = n.constant(n.in(4));
    bool full = known != nullptr;
    for (int64_t i = 0; full && i < known->count(); ++i)
      full = always_le(layer.length, element_as_i64(*known, i));
    if (!full) layer.lengths = n.build.reshape(n.in(4), {layer.batch, 1});
  }
  return layer;
}

// Scale and zero point of one direction's weights: one each, or one for each column.
Expected<Quantization> weight_quantization(NodeImport& n, const Layer& layer, int scale, int64_t d) {
  const Dim columns = layer.gates * layer.hidden;
  auto of_direction = [&](int i) -> Expected<ValueId> {
    Shape shape = n.shape(n.in(i));
    if (shape != Shape{layer.directions} && shape != Shape{layer.directions, columns})
      return n.invalid("expected input " + std::to_string(i) + " of shape " +
                       to_string(Shape{layer.directions}) + " or " +
                       to_string(Shape{layer.directions, columns}) + ", found " + to_string(shape));
    return entry(n, n.in(i), d);
  };
  for (int i : {scale, scale + 1})
    if (!n.has(i)) return n.invalid("expected input " + std::to_string(i) + ", found it missing");
  Quantization q;
  QUERNEL_TRY(q.scale, of_direction(scale));
  QUERNEL_TRY(q.zero, of_direction(scale + 1));
  return q;
}

// X W of all steps and directions, of bytes: X has one scale.
Expected<ValueId> project_quantized(NodeImport& n, const Layer& layer) {
  ValueId x = n.widen(n.in(0));
  if (layer.batch_first) x = n.build.permute(x, {1, 0, 2});
  Shape shape{layer.directions, layer.length, layer.batch, layer.gates * layer.hidden};
  for (const Dim& dim : shape)
    if (dim == Dim(0)) return n.full(DType::kF32, shape, 0);
  std::vector<ValueId> parts;
  for (int64_t d = 0; d < layer.directions; ++d) {
    QUERNEL_TRY(Quantization q, weight_quantization(n, layer, 8, d));
    ValueId y = quantized_product(n, x, entry(n, n.in(1), d), q);
    parts.push_back(n.build.reshape(y, {1, shape[1], shape[2], shape[3]}));
  }
  return parts.size() == 1 ? parts[0] : n.build.cat(parts, 0);
}

// X W^T of all steps and directions.
Expected<ValueId> project(NodeImport& n, const Layer& layer) {
  if (layer.quantized) return project_quantized(n, layer);
  ContractionBuilder c;
  Shape w = n.shape(n.in(1));
  IndexExpr d = c.axis("d", layer.directions), t = c.axis("t", layer.length), b = c.axis("b", layer.batch),
            g = c.axis("n", w[1]), k = c.reduction("k", w[2]);
  std::vector<IndexExpr> index_x{t, b, k};
  if (layer.batch_first) std::swap(index_x[0], index_x[1]);
  Shape shape{layer.directions, layer.length, layer.batch, w[1]};
  for (const Dim& dim : shape)
    if (dim == Dim(0)) return n.full(n.dtype(n.widen(n.in(0))), shape, 0);
  return c.emit(n, n.widen(n.in(0)), index_x, n.widen(n.in(1)), {d, g, k}, {d, t, b, g});
}

// Initial states as [direction, batch, hidden].
ValueId initial_state(NodeImport& n, const Layer& layer, int i, DType dtype) {
  if (!n.has(i)) return n.full(dtype, {layer.directions, layer.batch, layer.hidden}, 0);
  ValueId state = n.widen(n.in(i));
  return layer.batch_first ? n.build.permute(state, {1, 0, 2}) : state;
}

// States of all directions as the operator gives them.
ValueId join_states(NodeImport& n, const Layer& layer, const std::vector<ValueId>& states, DType dtype) {
  std::vector<ValueId> parts;
  for (ValueId s : states)
    parts.push_back(n.build.reshape(
        s, layer.batch_first ? Shape{layer.batch, 1, layer.hidden} : Shape{1, layer.batch, layer.hidden}));
  return n.build.cast(parts.size() == 1 ? parts[0] : n.build.cat(parts, layer.batch_first ? 1 : 0), dtype);
}

// All outputs as [time, direction, batch, hidden], or [batch, time, direction, hidden].
ValueId join_outputs(NodeImport& n, const Layer& layer, const std::vector<Outputs>& outputs, DType dtype) {
  Shape one =
      layer.batch_first ? Shape{layer.batch, 1, 1, layer.hidden} : Shape{1, 1, layer.batch, layer.hidden};
  if (layer.length == Dim(0)) {
    one[layer.batch_first ? 1 : 0] = 0;
    one[layer.batch_first ? 2 : 1] = layer.directions;
    return n.full(dtype, one, 0);
  }
  std::vector<ValueId> directions;
  for (const Outputs& of_direction : outputs) {
    if (of_direction.all != kNoValue) {
      Shape shape = one;
      shape[layer.batch_first ? 1 : 0] = layer.length;
      ValueId all = of_direction.all;
      if (layer.batch_first) all = n.build.permute(all, {1, 0, 2});
      directions.push_back(n.build.reshape(all, shape));
      continue;
    }
    std::vector<ValueId> parts;
    for (ValueId h : of_direction.steps) parts.push_back(n.build.reshape(h, one));
    directions.push_back(parts.size() == 1 ? parts[0] : n.build.cat(parts, layer.batch_first ? 1 : 0));
  }
  ValueId y = directions.size() == 1 ? directions[0] : n.build.cat(directions, layer.batch_first ? 2 : 1);
  return n.build.cast(y, dtype);
}

Status import_recurrent(NodeImport& n, CellKind kind, bool quantized = false) {
  for (int i : {1, 2})
    if (quantized && n.dtype(n.in(i)) != DType::kU8 && n.dtype(n.in(i)) != DType::kI8)
      return n.invalid("expected weights of int8 or uint8, found " +
                       std::string(to_string(n.dtype(n.in(i)))));
  QUERNEL_TRY(Layer layer, read_layer(n, kind, quantized));
  std::vector<std::string> names{"Tanh"};
  if (kind == CellKind::kGru) names = {"Sigmoid", "Tanh"};
  if (kind == CellKind::kLstm) names = {"Sigmoid", "Tanh", "Tanh"};
  size_t per_direction = names.size();
  for (size_t i = 0; layer.directions == 2 && i < per_direction; ++i)
    names.push_back(std::string(names[i]));  // a copy: the vector grows
  QUERNEL_TRY(std::vector<Activation> activations, read_activations(n, names));
  Cell common;
  common.kind = kind;
  common.hidden = layer.hidden;
  if (n.attribute("clip")) common.clip = n.attr_float("clip", 0);
  if (common.clip && !(*common.clip >= 0))
    return n.invalid("attribute 'clip': expected a threshold of at least 0");
  common.clips_cell = !n.choices.lstm_clip;
  if (kind == CellKind::kGru) common.linear_before_reset = n.attr_int("linear_before_reset", 0) != 0;
  if (kind == CellKind::kLstm) common.input_forget = n.attr_int("input_forget", 0) != 0;

  QUERNEL_TRY(layer.projected, project(n, layer));
  ValueId recurrence = quantized ? n.in(2) : n.widen(n.in(2)), candidate_bias = kNoValue;
  if (n.has(3)) {
    // Wb and Rb add up, but for the one that the reset gate multiplies.
    int64_t rows = layer.gates * layer.hidden;
    ValueId bias = n.widen(n.in(3)), of_w = part(n, bias, 0, rows), of_r = part(n, bias, rows, 2 * rows);
    if (common.linear_before_reset) {
      int64_t split = 2 * layer.hidden;
      candidate_bias = part(n, of_r, split, rows);
      of_r = n.build.pad(part(n, of_r, 0, split), {0, 0}, {0, layer.hidden});
    }
    ValueId both = n.build.reshape(add(n, of_w, of_r), {layer.directions, 1, 1, rows});
    layer.projected = add(n, layer.projected, both);
  }
  DType dtype = n.dtype(n.in(0)), wide = n.dtype(layer.projected);
  ValueId initial_h = initial_state(n, layer, 5, wide), initial_c = kNoValue;
  if (kind == CellKind::kLstm) initial_c = initial_state(n, layer, 6, wide);
  std::vector<ValueId> last_h, last_c;
  std::vector<Outputs> outputs(static_cast<size_t>(layer.directions));
  for (int64_t d = 0; d < layer.directions; ++d) {
    Cell cell = common;
    cell.recurrence = entry(n, recurrence, d);
    if (quantized) {
      QUERNEL_TRY(cell.quantization, weight_quantization(n, layer, 10, d));
    }
    if (candidate_bias != kNoValue) cell.candidate_bias = entry(n, candidate_bias, d);
    if (n.has(7)) cell.peepholes = entry(n, n.widen(n.in(7)), d);
    auto first = activations.begin() + d * static_cast<int64_t>(per_direction);
    cell.activations.assign(first, first + static_cast<int64_t>(per_direction));
    State s{entry(n, initial_h, d), initial_c == kNoValue ? kNoValue : entry(n, initial_c, d)};
    s = run_direction(n, layer, d, cell, s, outputs[static_cast<size_t>(d)]);
    if (n.choices.empty_sequence && layer.lengths != kNoValue) s = clear_empty_rows(n, layer, s);
    last_h.push_back(s.h);
    last_c.push_back(s.c);
  }
  std::vector<ValueId> results(3, kNoValue);
  if (n.wants_output(0)) results[0] = join_outputs(n, layer, outputs, dtype);
  if (n.wants_output(1)) results[1] = join_states(n, layer, last_h, dtype);
  if (kind == CellKind::kLstm && n.wants_output(2)) results[2] = join_states(n, layer, last_c, dtype);
  return n.set_outputs(std::move(results));
}

}  // namespace

Status import_rnn(NodeImport& n) { return import_recurrent(n, CellKind::kRnn); }
Status import_gru(NodeImport& n) { return import_recurrent(n, CellKind::kGru); }
Status import_lstm(NodeImport& n) { return import_recurrent(n, CellKind::kLstm); }
// X and the state are quantised here, as DynamicQuantizeLinear does: X at once, the state in every step.
Status import_dynamic_quantize_lstm(NodeImport& n) { return import_recurrent(n, CellKind::kLstm, true); }

}  // namespace quernel::onnx_import
