// RNN, SVDF and their sequences.
#include "frontends/tflite/recurrent.h"

#include <algorithm>

#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"
#include "graph/outline.h"

namespace quernel::tflite_import {
namespace {

constexpr int64_t kMostUnrolled = 64;  // time steps

ValueId time_step(NodeImport& n, ValueId x, const Dim& t) {
  Shape dims = n.shape(x), starts(dims.size(), Dim(0)), stops = dims;
  starts[0] = t;
  stops[0] = t + 1;
  return n.build.reshape(n.build.slice(x, starts, stops), Shape(dims.begin() + 1, dims.end()));
}

// [batch, time, …] to [time, batch, …] and back.
ValueId swap_time(NodeImport& n, ValueId x) { return n.build.permute(x, {1, 0, 2}); }

// A plain cell. `aux`: another input with its weights, left out as kNoValue.
struct PlainCell {
  ValueId weights, recurrent, bias, aux_weights = kNoValue;
  bool hybrid = false;  // weights of integers
};

PlainCell plain_cell(NodeImport& n, int first) {
  return {n.real(first), n.real(first + 1), n.real(first + 2), kNoValue, !n.is_float(first)};
}

// Each row as 8-bit integers stand for it, symmetric around zero: what TensorFlow Lite multiplies with weights of
// integers.
ValueId quantized_rows(NodeImport& n, ValueId x) {
  constexpr double kHighest = 127, kLeast = 0x1p-100;
  ValueId largest = n.build.reduce(OpKind::k_reduce_max, n.unary(UnaryOp::k_abs, x), {n.rank(x) - 1}, true);
  ValueId step = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_max, largest, kLeast),
                          1 / kHighest);  // zeros stay zeros
  return n.binary(BinaryOp::k_mul, n.unary(UnaryOp::k_round, n.binary(BinaryOp::k_div, x, step)), step);
}

Expected<SequenceResult> run_plain(NodeImport& n, ValueId x, const PlainCell& cell, int state, bool reverse,
                                   ActivationFunctionType function) {
  Status failed;
  auto step = [&](ValueId x_t, const std::vector<ValueId>& states) {
    auto multiply = [&](ValueId v, ValueId weights) {
      return multiply_rows(n, cell.hybrid ? quantized_rows(n, v) : v, weights, std::nullopt);
    };
    ValueId sum = n.binary(BinaryOp::k_add, multiply(x_t, cell.weights), multiply(states[0], cell.recurrent));
    Expected<ValueId> y = activate(n, n.binary(BinaryOp::k_add, sum, cell.bias), function);
    if (!y) n.build.fail(y.take_errors().front());
    return std::vector<ValueId>{*y};
  };
  SequenceResult result = run_over_time(n, x, {read_state(n, state)}, reverse, step);
  write_state(n, state, result.states[0]);
  return result;
}

}  // namespace

ValueId read_state(NodeImport& n, int operand) {
  return n.has(operand) ? n.in(operand) : n.build.fail(n.no_kernel());
}

void write_state(NodeImport& n, int operand, ValueId value) {
  n.assign_variable(n.op.inputs()->Get(static_cast<uint32_t>(operand)), value);
}

SequenceResult run_over_time(NodeImport& n, ValueId x, std::vector<ValueId> states, bool reverse,
                             const CellStep& step) {
  Dim length = n.shape(x)[0];
  if (length.is_const() && length.value() <= kMostUnrolled && length.value() > 0) {
    std::vector<ValueId> rows(static_cast<size_t>(length.value()));
    for (int64_t i = 0; i < length.value(); ++i) {
      int64_t t = reverse ? length.value() - 1 - i : i;
      states = step(time_step(n, x, t), states);
      Shape row = n.shape(states[0]);
      row.insert(row.begin(), Dim(1));
      rows[static_cast<size_t>(t)] = n.build.reshape(states[0], row);
    }
    return {rows.size() == 1 ? rows[0] : n.build.cat(rows, 0), states};
  }
  if (reverse) x = n.build.flip(x, {0});
  LoopSpec spec{n.output_names.empty() ? "time" : n.output_names[0], states, length, kNoValue};
  auto iteration = [&](const Dim& t, const std::vector<ValueId>& carried) -> std::optional<LoopStep> {
    std::vector<ValueId> next = step(time_step(n, x, t), carried);
    return LoopStep{next, {next[0]}, kNoValue};
  };
  std::optional<std::vector<ValueId>> results = build_loop(n.build, spec, iteration);
  if (!results) n.build.fail(internal_error("a loop without results", n.build.location()));
  ValueId rows = results->back();
  results->pop_back();
  return {reverse ? n.build.flip(rows, {0}) : rows, *results};
}

// Operands: x, weights, recurrent weights, bias, state.
Status import_rnn(NodeImport& n) {
  ActivationFunctionType function = n.options<tflite::RNNOptions>().fused_activation_function();
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kF32}));
  QUERNEL_CHECK(n.expect_rank(0, 2, 2));
  Shape dims = n.shape(n.in(0)), one = dims;
  one.insert(one.begin(), Dim(1));
  QUERNEL_TRY(SequenceResult y,
              run_plain(n, n.build.reshape(n.in(0), one), plain_cell(n, 1), 4, false, function));
  return n.output(y.states[0]);
}

Status import_unidirectional_sequence_rnn(NodeImport& n) {
  const auto& options = n.options<tflite::SequenceRNNOptions>();
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kF32}));
  QUERNEL_CHECK(n.expect_rank(0, 3, 3));
  ValueId x = options.time_major() ? n.in(0) : swap_time(n, n.in(0));
  QUERNEL_TRY(SequenceResult y,
              run_plain(n, x, plain_cell(n, 1), 4, false, options.fused_activation_function()));
  return n.output(options.time_major() ? y.results : swap_time(n, y.results));
}

// Operands: x, weights, recurrent weights, bias and state forwards, the same backwards; then another input and its
// weights, which are not supported.
Status import_bidirectional_sequence_rnn(NodeImport& n) {
  const auto& options = n.options<tflite::BidirectionalSequenceRNNOptions>();
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kF32}));
  QUERNEL_CHECK(n.expect_rank(0, 3, 3));
  for (int i = 9; i < 12; ++i)
    if (n.has(i)) return n.refuse("an auxiliary input is not supported", "convert the model without it");
  ValueId x = options.time_major() ? n.in(0) : swap_time(n, n.in(0));
  std::vector<ValueId> rows;
  for (int first : {1, 5}) {
    QUERNEL_TRY(SequenceResult y, run_plain(n, x, plain_cell(n, first), first + 3, first == 5,
                                            options.fused_activation_function()));
    rows.push_back(options.time_major() ? y.results : swap_time(n, y.results));
  }
  if (!options.merge_outputs()) return n.set_outputs(rows);
  return n.output(n.build.cat(rows, 2));
}

namespace {

// The history of the last steps, one more and without the oldest.
ValueId append_step(NodeImport& n, ValueId state, ValueId feature) {
  Shape dims = n.shape(state);  // [batch, filters, memory]
  ValueId recent = n.build.slice(state, {0, 0, 1}, dims);
  return n.build.cat({recent, n.build.reshape(feature, {dims[0], dims[1], 1})}, 2);
}

// As in TensorFlow Lite's kernel, results are saturated, and a fused RELU clamps nothing.
Status quantized_svdf(NodeImport& n, ValueId history, int64_t rank, ActivationFunctionType function) {
  if (function != ActivationFunctionType::NONE && function != ActivationFunctionType::RELU)
    return n.bad_option("fused_activation_function", "NONE or RELU",
                        tflite::EnumNameActivationFunctionType(function));
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8}));
  QUERNEL_CHECK(n.expect_dtypes(1, {DType::kI8}));
  QUERNEL_CHECK(n.expect_dtypes(2, {DType::kI16, DType::kI8}));
  QUERNEL_CHECK(n.expect_dtypes(4, {DType::kI16, DType::kI8}));
  for (int i : {0, 1, 2, 4}) QUERNEL_CHECK(n.expect_per_tensor(i));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  auto scale = [&](int i) { return static_cast<double>(n.in_quantization(i).scale()); };
  DType state = n.dtype(n.in(4));
  double highest = state == DType::kI16 ? 32767 : 127;
  ValueId x = n.build.cast(centred(n, n.in(0), n.in_quantization(0).zero()), DType::kI16);
  ValueId feature = multiply_rows(n, x, n.build.cast(n.in(1), DType::kI16), DType::kI32);
  // TensorFlow Lite Micro multiplies the scales as floats.
  auto multiplier = [&](double m, float rounded) {
    bool is_double = n.file.rounding == IntegerRounding::kDouble;
    return make_multiplier(is_double ? static_cast<double>(rounded) : m, n.file.rounding);
  };
  auto narrow = [&](int i) { return n.in_quantization(i).scale(); };
  feature = scale_integers(n, feature,
                           {multiplier(scale(0) * scale(1) / scale(4), narrow(0) * narrow(1) / narrow(4))});
  feature = n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, feature, -highest - 1), highest);
  history = append_step(n, history, n.build.cast(feature, state));
  Shape dims = n.shape(history);
  write_state(n, 4, n.build.reshape(history, {dims[0], dims[1] * dims[2]}));
  ValueId weighted =
      n.binary(BinaryOp::k_mul, n.build.cast(history, DType::kI32), n.build.cast(n.in(2), DType::kI32));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, weighted, {2}, false);
  sum = n.build.reduce(OpKind::k_reduce_sum, n.build.reshape(sum, {dims[0], floordiv(dims[1], rank), rank}),
                       {2}, false);
  if (n.has(3)) sum = n.binary(BinaryOp::k_add, sum, n.build.cast(n.in(3), DType::kI32));
  double m = scale(4) * scale(2) / static_cast<double>(n.out_quantization(0).scale());
  float rounded = narrow(4) * narrow(2) / n.out_quantization(0).scale();
  return n.output(requantize(n, sum, {multiplier(m, rounded)}, ActivationFunctionType::NONE));
}

}  // namespace

// Operands: x, weights of features, weights of time [filters, memory], bias, state [batch, filters * memory].
Status import_svdf(NodeImport& n) {
  const auto& options = n.options<tflite::SVDFOptions>();
  QUERNEL_CHECK(n.expect_rank(0, 2, 2));
  QUERNEL_CHECK(n.expect_rank(2, 2, 2));
  Shape time = n.shape(n.in(2));
  int64_t rank = options.rank();
  Dim batch = n.shape(n.in(0))[0];
  if (rank < 1 || !time[0].is_const() || time[0].value() % rank != 0)
    return n.bad_option("rank", "a divisor of the number of filters", std::to_string(rank));
  ValueId history = n.build.reshape(read_state(n, 4), {batch, time[0], time[1]});
  if (!n.is_float(0)) return quantized_svdf(n, history, rank, options.fused_activation_function());
  ValueId feature = multiply_rows(n, n.real(0), n.real(1), std::nullopt);
  history = append_step(n, history, feature);
  write_state(n, 4, n.build.reshape(history, {batch, time[0] * time[1]}));
  // With weights of integers, TensorFlow Lite's kernel (lite/kernels/svdf.cc) takes the weights of time for integers,
  // too, and multiplies them by their scale. Floats have none: 0.
  bool without_scale = !n.is_float(1) && n.is_float(2);
  if (without_scale)
    n.note(
        "its weights of time are floats beside weights of integers: as in TensorFlow Lite, they count as "
        "zeros");
  ValueId time_weights = without_scale ? n.full(DType::kF32, time, 0) : n.real(2);
  ValueId sum =
      n.build.reduce(OpKind::k_reduce_sum, n.binary(BinaryOp::k_mul, history, time_weights), {2}, false);
  sum = n.build.reshape(sum, {batch, time[0].value() / rank, rank});
  ValueId y = n.build.reduce(OpKind::k_reduce_sum, sum, {2}, false);
  if (n.has(3)) y = n.binary(BinaryOp::k_add, y, n.real(3));
  QUERNEL_TRY(y, activate(n, y, options.fused_activation_function()));
  return n.output(y);
}

}  // namespace quernel::tflite_import
