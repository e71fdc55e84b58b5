// Gates are sums with 12 bits behind the point; their functions, and products with them, have 15.
#include "frontends/tflite/quantized_lstm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "frontends/tflite/fixed_point.h"
#include "frontends/tflite/quantize.h"
#include "frontends/tflite/recurrent.h"

namespace quernel::tflite_import {
namespace {

constexpr int kSumBits = 12, kGateBits = 15;
constexpr int kSumIntegerBits = kGateBits - kSumBits;
constexpr double kLowest = -32768, kHighest = 32767;

ValueId saturated(ImportedNode& n, ValueId x, double lowest, double highest) {
  return n.binary(BinaryOp::k_min, n.binary(BinaryOp::k_max, x, lowest), highest);
}
ValueId saturated_16(ImportedNode& n, ValueId x) { return saturated(n, x, kLowest, kHighest); }

// a * b / 2^bits, rounded half away from zero. Operands of 16 bits, as i64.
ValueId shifted_product(ImportedNode& n, ValueId a, ValueId b, int bits) {
  return fixed_point_shift(n, n.binary(BinaryOp::k_mul, a, b), bits);
}

struct Cell {
  ValueId output, state;  // of 8 bits and of 16
};

class SequenceLstm {
 public:
  SequenceLstm(NodeImport& n, double cell_clip, double projection_clip)
      : n_(n), cell_clip_(cell_clip), projection_clip_(projection_clip) {}

  Status import(bool time_major) {
    QUERNEL_CHECK(check_operands());
    ValueId x = time_major ? n_.in(0) : n_.build.permute(n_.in(0), {1, 0, 2});
    auto step = [&](ValueId x_t, const std::vector<ValueId>& states) {
      Cell cell = next(x_t, {states[0], states[1]});
      return std::vector<ValueId>{cell.output, cell.state};
    };
    SequenceResult y =
        run_over_time(n_, x, {read_state(n_, kOutputState), read_state(n_, kCellState)}, false, step);
    write_state(n_, kOutputState, y.states[0]);
    write_state(n_, kCellState, y.states[1]);
    return n_.output(time_major ? y.results : n_.build.permute(y.results, {1, 0, 2}));
  }

 private:
  // Operands: x, 4 input weights, 4 recurrent ones, 3 peepholes, 4 biases, projection and its bias, both states.
  enum : int {
    kInputWeights = 1,
    kRecurrentWeights = 5,
    kPeepholes = 9,
    kBiases = 12,
    kProjection = 16,
    kProjectionBias = 17,
    kOutputState = 18,
    kCellState = 19,
    kNorms = 20
  };
  enum : int { kInput, kForget, kCell, kOutput };  // gates

  Status check_operands() {
    QUERNEL_CHECK(n_.expect_dtypes(kOutputState, {DType::kI8}));
    QUERNEL_CHECK(n_.expect_dtypes(kCellState, {DType::kI16}));
    for (int i = kPeepholes; i < kNorms + 4; ++i) {
      bool is_refused = i < kBiases || i >= kNorms;
      if (is_refused && n_.has(i))
        return n_.refuse("peepholes and layer normalization of integers are not supported",
                         "convert the model without them");
    }
    has_input_gate_ = n_.has(kInputWeights);
    if (n_.has(kRecurrentWeights) != has_input_gate_)
      return n_.invalid("expected all operands of the input gate, or none, found operand " +
                        std::to_string(has_input_gate_ ? kRecurrentWeights : kInputWeights) + " left out");
    for (int i = kInputWeights; i < kPeepholes; ++i) {
      if (!has_input_gate_ && (i == kInputWeights || i == kRecurrentWeights)) continue;
      QUERNEL_CHECK(n_.expect_dtypes(i, {DType::kI8}));
      QUERNEL_CHECK(expect_symmetric(i));
    }
    QUERNEL_CHECK(n_.expect_per_tensor(0));
    QUERNEL_CHECK(n_.expect_per_tensor(kOutputState));
    QUERNEL_CHECK(expect_symmetric(kCellState));
    if (n_.has(kProjection)) {
      QUERNEL_CHECK(n_.expect_dtypes(kProjection, {DType::kI8}));
      QUERNEL_CHECK(expect_symmetric(kProjection));
    }
    int exponent = 0;
    if (std::frexp(n_.in_quantization(kCellState).scale(), &exponent) != 0.5f)
      return n_.refuse("expected a power of two as the scale of the cell state");
    cell_integer_bits_ = kGateBits + exponent - 1;
    constexpr int kMostIntegerBits = 6;
    if (cell_integer_bits_ < 0 || cell_integer_bits_ > kMostIntegerBits)
      return n_.refuse("expected a scale of the cell state from 2^-15 to 2^-9");
    return read_hidden();
  }

  Status expect_symmetric(int i) {
    QUERNEL_CHECK(n_.expect_per_tensor(i));
    return n_.in_quantization(i).zero() == 0 ? Status() : n_.refuse("expected a zero point of 0");
  }

  // Scale and zero point of the output before its projection: those of the fifth intermediate tensor.
  Status read_hidden() {
    constexpr uint32_t kHidden = 4;
    const auto* numbers = n_.op.intermediates();
    if (!numbers || numbers->size() <= kHidden || numbers->Get(kHidden) < 0)
      return n_.refuse("expected five intermediate tensors, which have the scales of the gates");
    const tflite::Tensor& tensor = *n_.subgraph.tensors()->Get(static_cast<uint32_t>(numbers->Get(kHidden)));
    QUERNEL_TRY(hidden_, quantization_of(tensor, n_.build.location()));
    return hidden_.is_per_tensor() ? Status()
                                   : n_.refuse("expected one scale of the fifth intermediate tensor");
  }

  // x times the weights' transpose with a bias, in units of `unit`. `zero`, `scale`: of x.
  ValueId product(ValueId x, int64_t zero, float scale, int weights, int bias, float unit) {
    ValueId sum = multiply_rows(n_, x, n_.in(weights), DType::kI32);
    if (zero != 0) {
      ValueId rows =
          n_.build.reduce(OpKind::k_reduce_sum, n_.build.cast(n_.in(weights), DType::kI32), {1}, false);
      sum = n_.binary(BinaryOp::k_sub, sum, n_.binary(BinaryOp::k_mul, rows, static_cast<double>(zero)));
    }
    if (bias >= 0 && n_.has(bias)) sum = n_.binary(BinaryOp::k_add, sum, n_.in(bias));
    float m = n_.in_quantization(weights).scale() * scale / unit;
    return scale_integers(n_, sum, {make_multiplier(static_cast<double>(m), n_.file.rounding)});
  }

  ValueId gate(int g, ValueId x, ValueId h) {
    constexpr float kUnit = 1.0f / (1 << kSumBits);
    const Quantization &in = n_.in_quantization(0), &out = n_.in_quantization(kOutputState);
    ValueId own = product(x, in.zero(), in.scale(), kInputWeights + g, kBiases + g, kUnit);
    ValueId other = product(h, out.zero(), out.scale(), kRecurrentWeights + g, -1, kUnit);
    return saturated_16(n_, n_.binary(BinaryOp::k_add, saturated_16(n_, own), other));
  }
  ValueId logistic_gate(int g, ValueId x, ValueId h) {
    return fixed_point_logistic(n_, gate(g, x, h), kSumIntegerBits);
  }

  Cell next(ValueId x, Cell before) {
    ValueId state = n_.build.cast(before.state, DType::kI64);
    ValueId forget = logistic_gate(kForget, x, before.output);
    ValueId input = has_input_gate_ ? logistic_gate(kInput, x, before.output)
                                    : n_.binary(BinaryOp::k_sub, n_.scalar(DType::kI64, kHighest), forget);
    ValueId fresh = fixed_point_tanh(n_, gate(kCell, x, before.output), kSumIntegerBits);
    state = n_.binary(BinaryOp::k_add, shifted_product(n_, forget, state, kGateBits),
                      shifted_product(n_, input, fresh, kGateBits + cell_integer_bits_));
    state = saturated_16(n_, state);
    if (cell_clip_ > 0) {
      double limit =
          std::clamp(std::trunc(cell_clip_ / static_cast<double>(n_.in_quantization(kCellState).scale())),
                     kLowest, kHighest);
      state = saturated(n_, state, -limit, limit);
    }
    ValueId output = logistic_gate(kOutput, x, before.output);
    output = n_.binary(BinaryOp::k_mul, output, fixed_point_tanh(n_, state, cell_integer_bits_));
    float unit = 1.0f / (1 << kGateBits), m = unit / hidden_.scale() * unit;
    output = n_.build.cast(output, DType::kI32);
    output = scale_integers(n_, output, {make_multiplier(static_cast<double>(m), n_.file.rounding)});
    output = saturated_8(n_.binary(BinaryOp::k_add, output, static_cast<double>(hidden_.zero())));
    if (n_.has(kProjection)) output = projected(output);
    return {output, n_.build.cast(state, DType::kI16)};
  }

  ValueId saturated_8(ValueId x) { return n_.build.cast(saturated(n_, x, -128, 127), DType::kI8); }

  ValueId projected(ValueId x) {
    const Quantization& out = n_.in_quantization(kOutputState);
    ValueId y = product(x, hidden_.zero(), hidden_.scale(), kProjection, kProjectionBias, out.scale());
    y = saturated_8(n_.binary(BinaryOp::k_add, y, static_cast<double>(out.zero())));
    if (projection_clip_ <= 0) return y;
    double limit = std::clamp(std::trunc(projection_clip_ / static_cast<double>(out.scale())), -128.0, 127.0);
    return saturated(n_, y, -limit, limit);
  }

  NodeImport& n_;
  double cell_clip_, projection_clip_;
  bool has_input_gate_ = true;
  int cell_integer_bits_ = 0;
  Quantization hidden_;
};

}  // namespace

Status quantized_sequence_lstm(NodeImport& n, double cell_clip, double projection_clip, bool time_major) {
  return SequenceLstm(n, cell_clip, projection_clip).import(time_major);
}

// Operands: x, the last output, weights of all gates in a matrix over both, biases, the cell state of 4 integer bits; the
// gates' order is input, cell, forget, output. Values have a scale of 1/128 and the zero point 128.
Status quantized_basic_lstm(NodeImport& n) {
  constexpr int kStateIntegerBits = 4, kValueBits = 7;
  constexpr int64_t kZero = 128;
  for (int i : {0, 1, 2}) {
    QUERNEL_CHECK(n.expect_dtypes(i, {DType::kU8}));
    QUERNEL_CHECK(n.expect_per_tensor(i));
    if (i < 2 && (n.in_quantization(i).zero() != kZero || n.in_quantization(i).scale() != 1.0f / kZero))
      return n.refuse("expected values of scale 1/128 and zero point 128");
  }
  QUERNEL_CHECK(n.expect_dtypes(3, {DType::kI32}));
  QUERNEL_CHECK(n.expect_per_tensor(3));
  QUERNEL_CHECK(n.expect_dtypes(4, {DType::kI16}));
  ValueId both = n.build.cat({n.in(0), n.in(1)}, 1);
  auto centred_16 = [&](ValueId x, int64_t zero) { return n.build.cast(centred(n, x, zero), DType::kI16); };
  ValueId sums = multiply_rows(n, centred_16(both, kZero), centred_16(n.in(2), n.in_quantization(2).zero()),
                               DType::kI32);
  sums = n.binary(BinaryOp::k_add, sums, n.in(3));
  double m = static_cast<double>(n.in_quantization(3).scale()) * (1 << kSumBits);
  sums = saturated_16(n, scale_integers(n, sums, {make_multiplier(m, n.file.rounding)}));
  Shape dims = n.shape(sums);
  Dim depth = floordiv(dims[1], 4);
  auto part = [&](int64_t i) { return n.build.slice(sums, {0, depth * i}, {dims[0], depth * (i + 1)}); };
  // Doubling high products of 16 bits.
  auto product = [&](ValueId a, ValueId b) {
    ValueId y = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, a, b), 1.0 * (1 << (kGateBits - 1)));
    return n.binary(BinaryOp::k_shr, y, 1.0 * kGateBits);
  };
  ValueId fresh = product(fixed_point_logistic(n, part(0), kSumIntegerBits),
                          fixed_point_tanh(n, part(1), kSumIntegerBits));
  ValueId kept =
      product(fixed_point_logistic(n, part(2), kSumIntegerBits), n.build.cast(n.in(4), DType::kI64));
  ValueId state =
      saturated_16(n, n.binary(BinaryOp::k_add, fixed_point_shift(n, fresh, kStateIntegerBits), kept));
  ValueId output = product(fixed_point_logistic(n, part(3), kSumIntegerBits),
                           fixed_point_tanh(n, state, kStateIntegerBits));
  output = saturated(n, fixed_point_shift(n, output, kGateBits - kValueBits), -1.0 * kZero, kZero - 1.0);
  output = n.build.cast(n.binary(BinaryOp::k_add, output, 1.0 * kZero), DType::kU8);
  return n.set_outputs({output, n.build.cast(state, DType::kI16), both, n.build.cast(sums, DType::kI16)});
}

}  // namespace quernel::tflite_import
