// LSTMs of integers: beside real ones of the same values, and what they refuse.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

constexpr int kTime = 3, kInputs = 2, kCells = 2;
constexpr float kInputScale = 1.0f / 64, kWeightScale = 1.0f / 100, kOutputScale = 1.0f / 128;
constexpr int kInputZero = 5, kOutputZero = -3;

// Weights and biases of gate g: input, forget, cell, output.
std::vector<int8_t> weights_of(int g, int first) {
  std::vector<int8_t> values;
  for (int i = 0; i < kCells * kInputs; ++i)
    values.push_back(static_cast<int8_t>((g * 37 + i * 53 + first) % 200 - 100));
  return values;
}
std::vector<int32_t> biases_of(int g) { return {1000 * g - 1500, 700 - 400 * g}; }

// What a test makes otherwise.
struct Changes {
  std::vector<int> left_out = {};  // operands
  Quant cell{{1.0f / 2048}, {0}}, hidden{{kOutputScale}, {kOutputZero}}, weights{{kWeightScale}, {0}};
  int intermediates = 5;
  bool has_peephole = false;
};

void add_lstm(ModelBuilder& m, const Changes& changes = {}) {
  const Quant in{{kInputScale}, {kInputZero}}, out{{kOutputScale}, {kOutputZero}};
  std::vector<int32_t> operands(24, -1);
  operands[0] = m.input("x", {1, kTime, kInputs}, Type::INT8, in);
  for (int g = 0; g < 4; ++g) {
    std::string name = std::to_string(g);
    operands[static_cast<size_t>(1 + g)] =
        m.constant("w" + name, {kCells, kInputs}, Type::INT8, weights_of(g, 0), changes.weights);
    operands[static_cast<size_t>(5 + g)] =
        m.constant("r" + name, {kCells, kCells}, Type::INT8, weights_of(g, 91), {{kWeightScale}, {0}});
    operands[static_cast<size_t>(12 + g)] = m.constant("b" + name, {kCells}, Type::INT32, biases_of(g));
  }
  if (changes.has_peephole)
    operands[9] = m.constant("p", {kCells}, Type::INT16, std::vector<int16_t>{1, 2}, {{0.5}, {0}});
  operands[18] = m.tensor("h", {1, kCells}, Type::INT8, out);
  operands[19] = m.tensor("c", {1, kCells}, Type::INT16, changes.cell);
  for (int state : {operands[18], operands[19]})
    m.extras[state] = [](Builder&) {
      ModelBuilder::Extra extra;
      extra.is_variable = true;
      return extra;
    };
  for (int i : changes.left_out) operands[static_cast<size_t>(i)] = -1;
  int y = m.output("y", {1, kTime, kCells}, Type::INT8, out);
  m.node<tflite::UnidirectionalSequenceLSTMOptions>(
      Op::UNIDIRECTIONAL_SEQUENCE_LSTM, operands, {y}, [](Builder& f) {
        return tflite::CreateUnidirectionalSequenceLSTMOptions(f, tflite::ActivationFunctionType::TANH, 0, 0,
                                                               false);
      });
  std::vector<int32_t> intermediates;
  for (int i = 0; i < changes.intermediates; ++i)
    intermediates.push_back(m.tensor("t" + std::to_string(i), {}, i < 4 ? Type::INT16 : Type::INT8,
                                     i < 4 ? Quant{{1.0f / 4096}, {0}} : changes.hidden));
  m.set_intermediates(intermediates);
}

// The outputs of a real LSTM for integers x, without rounding. `coupled`: the input gate is one minus the forget gate.
std::vector<double> real_outputs(const std::vector<int8_t>& x, bool coupled) {
  auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  std::array<double, kCells> h{}, c{};
  std::vector<double> outputs;
  for (int t = 0; t < kTime; ++t) {
    std::array<double, kCells> next{};
    for (int j = 0; j < kCells; ++j) {
      double gate[4];
      for (int g = 0; g < 4; ++g) {
        gate[g] = biases_of(g)[static_cast<size_t>(j)] * static_cast<double>(kInputScale) * kWeightScale;
        for (int k = 0; k < kInputs; ++k)
          gate[g] +=
              weights_of(g, 0)[static_cast<size_t>(j * kInputs + k)] * static_cast<double>(kWeightScale) *
              (x[static_cast<size_t>(t * kInputs + k)] - kInputZero) * static_cast<double>(kInputScale);
        for (int k = 0; k < kCells; ++k)
          gate[g] += weights_of(g, 91)[static_cast<size_t>(j * kCells + k)] *
                     static_cast<double>(kWeightScale) * h[static_cast<size_t>(k)];
      }
      auto at = static_cast<size_t>(j);
      double forget = logistic(gate[1]), input = coupled ? 1 - forget : logistic(gate[0]);
      c[at] = forget * c[at] + input * std::tanh(gate[2]);
      next[at] = logistic(gate[3]) * std::tanh(c[at]);
    }
    h = next;
    for (double v : h) outputs.push_back(v / static_cast<double>(kOutputScale) + kOutputZero);
  }
  return outputs;
}

const std::vector<int8_t> kValues = {100, -120, 30, 77, -90, 12};

TEST(TfliteLstm, integers_follow_real_values) {
  for (bool coupled : {false, true}) {
    ModelBuilder m;
    add_lstm(m, {.left_out = coupled ? std::vector<int>{1, 5, 12} : std::vector<int>{}});
    std::vector<Tensor> states = {i8_tensor({1, kCells}, {kOutputZero, kOutputZero}),
                                  make_tensor(DType::kI16, {1, kCells}, std::vector<int16_t>{0, 0})};
    std::vector<Tensor> inputs = {i8_tensor({1, kTime, kInputs}, kValues)};
    inputs.insert(inputs.end(), states.begin(), states.end());
    expect_values(m.run(inputs), {1, kTime, kCells}, real_outputs(kValues, coupled), 1.5);
  }
}

TEST(TfliteLstm, what_integers_refuse) {
  const std::pair<const char*, Changes> refusals[] = {
      {"peepholes and layer normalization of integers are not supported; convert the model without them",
       {.has_peephole = true}},
      {"expected a zero point of 0", {.weights = {{kWeightScale}, {3}}}},
      {"expected a power of two as the scale of the cell state", {.cell = {{0.3f}, {0}}}},
      {"expected a scale of the cell state from 2^-15 to 2^-9", {.cell = {{0.5f}, {0}}}},
      {"expected five intermediate tensors, which have the scales of the gates", {.intermediates = 4}},
      {"expected one scale of the fifth intermediate tensor", {.hidden = {}}},
      {"expected all operands of the input gate, or none, found operand 1 left out", {.left_out = {1}}},
  };
  for (const auto& [text, changes] : refusals) {
    ModelBuilder m;
    add_lstm(m, changes);
    EXPECT_NE(m.errors().find(text), std::string::npos) << text << "\n" << m.errors();
  }
}

TEST(TfliteLstm, operands_that_real_cells_need) {
  for (auto [left_out, text] :
       {std::pair{2, "expected operand 2, found it left out"},
        {13, "expected operand 13, found it left out"},
        {5, "expected all operands of the input gate, or none, found operand 5 left out"}}) {
    ModelBuilder m;
    std::vector<int32_t> operands{m.input("x", {1, 1, 2})};
    while (operands.size() < 20) operands.push_back(-1);
    for (size_t i : {1, 2, 3, 4, 5, 6, 7, 8})
      operands[i] = m.floats("w" + std::to_string(i), {2, 2}, {1, 2, 3, 4});
    for (size_t i : {12, 13, 14, 15}) operands[i] = m.floats("b" + std::to_string(i), {2}, {1, 2});
    for (size_t i : {18, 19}) {
      operands[i] = m.tensor("s" + std::to_string(i), {1, 2});
      m.extras[operands[i]] = [](Builder&) {
        ModelBuilder::Extra extra;
        extra.is_variable = true;
        return extra;
      };
    }
    operands[static_cast<size_t>(left_out)] = -1;
    m.node(Op::UNIDIRECTIONAL_SEQUENCE_LSTM, operands, {m.output("y", {1, 1, 2})});
    EXPECT_NE(m.errors().find(text), std::string::npos) << text << "\n" << m.errors();
  }
}

TEST(TfliteLstm, the_basic_kernel_has_one_scale) {
  ModelBuilder m;
  const Quant value{{1.0f / 100}, {128}};
  int x = m.input("x", {1, 2}, Type::UINT8, value), h = m.input("h", {1, 2}, Type::UINT8, value);
  int w = m.constant("w", {8, 4}, Type::UINT8, std::vector<uint8_t>(32, 130), {{0.1f}, {128}});
  int b = m.constant("b", {8}, Type::INT32, std::vector<int32_t>(8), {{0.1f / 128}, {0}});
  int c = m.input("c", {1, 2}, Type::INT16, {{1.0f / 2048}, {0}});
  int y = m.output("y", {1, 2}, Type::UINT8, value), state = m.output("state", {1, 2}, Type::INT16);
  int both = m.tensor("both", {1, 4}, Type::UINT8), sums = m.tensor("sums", {1, 8}, Type::INT16);
  m.node<tflite::LSTMOptions>(Op::LSTM, {x, h, w, b, c}, {y, state, both, sums}, [](Builder& f) {
    return tflite::CreateLSTMOptions(f, tflite::ActivationFunctionType::TANH, 0, 0,
                                     tflite::LSTMKernelType::BASIC);
  });
  EXPECT_NE(m.errors().find("expected values of scale 1/128 and zero point 128"), std::string::npos)
      << m.errors();
}

}  // namespace
}  // namespace quernel::tflite_test
