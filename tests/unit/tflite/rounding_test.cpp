// The roundings of quantized operators, on sums where they differ; expected values are those of the formulas, by hand.
#include <gtest/gtest.h>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using Ints = std::vector<int64_t>;

std::vector<int64_t> run_as(const ModelBuilder& m, const std::vector<Tensor>& values,
                            IntegerRounding rounding) {
  ImportOptions options;
  options.rounding = rounding;
  std::vector<Tensor> results = m.run(values, options);
  Ints ints;
  if (!results.empty())
    for (int64_t i = 0; i < results[0].count(); ++i) ints.push_back(element_as_i64(results[0], i));
  return ints;
}

// A dense layer of one weight of 1: operand times `scale`.
ModelBuilder scaled_by(float from, float to, std::vector<int32_t> dims) {
  ModelBuilder m;
  int x = m.input("x", dims, Type::INT8, {{from}, {0}}), y = m.output("y", dims, Type::INT8, {{to}, {0}});
  int w = m.constant<int8_t>("w", {1, 1}, Type::INT8, {1}, {{1}, {0}});
  m.node(Op::FULLY_CONNECTED, {x, w}, {y});
  return m;
}

TEST(TfliteRounding, halves_go_up_or_to_even) {
  ModelBuilder m = scaled_by(1, 2, {4, 1});
  std::vector<Tensor> x{i8_tensor({4, 1}, {1, -1, 3, 5})};  // 0.5, -0.5, 1.5, 2.5
  EXPECT_EQ(run_as(m, x, IntegerRounding::kSingle), (Ints{1, 0, 2, 3}));
  EXPECT_EQ(run_as(m, x, IntegerRounding::kFloat32), (Ints{0, 0, 2, 2}));
}

TEST(TfliteRounding, the_second_of_two_roundings_sees_the_first) {
  ModelBuilder m = scaled_by(10, 27, {3, 1});
  // 98 * 10 / 27 is 36.3; the product is rounded to halves first, 36.5, and these away from zero.
  std::vector<Tensor> x{i8_tensor({3, 1}, {98, -98, 3})};
  EXPECT_EQ(run_as(m, x, IntegerRounding::kSingle), (Ints{36, -36, 1}));
  EXPECT_EQ(run_as(m, x, IntegerRounding::kDouble), (Ints{37, -37, 1}));
  EXPECT_EQ(run_as(m, x, IntegerRounding::kFloat32), (Ints{36, -36, 1}));
}

TEST(TfliteRounding, channels_round_with_their_own_shift) {
  ModelBuilder m;
  int x = m.input("x", {1, 1, 1, 1}, Type::INT8, {{1}, {0}});
  int y = m.output("y", {1, 1, 1, 2}, Type::INT8, {{27}, {0}});
  int w = m.constant<int8_t>("w", {2, 1, 1, 1}, Type::INT8, {1, 1}, {{10, 27}, {0, 0}, 0});
  int b = m.constant<int32_t>("b", {2}, Type::INT32, {0, 0});
  m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w, b}, {y}, [](Builder& f) {
    return tflite::CreateConv2DOptions(f, tflite::Padding::VALID, 1, 1);
  });
  EXPECT_EQ(run_as(m, {i8_tensor({1, 1, 1, 1}, {98})}, IntegerRounding::kSingle), (Ints{36, 98}));
  EXPECT_EQ(run_as(m, {i8_tensor({1, 1, 1, 1}, {-98})}, IntegerRounding::kDouble), (Ints{-37, -98}));
}

TEST(TfliteRounding, float32_has_eight_bits_in_leaky_relu) {
  ModelBuilder m;
  int x = m.input("x", {3}, Type::INT8, {{1}, {0}}), y = m.output("y", {3}, Type::INT8, {{1}, {0}});
  m.node<tflite::LeakyReluOptions>(Op::LEAKY_RELU, {x}, {y},
                                   [](Builder& f) { return tflite::CreateLeakyReluOptions(f, 0.01f); });
  // -128 * 0.01 is -1.28; 0.01 with eight bits is 3 / 256, and -128 times that is -1.5.
  std::vector<Tensor> values{i8_tensor({3}, {7, -128, -40})};
  EXPECT_EQ(run_as(m, values, IntegerRounding::kSingle), (Ints{7, -1, 0}));
  EXPECT_EQ(run_as(m, values, IntegerRounding::kFloat32), (Ints{7, -1, 0}));
  EXPECT_EQ(run_as(m, {i8_tensor({3}, {7, -127, -43})}, IntegerRounding::kFloat32), (Ints{7, -1, -1}));
  EXPECT_EQ(run_as(m, {i8_tensor({3}, {7, -127, -43})}, IntegerRounding::kSingle), (Ints{7, -1, 0}));
}

TEST(TfliteRounding, float32_quantizes_halves_to_even) {
  ModelBuilder m;
  int x = m.input("x", {4}), y = m.output("y", {4}, Type::INT8, {{0.5}, {1}});
  m.node(Op::QUANTIZE, {x}, {y});
  std::vector<Tensor> values{f32_tensor({4}, {0.25, 0.75, -0.25, 1000})};
  EXPECT_EQ(run_as(m, values, IntegerRounding::kSingle), (Ints{2, 3, 0, 127}));
  EXPECT_EQ(run_as(m, values, IntegerRounding::kFloat32), (Ints{1, 3, 1, 127}));
}

// The first exponential is one, the others are exp(-1), exp(-2): 0.665, 0.245, 0.090.
TEST(TfliteRounding, softmax_of_fixed_point_numbers) {
  ModelBuilder m;
  int x = m.input("x", {1, 3}, Type::INT8, {{0.5}, {0}});
  int y = m.output("y", {1, 3}, Type::INT8, {{1.0f / 256}, {-128}});
  m.node<tflite::SoftmaxOptions>(Op::SOFTMAX, {x}, {y},
                                 [](Builder& f) { return tflite::CreateSoftmaxOptions(f, 1); });
  for (IntegerRounding rounding : kIntegerRoundings)
    EXPECT_EQ(run_as(m, {i8_tensor({1, 3}, {4, 2, 0})}, rounding), (Ints{42, -65, -105}))
        << to_string(rounding);
}

// logistic(1) is 23955.8, tanh(1) is 24955.9. TensorFlow Lite Micro takes tables, the others fixed-point numbers; both give
// what their runtimes give.
TEST(TfliteRounding, int16_functions_of_a_power_of_two) {
  for (Op op : {Op::LOGISTIC, Op::TANH}) {
    ModelBuilder m;
    int x = m.input("x", {3}, Type::INT16, {{1.0f / 4096}, {0}});
    int y = m.output("y", {3}, Type::INT16, {{1.0f / 32768}, {0}});
    m.node(op, {x}, {y});
    std::vector<Tensor> values{make_tensor(DType::kI16, {3}, std::vector<int16_t>{0, 4096, -4096})};
    Ints fixed = op == Op::LOGISTIC ? Ints{16384, 23952, 8815} : Ints{0, 24964, -24964};
    Ints table = op == Op::LOGISTIC ? Ints{16384, 23956, 8812} : Ints{0, 24956, -24956};
    EXPECT_EQ(run_as(m, values, IntegerRounding::kSingle), fixed);
    EXPECT_EQ(run_as(m, values, IntegerRounding::kFloat32), fixed);
    EXPECT_EQ(run_as(m, values, IntegerRounding::kDouble), table);
  }
}

// TensorFlow Lite shifts the operand of the finer scale, and runs no other combination of powers of two. TensorFlow Lite
// Micro scales both.
TEST(TfliteRounding, int16_sums_of_powers_of_two) {
  auto sums = [](float scale_of_y, IntegerRounding rounding) {
    ModelBuilder m;
    int a = m.input("a", {3}, Type::INT16, {{0.125f}, {0}}),
        b = m.input("b", {3}, Type::INT16, {{0.25f}, {0}});
    m.node(Op::ADD, {a, b}, {m.output("y", {3}, Type::INT16, {{scale_of_y}, {0}})});
    return run_as(m,
                  {make_tensor(DType::kI16, {3}, std::vector<int16_t>{400, -401, 3}),
                   make_tensor(DType::kI16, {3}, std::vector<int16_t>{1000, 20, -7})},
                  rounding);
  };
  EXPECT_EQ(sums(0.25f, IntegerRounding::kSingle), (Ints{1200, -180, -5}));
  EXPECT_EQ(sums(0.5f, IntegerRounding::kDouble), (Ints{600, -90, -3}));
}

std::string double_errors(Op op, Quant from, Quant to) {
  ModelBuilder m;
  int x = m.input("x", {1, 3}, Type::INT8, from), y = m.output("y", {1, 3}, Type::INT8, to);
  m.node(op, {x}, {y});
  ImportOptions options;
  options.rounding = IntegerRounding::kDouble;
  return m.errors(options);
}

TEST(TfliteRounding, fixed_point_functions_have_bounds) {
  EXPECT_NE(double_errors(Op::HARD_SWISH, {{256}, {0}}, {{1}, {0}})
                .find("expected a result's scale that is at least 1/128 of the operand's"),
            std::string::npos);
  ModelBuilder m;
  int x = m.input("x", {1, 3}, Type::INT8, {{1e-9f}, {0}});
  int y = m.output("y", {1, 3}, Type::INT8, {{1.0f / 256}, {-128}});
  m.node<tflite::SoftmaxOptions>(Op::SOFTMAX, {x}, {y},
                                 [](Builder& f) { return tflite::CreateSoftmaxOptions(f, 1); });
  ImportOptions options;
  options.rounding = IntegerRounding::kDouble;
  EXPECT_NE(m.errors(options).find("expected a scale times beta of more than 2^-26"), std::string::npos);
}

TEST(TfliteRounding, is_recorded_of_quantized_models) {
  ModelBuilder m = scaled_by(1, 2, {1, 1}), floats;
  int x = floats.input("x", {2}), y = floats.output("y", {2});
  floats.node(Op::RELU, {x}, {y});
  Expected<ImportedModel> quantized = m.import(), real = floats.import();
  ASSERT_TRUE(quantized && real);
  EXPECT_EQ(quantized->rounding, IntegerRounding::kSingle);
  EXPECT_EQ(real->rounding, std::nullopt);
}

}  // namespace
}  // namespace quernel::tflite_test
