// What operators of floats and plain integers compute, in the interpreter.
#include <gtest/gtest.h>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

TEST(TfliteValues, fused_activations_clamp) {
  ModelBuilder m;
  int a = m.input("a", {4}), b = m.input("b", {4}), y = m.output("y", {4});
  m.node<tflite::AddOptions>(Op::ADD, {a, b}, {y}, [](Builder& f) {
    return tflite::CreateAddOptions(f, tflite::ActivationFunctionType::RELU6);
  });
  expect_values(m.run({f32_tensor({4}, {-2, 1, 5, 9}), f32_tensor({4}, {1, 1, 2, 9})}), {4}, {0, 2, 6, 6});
}

// 3x3 of 5 columns: rows of padding above and below, and uneven padding of columns.
TEST(TfliteValues, convolution_pads_more_behind_than_before) {
  ModelBuilder m;
  int x = m.input("x", {1, 1, 4, 1}), y = m.output("y", {1, 1, 2, 1});
  int w = m.floats("w", {1, 1, 3, 1}, {1, 10, 100}), b = m.floats("b", {1}, {0.5});
  m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w, b}, {y}, [](Builder& f) {
    return tflite::CreateConv2DOptions(f, tflite::Padding::SAME, 2, 2);
  });
  // Windows begin at 0 and 2: one column of padding, behind.
  expect_values(m.run({f32_tensor({1, 1, 4, 1}, {1, 2, 3, 4})}), {1, 1, 2, 1}, {321.5, 43.5});
}

TEST(TfliteValues, weights_of_half_precision_are_dequantized) {
  ModelBuilder m;
  int x = m.input("x", {1, 2}), y = m.output("y", {1, 1}), w = m.tensor("w", {1, 2});
  int half =
      m.constant<uint16_t>("half", {1, 2}, Type::FLOAT16, {f32_to_f16_bits(1.5f), f32_to_f16_bits(-2.0f)});
  m.node(Op::DEQUANTIZE, {half}, {w});
  m.node(Op::FULLY_CONNECTED, {x, w, -1}, {y});
  expect_values(m.run({f32_tensor({1, 2}, {2, 3})}), {1, 1}, {-3});
}

TEST(TfliteValues, hybrid_weights_have_a_scale_per_row_or_per_block) {
  ModelBuilder m;
  int x = m.input("x", {1, 2}), y = m.output("y", {1, 2});
  int w = m.constant<int8_t>("w", {2, 2}, Type::INT8, {1, 2, 3, 4}, {{0.5, 2}, {0, 0}, 0});
  m.node(Op::FULLY_CONNECTED, {x, w}, {y});
  expect_values(m.run({f32_tensor({1, 2}, {1, 10})}), {1, 2}, {10.5, 86});
}

// A row of 4 padded to two of 4; the spectrum's real and imaginary parts, and its magnitude.
TEST(TfliteValues, fourier_transforms_of_real_values_give_complex_ones) {
  ModelBuilder m;
  int x = m.input("x", {1, 4}), sizes = m.ints("sizes", {2, 4});
  int spectrum = m.tensor("spectrum", {2, 3}, Type::COMPLEX64), flat = m.tensor("flat", {6}, Type::COMPLEX64);
  int real = m.output("real", {6}), imag = m.output("imag", {6}), magnitude = m.output("magnitude", {6});
  int shape = m.ints("shape", {-1});
  m.node(Op::RFFT2D, {x, sizes}, {spectrum});
  m.node(Op::RESHAPE, {spectrum, shape}, {flat});
  m.node(Op::REAL, {flat}, {real});
  m.node(Op::IMAG, {flat}, {imag});
  m.node(Op::COMPLEX_ABS, {flat}, {magnitude});
  std::vector<Tensor> results = m.run({f32_tensor({1, 4}, {1, 4, 4, 8})});
  // sum, (1 - 4) + i (8 - 4), 1 - 4 + 4 - 8: once for each of both rows.
  const std::vector<float> wanted[] = {{17, -3, -7, 17, -3, -7}, {0, 4, 0, 0, 4, 0}, {17, 5, 7, 17, 5, 7}};
  ASSERT_EQ(results.size(), 3u);
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(results[r].dims, std::vector<int64_t>{6});
    for (size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(results[r].at<float>(static_cast<int64_t>(i)), wanted[r][i], 1e-5) << r << " " << i;
  }
}

TEST(TfliteValues, free_dims_come_from_the_signature) {
  ModelBuilder m;
  int x = m.input("x", {-1, 2}), y = m.output("y", {-1, 2});
  m.node(Op::NEG, {x}, {y});
  Expected<ImportedModel> free = m.import();
  ASSERT_TRUE(free) << to_string(free.errors());
  ASSERT_EQ(free->graph.symbols.size(), 1u);
  EXPECT_EQ(free->graph.symbols[0].name, "x_dim0");
  ImportOptions options;
  options.dims["x_dim0"] = 2;
  expect_values(m.run({f32_tensor({2, 2}, {1, 2, 3, 4})}, options), {2, 2}, {-1, -2, -3, -4});
}

TEST(TfliteValues, strided_slice_masks) {
  auto slice = [](std::vector<int32_t> begin, std::vector<int32_t> end, std::vector<int32_t> strides,
                  std::vector<int32_t> dims, int begin_mask, int end_mask, int ellipsis, int new_axis,
                  int shrink) {
    ModelBuilder m;
    int x = m.input("x", {2, 3}), y = m.output("y", dims);
    m.node<tflite::StridedSliceOptions>(
        Op::STRIDED_SLICE, {x, m.ints("b", begin), m.ints("e", end), m.ints("s", strides)}, {y},
        [=](Builder& f) {
          return tflite::CreateStridedSliceOptions(f, begin_mask, end_mask, ellipsis, new_axis, shrink);
        });
    return m.run({f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6})});
  };
  expect_values(slice({0, 1}, {2, 3}, {1, 1}, {2, 2}, 0, 0, 0, 0, 0), {2, 2}, {2, 3, 5, 6});
  expect_values(slice({9, -1}, {0, 0}, {-1, -2}, {2, 2}, 0, 3, 0, 0, 0), {2, 2}, {6, 4, 3, 1});
  expect_values(slice({0, 1}, {0, 0}, {1, 1}, {3}, 0, 2, 0, 0, 1), {2}, {2, 3});
  expect_values(slice({0, 0, 1}, {0, 0, 2}, {1, 1, 1}, {2, 1, 1}, 0, 0, 1, 2, 0), {2, 1, 1}, {2, 5});
}

TEST(TfliteValues, an_operand_that_must_be_known_becomes_a_constant) {
  ModelBuilder m;
  int x = m.input("x", {4}), shape = m.input("shape", {2}, Type::INT32), y = m.output("y", {2, 2});
  m.node(Op::RESHAPE, {x, shape}, {y});
  EXPECT_NE(m.errors().find("(the new shape) to be known at compile time"), std::string::npos) << m.errors();
  ImportOptions options;
  options.input_values["shape"] = i32_tensor({2}, {2, -1});
  Expected<ImportedModel> imported = m.import(options);
  ASSERT_TRUE(imported) << to_string(imported.errors());
  EXPECT_EQ(imported->fixed_inputs, std::vector<std::string>{"shape"});
}

TEST(TfliteValues, names_of_inputs_and_outputs_are_made_different) {
  ModelBuilder m;
  int a = m.input("x", {1}), b = m.input("x", {1}), c = m.input("", {1}), y = m.output("x", {1});
  int sum = m.tensor("sum", {1});
  m.node(Op::SUB, {a, b}, {sum});
  m.node(Op::SUB, {sum, c}, {y});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  std::vector<std::string> names;
  for (ValueId v : imported->graph.inputs)
    names.push_back(imported->graph.values[static_cast<size_t>(v)].name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "x_1", "input_2"}));
  expect_values(m.run({f32_tensor({1}, {9}), f32_tensor({1}, {2}), f32_tensor({1}, {3})}), {1}, {4});
}

TEST(TfliteValues, subgraphs_are_branches_and_bodies) {
  for (bool condition : {true, false}) {
    ModelBuilder m, negate;
    int c = m.input("c", {}, Type::BOOL), x = m.input("x", {1}), y = m.output("y", {1});
    int from = negate.input("from", {1}), to = negate.output("to", {1});
    negate.node(Op::NEG, {from}, {to});
    m.second = &negate;
    m.node<tflite::IfOptions>(Op::IF, {c, x}, {y},
                              [](Builder& f) { return tflite::CreateIfOptions(f, 1, 1); });
    expect_values(
        m.run({make_tensor(DType::kBool, {}, std::vector<uint8_t>{condition}), f32_tensor({1}, {3})}), {1},
        {-3});
  }
}

}  // namespace
}  // namespace quernel::tflite_test
