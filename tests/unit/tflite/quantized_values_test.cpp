// What operators of quantized tensors compute: expected values are those of the fixed-point formulas, by hand.
#include <gtest/gtest.h>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

std::vector<int64_t> ints_of(const std::vector<Tensor>& results) {
  std::vector<int64_t> values;
  if (!results.empty())
    for (int64_t i = 0; i < results[0].count(); ++i) values.push_back(element_as_i64(results[0], i));
  return values;
}

// 0.5 * 0.5 / 0.5: half of a sum, halves up.
TEST(TfliteQuantized, one_rounding_of_halves_goes_up) {
  ModelBuilder m;
  int x = m.input("x", {4, 1}, Type::INT8, {{0.5}, {1}}), y = m.output("y", {4, 1}, Type::INT8, {{0.5}, {2}});
  int w = m.constant<int8_t>("w", {1, 1}, Type::INT8, {1}, {{0.5}, {0}});
  int b = m.constant<int32_t>("b", {1}, Type::INT32, {0});
  m.node(Op::FULLY_CONNECTED, {x, w, b}, {y});
  // (x - 1) / 2: -1.5, -0.5, 0.5, 1.5
  EXPECT_EQ(ints_of(m.run({i8_tensor({4, 1}, {-2, 0, 2, 4})})), (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST(TfliteQuantized, convolution_has_a_scale_for_each_channel_and_clamps) {
  ModelBuilder m;
  int x = m.input("x", {1, 1, 2, 1}, Type::INT8, {{1}, {-1}});
  int y = m.output("y", {1, 1, 2, 2}, Type::INT8, {{0.25}, {-128}});
  int w = m.constant<int8_t>("w", {2, 1, 1, 1}, Type::INT8, {2, 2}, {{0.5, 0.25}, {0, 0}, 0});
  int b = m.constant<int32_t>("b", {2}, Type::INT32, {0, 4});
  m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w, b}, {y}, [](Builder& f) {
    return tflite::CreateConv2DOptions(f, tflite::Padding::VALID, 1, 1,
                                       tflite::ActivationFunctionType::RELU6);
  });
  // Sums 2 * (x + 1): 6 and -18, then 4 more; scaled by 2 and 1; between 0 and 24 above the zero point.
  EXPECT_EQ(ints_of(m.run({i8_tensor({1, 1, 2, 1}, {2, -10})})),
            (std::vector<int64_t>{-116, -118, -128, -128}));
}

TEST(TfliteQuantized, padding_stands_for_zero) {
  ModelBuilder m;
  int x = m.input("x", {1, 1, 2, 1}, Type::INT8, {{1}, {5}}),
      y = m.output("y", {1, 1, 2, 1}, Type::INT8, {{1}, {0}});
  int w = m.constant<int8_t>("w", {1, 1, 3, 1}, Type::INT8, {1, 1, 1}, {{1}, {0}});
  int b = m.constant<int32_t>("b", {1}, Type::INT32, {0});
  m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w, b}, {y}, [](Builder& f) {
    return tflite::CreateConv2DOptions(f, tflite::Padding::SAME, 1, 1);
  });
  EXPECT_EQ(ints_of(m.run({i8_tensor({1, 1, 2, 1}, {7, 8})})), (std::vector<int64_t>{5, 5}));
}

TEST(TfliteQuantized, uint8_weights_have_zero_points) {
  for (uint8_t zero : {128, 3}) {
    ModelBuilder m;
    Quant q{{1}, {10}}, weights{{1}, {zero}};
    int x = m.input("x", {1, 2}, Type::UINT8, q), y = m.output("y", {1, 1}, Type::UINT8, {{1}, {100}});
    std::vector<uint8_t> values{static_cast<uint8_t>(zero + 2), static_cast<uint8_t>(zero - 3)};
    int w = m.constant<uint8_t>("w", {1, 2}, Type::UINT8, values, weights);
    m.node(Op::FULLY_CONNECTED, {x, w}, {y});
    std::vector<Tensor> in{make_tensor(DType::kU8, {1, 2}, std::vector<uint8_t>{20, 14})};
    EXPECT_EQ(ints_of(m.run(in)), (std::vector<int64_t>{100 + 20 - 12})) << int{zero};
  }
}

TEST(TfliteQuantized, add_of_different_scales) {
  ModelBuilder m;
  int a = m.input("a", {3}, Type::INT8, {{0.5}, {0}}), b = m.input("b", {3}, Type::INT8, {{0.25}, {4}});
  int y = m.output("y", {3}, Type::INT8, {{1}, {-1}});
  m.node(Op::ADD, {a, b}, {y});
  // 0.5 a + 0.25 (b - 4): 1.25, 0.5 (up), -100 - 33 (saturates)
  EXPECT_EQ(ints_of(m.run({i8_tensor({3}, {2, 1, -128}), i8_tensor({3}, {5, 4, -128})})),
            (std::vector<int64_t>{0, 0, -98}));
}

TEST(TfliteQuantized, quantize_rounds_halves_away_from_zero) {
  ModelBuilder m;
  int x = m.input("x", {5}), y = m.output("y", {5}, Type::INT8, {{1}, {1}});
  m.node(Op::QUANTIZE, {x}, {y});
  EXPECT_EQ(ints_of(m.run({f32_tensor({5}, {0.5, -0.5, 0.49999997f, 1e30f, -2.5})})),
            (std::vector<int64_t>{2, 0, 1, 127, -2}));
}

TEST(TfliteQuantized, average_pool_divides_by_what_is_inside) {
  ModelBuilder m;
  Quant q{{1}, {0}};
  int x = m.input("x", {1, 1, 3, 1}, Type::INT8, q), y = m.output("y", {1, 1, 2, 1}, Type::INT8, q);
  m.node<tflite::Pool2DOptions>(Op::AVERAGE_POOL_2D, {x}, {y}, [](Builder& f) {
    return tflite::CreatePool2DOptions(f, tflite::Padding::SAME, 2, 2, 2, 1);
  });
  EXPECT_EQ(ints_of(m.run({i8_tensor({1, 1, 3, 1}, {-1, -2, 7})})), (std::vector<int64_t>{-2, 7}));
}

TEST(TfliteQuantized, softmax_rows_sum_to_one) {
  ModelBuilder m;
  int x = m.input("x", {1, 2}, Type::INT8, {{1}, {0}}),
      y = m.output("y", {1, 2}, Type::INT8, {{1.0f / 256}, {-128}});
  m.node<tflite::SoftmaxOptions>(Op::SOFTMAX, {x}, {y},
                                 [](Builder& f) { return tflite::CreateSoftmaxOptions(f, 1); });
  // e / (1 + e) = 0.731: 187.1 of 256
  EXPECT_EQ(ints_of(m.run({i8_tensor({1, 2}, {3, 2})})), (std::vector<int64_t>{59, -59}));
}

// Between integers in and integers out there is no operation on floats.
TEST(TfliteQuantized, integer_operators_compute_without_floats) {
  ModelBuilder m;
  Quant q{{0.1f}, {3}};
  int x = m.input("x", {1, 4, 4, 2}, Type::INT8, q),
      y = m.output("y", {1, 8}, Type::INT8, {{1.0f / 256}, {-128}});
  auto between = [&](const char* name, std::vector<int32_t> dims) {
    return m.tensor(name, std::move(dims), Type::INT8, q);
  };
  int w = m.constant<int8_t>("w", {2, 1, 1, 2}, Type::INT8, {1, 2, 3, 4}, {{0.5}, {0}});
  int b = m.constant<int32_t>("b", {2}, Type::INT32, {1, 2});
  int conv = between("conv", {1, 4, 4, 2}), tanh = between("tanh", {1, 4, 4, 2}),
      sum = between("sum", {1, 4, 4, 2}), pool = between("pool", {1, 2, 2, 2}),
      flat = between("flat", {1, 8});
  m.node<tflite::Conv2DOptions>(Op::CONV_2D, {x, w, b}, {conv}, [](Builder& f) {
    return tflite::CreateConv2DOptions(f, tflite::Padding::SAME, 1, 1);
  });
  m.node(Op::TANH, {conv}, {tanh});
  m.node(Op::ADD, {conv, tanh}, {sum});
  m.node<tflite::Pool2DOptions>(Op::AVERAGE_POOL_2D, {sum}, {pool}, [](Builder& f) {
    return tflite::CreatePool2DOptions(f, tflite::Padding::VALID, 2, 2, 2, 2);
  });
  m.node(Op::RESHAPE, {pool, m.ints("shape", {1, 8})}, {flat});
  m.node<tflite::SoftmaxOptions>(Op::SOFTMAX, {flat}, {y},
                                 [](Builder& f) { return tflite::CreateSoftmaxOptions(f, 1); });
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  for (const Node& node : imported->graph.nodes)
    EXPECT_FALSE(is_float(imported->graph.dtype(node.output)))
        << to_string(node.op) << " of " << node.location.op;
}

}  // namespace
}  // namespace quernel::tflite_test
