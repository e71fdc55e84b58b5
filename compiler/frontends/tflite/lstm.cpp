// LSTM and its sequences, of real values. Gates: input, forget, cell, output.
#include <array>

#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantized_lstm.h"
#include "frontends/tflite/recurrent.h"

namespace quernel::tflite_import {
namespace {

// Weights by gate; kNoValue where left out. Without the input gate's, it is one minus the forget gate.
struct LstmCell {
  std::array<ValueId, 4> input{}, recurrent{}, bias{}, norm{kNoValue, kNoValue, kNoValue, kNoValue};
  std::array<ValueId, 4> peephole{kNoValue, kNoValue, kNoValue, kNoValue};  // cell has none
  ValueId projection = kNoValue, projection_bias = kNoValue;
  double cell_clip = 0, projection_clip = 0;
  ActivationFunctionType function = ActivationFunctionType::TANH;
};

enum Gate { kInput, kForget, kCell, kOutput };

// Operands from `first` on: 4 input weights, 4 recurrent ones, 3 peepholes, 4 biases, projection and its bias.
Expected<LstmCell> read_cell(NodeImport& n, int first) {
  // Only the input gate may be left out, and only as a whole.
  for (int i : {1, 2, 3, 5, 6, 7, 12, 13, 14})
    if (!n.has(first + i))
      return n.invalid("expected operand " + std::to_string(first + i) + ", found it left out");
  for (int i : {4, 11})
    if (n.has(first + i) != n.has(first))
      return n.invalid("expected all operands of the input gate, or none, found operand " +
                       std::to_string(n.has(first) ? first + i : first) + " left out");
  LstmCell cell;
  for (size_t g = 0; g < 4; ++g) {
    int i = first + static_cast<int>(g);
    cell.input[g] = real_or_none(n, i);
    cell.recurrent[g] = real_or_none(n, i + 4);
    cell.bias[g] = real_or_none(n, i + 11);
  }
  cell.peephole[kInput] = real_or_none(n, first + 8);
  cell.peephole[kForget] = real_or_none(n, first + 9);
  cell.peephole[kOutput] = real_or_none(n, first + 10);
  cell.projection = real_or_none(n, first + 15);
  cell.projection_bias = real_or_none(n, first + 16);
  return cell;
}

ValueId clip(NodeImport& n, ValueId x, double limit) { return limit > 0 ? clamp(n, x, {-limit, limit}) : x; }

// (x - mean) / deviation over the last dim, times weights.
ValueId normalize(NodeImport& n, ValueId x, ValueId weights) {
  constexpr double kLeastVariance = 1e-8;
  ValueId centred = n.binary(BinaryOp::k_sub, x, n.mean(x, {1}, true));
  ValueId variance = n.mean(n.binary(BinaryOp::k_mul, centred, centred), {1}, true);
  ValueId scale = n.unary(UnaryOp::k_rsqrt, n.binary(BinaryOp::k_add, variance, kLeastVariance));
  return n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, centred, scale), weights);
}

// `state`: the cell state that a peephole sees.
ValueId gate_sum(NodeImport& n, const LstmCell& cell, Gate g, ValueId x, ValueId h, ValueId state) {
  ValueId sum = n.binary(BinaryOp::k_add, multiply_rows(n, x, cell.input[g], std::nullopt),
                         multiply_rows(n, h, cell.recurrent[g], std::nullopt));
  if (cell.peephole[g] != kNoValue)
    sum = n.binary(BinaryOp::k_add, sum, n.binary(BinaryOp::k_mul, state, cell.peephole[g]));
  if (cell.norm[g] != kNoValue) sum = normalize(n, sum, cell.norm[g]);
  return cell.bias[g] == kNoValue ? sum : n.binary(BinaryOp::k_add, sum, cell.bias[g]);
}

ValueId activated(NodeImport& n, ValueId x, ActivationFunctionType function) {
  Expected<ValueId> y = activate(n, x, function);
  return y ? *y : n.build.fail(y.take_errors().front());
}

// States: the output's and the cell's.
std::vector<ValueId> lstm_step(NodeImport& n, const LstmCell& cell, ValueId x,
                               const std::vector<ValueId>& states) {
  ValueId h = states[0], c = states[1];
  ValueId forget = logistic(n, gate_sum(n, cell, kForget, x, h, c));
  ValueId input = cell.input[kInput] == kNoValue
                      ? n.binary(BinaryOp::k_sub, n.full(DType::kF32, {}, 1), forget)
                      : logistic(n, gate_sum(n, cell, kInput, x, h, c));
  ValueId fresh = activated(n, gate_sum(n, cell, kCell, x, h, c), cell.function);
  c = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, forget, c),
               n.binary(BinaryOp::k_mul, input, fresh));
  c = clip(n, c, cell.cell_clip);
  ValueId output = logistic(n, gate_sum(n, cell, kOutput, x, h, c));
  h = n.binary(BinaryOp::k_mul, output, activated(n, c, cell.function));
  if (cell.projection != kNoValue) {
    h = multiply_rows(n, h, cell.projection, std::nullopt);
    if (cell.projection_bias != kNoValue) h = n.binary(BinaryOp::k_add, h, cell.projection_bias);
    h = clip(n, h, cell.projection_clip);
  }
  return {h, c};
}

SequenceResult run_lstm(NodeImport& n, ValueId x, const LstmCell& cell, int output_state, int cell_state,
                        bool reverse) {
  auto step = [&](ValueId x_t, const std::vector<ValueId>& states) {
    return lstm_step(n, cell, x_t, states);
  };
  SequenceResult y =
      run_over_time(n, x, {read_state(n, output_state), read_state(n, cell_state)}, reverse, step);
  write_state(n, output_state, y.states[0]);
  write_state(n, cell_state, y.states[1]);
  return y;
}

// Operands of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM: x, the cell's, both states, 4 weights of layer normalization.
Expected<LstmCell> full_cell(NodeImport& n) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kF32}));
  QUERNEL_TRY(LstmCell cell, read_cell(n, 1));
  for (size_t g = 0; g < 4; ++g) cell.norm[g] = real_or_none(n, 20 + static_cast<int>(g));
  return cell;
}

// Operands: x, the last output, weights of all gates in a matrix over both, biases, the cell state; the gates'
// order is input, cell, forget, output.
Status basic_lstm(NodeImport& n) {
  if (n.input_count() != 5 || n.output_count() != 4) return n.no_kernel();
  for (int i = 0; i < 5; ++i)
    if (!n.has(i)) return n.invalid("expected operand " + std::to_string(i) + ", found it left out");
  if (n.dtype(n.in(0)) == DType::kU8) return quantized_basic_lstm(n);
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kF32}));
  ValueId both = n.build.cat({n.in(0), n.in(1)}, 1);
  ValueId sums = n.binary(BinaryOp::k_add, multiply_rows(n, both, n.real(2), std::nullopt), n.real(3));
  Shape dims = n.shape(sums);
  Dim depth = floordiv(dims[1], 4);
  auto part = [&](int64_t i) { return n.build.slice(sums, {0, depth * i}, {dims[0], depth * (i + 1)}); };
  ValueId fresh = n.binary(BinaryOp::k_mul, logistic(n, part(0)), n.unary(UnaryOp::k_tanh, part(1)));
  ValueId c = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, logistic(n, part(2)), n.in(4)), fresh);
  ValueId h = n.binary(BinaryOp::k_mul, logistic(n, part(3)), n.unary(UnaryOp::k_tanh, c));
  return n.set_outputs({h, c, both, sums});
}

}  // namespace

Status import_lstm(NodeImport& n) {
  const auto& options = n.options<tflite::LSTMOptions>();
  QUERNEL_CHECK(n.expect_rank(0, 2, 2));
  if (options.kernel_type() == tflite::LSTMKernelType::BASIC) return basic_lstm(n);
  QUERNEL_TRY(LstmCell cell, full_cell(n));
  cell.cell_clip = static_cast<double>(options.cell_clip());
  cell.projection_clip = static_cast<double>(options.proj_clip());
  cell.function = options.fused_activation_function();
  Shape one = n.shape(n.in(0));
  one.insert(one.begin(), Dim(1));
  return n.output(run_lstm(n, n.build.reshape(n.in(0), one), cell, 18, 19, false).states[0]);
}

Status import_unidirectional_sequence_lstm(NodeImport& n) {
  const auto& options = n.options<tflite::UnidirectionalSequenceLSTMOptions>();
  QUERNEL_CHECK(n.expect_rank(0, 3, 3));
  if (options.diagonal_recurrent_tensors())
    return n.bad_option("diagonal_recurrent_tensors", "false", "true");
  if (n.dtype(n.in(0)) == DType::kI8)
    return quantized_sequence_lstm(n, static_cast<double>(options.cell_clip()),
                                   static_cast<double>(options.proj_clip()), options.time_major());
  QUERNEL_TRY(LstmCell cell, full_cell(n));
  cell.cell_clip = static_cast<double>(options.cell_clip());
  cell.projection_clip = static_cast<double>(options.proj_clip());
  cell.function = options.fused_activation_function();
  ValueId x = options.time_major() ? n.in(0) : n.build.permute(n.in(0), {1, 0, 2});
  ValueId y = run_lstm(n, x, cell, 18, 19, false).results;
  return n.output(options.time_major() ? y : n.build.permute(y, {1, 0, 2}));
}

// Operands: x, the cell's forwards and backwards, states of output and cell for both; then another input and its
// weights, which are not supported.
Status import_bidirectional_sequence_lstm(NodeImport& n) {
  const auto& options = n.options<tflite::BidirectionalSequenceLSTMOptions>();
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kF32}));
  QUERNEL_CHECK(n.expect_rank(0, 3, 3));
  for (int i = 39; i < 48; ++i)
    if (n.has(i)) return n.refuse("an auxiliary input is not supported", "convert the model without it");
  ValueId x = options.time_major() ? n.in(0) : n.build.permute(n.in(0), {1, 0, 2});
  std::vector<ValueId> results;
  for (bool reverse : {false, true}) {
    QUERNEL_TRY(LstmCell cell, read_cell(n, reverse ? 18 : 1));
    cell.cell_clip = static_cast<double>(options.cell_clip());
    cell.projection_clip = static_cast<double>(options.proj_clip());
    cell.function = options.fused_activation_function();
    ValueId y = run_lstm(n, x, cell, reverse ? 37 : 35, reverse ? 38 : 36, reverse).results;
    results.push_back(options.time_major() ? y : n.build.permute(y, {1, 0, 2}));
  }
  if (!options.merge_outputs()) return n.set_outputs(results);
  return n.output(n.build.cat(results, 2));
}

}  // namespace quernel::tflite_import
