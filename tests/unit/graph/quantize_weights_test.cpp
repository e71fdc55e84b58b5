// Weights become integers with scales: which ones, and how far off they are.
#include "graph/quantize_weights.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "graph/build.h"
#include "graph/verify.h"
#include "graph_testing.h"

namespace quernel {
namespace {

// A table, whose rows are taken, a product, one by a transposed matrix, and a window. `weights`: elements of each.
Graph network(const std::vector<float>& weights) {
  Graph graph;
  GraphBuilder build(graph);
  const ValueId rows = graph.add_input("rows", {DType::kI64, {3}});
  auto constant = [&](const char* name, std::vector<int64_t> dims) {
    build.set_location({.node = name});
    return build.constant(f32_tensor(std::move(dims), weights));
  };
  auto product = [&](const char* name, ValueId x, ValueId w, bool transposed) {
    Contraction c;
    c.axes = {{"m", 3, false}, {"n", 64, false}, {"k", 64, true}};
    c.a = {IndexExpr::axis(0), IndexExpr::axis(2)};
    c.b = {IndexExpr::axis(transposed ? 1 : 2), IndexExpr::axis(transposed ? 2 : 1)};
    c.out = {IndexExpr::axis(0), IndexExpr::axis(1)};
    build.set_location({.node = name});
    return build.contract(x, w, c);
  };
  const ValueId table = constant("table", {64, 64}), first = constant("w", {64, 64}),
                second = constant("t", {64, 64}), both = constant("b", {64, 64});
  build.set_location({.node = "embedding"});
  ValueId x = build.take(table, rows, 0);
  x = product("first", x, first, false);
  x = product("second", x, build.permute(second, {1, 0}), false);
  x = product("third", x, both, true);
  graph.outputs = {{"y", x}, {"b", both}};
  return graph;
}

std::vector<float> waves() {
  std::vector<float> values(64 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 1.7f);
  return values;
}

std::vector<std::string> names(const std::vector<QuantizedLayer>& layers) {
  std::vector<std::string> result;
  for (const QuantizedLayer& layer : layers) result.push_back(layer.name);
  return result;
}

// The largest difference, as a share of the largest element.
double largest_error(const Tensor& got, const Tensor& want) {
  double error = 0, largest = 0;
  for (int64_t i = 0; i < want.count(); ++i) {
    error = std::max<double>(error, std::abs(got.at<float>(i) - want.at<float>(i)));
    largest = std::max<double>(largest, std::abs(want.at<float>(i)));
  }
  return error / largest;
}

TEST(QuantizeWeights, products_and_tables_but_no_weights_with_other_readers) {
  Graph graph = network(waves());
  const std::vector<Tensor> inputs{i64_tensor({3}, {0, 5, 63})};
  const Expected<std::vector<Tensor>> floats = interpret(graph, inputs);
  Expected<std::vector<QuantizedLayer>> layers = quantize_weights(graph, {.bits = 8}, {});
  ASSERT_TRUE(layers);
  EXPECT_THAT(names(*layers), testing::ElementsAre("embedding", "first", "second"));
  for (const QuantizedLayer& layer : *layers) {
    EXPECT_EQ(layer.bits, 8);
    EXPECT_GT(layer.error, 0);
    EXPECT_LT(layer.error, 0.006);  // of a step, 1 / 127, a root mean square of 1 / sqrt 12
  }
  ASSERT_TRUE(verify(graph));
  const Expected<std::vector<Tensor>> integers = interpret(graph, inputs);
  ASSERT_TRUE(floats && integers);
  EXPECT_LT(largest_error((*integers)[0], (*floats)[0]), 0.02);
  EXPECT_GT(largest_error((*integers)[0], (*floats)[0]), 0);
}

TEST(QuantizeWeights, blocks_of_four_bits_along_the_sum) {
  Graph graph = network(waves());
  Expected<std::vector<QuantizedLayer>> layers = quantize_weights(graph, {.bits = 4, .block = 32}, {"fir*"});
  ASSERT_TRUE(layers);
  EXPECT_THAT(names(*layers), testing::ElementsAre("embedding", "second"));
  EXPECT_EQ((*layers)[0].bits, 8);  // tables are
  EXPECT_GT((*layers)[1].error, 0.03);
  EXPECT_LT((*layers)[1].error, 0.1);
  int quantised = 0;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_dequantize && graph.dtype(node.inputs[0]) == DType::kI4) {
      ++quantised;
      EXPECT_THAT(node.attributes.ints, testing::ElementsAre(1, 32));  // of [n, k], which a permute reads
    }
  EXPECT_EQ(quantised, 1);
}

// Groups of the weights of a convolution of 3 by 3 over an image of [channels, y, x], and of a depthwise one.
std::vector<std::vector<int64_t>> groups_of_windows(const WeightFormat& format) {
  Graph graph;
  GraphBuilder build(graph);
  const ValueId x = graph.add_input("x", {DType::kF32, {512, 8, 8}});
  auto axis = [](int i) { return IndexExpr::axis(i); };
  auto weights = [&](std::vector<int64_t> dims) {
    std::vector<float> values(static_cast<size_t>(*element_count(dims)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 1.7f);
    return build.constant(f32_tensor(std::move(dims), values));
  };
  Contraction c;
  c.axes = {{"o", 4, false},  {"y", 6, false}, {"x", 6, false},
            {"c", 512, true}, {"i", 3, true},  {"j", 3, true}};
  c.a = {axis(3), axis(1) + axis(4), axis(2) + axis(5)};
  c.b = {axis(0), axis(3), axis(4), axis(5)};
  c.out = {axis(0), axis(1), axis(2)};
  Contraction depthwise;
  depthwise.axes = {{"c", 512, false}, {"y", 6, false}, {"x", 6, false}, {"i", 3, true}, {"j", 3, true}};
  depthwise.a = {axis(0), axis(1) + axis(3), axis(2) + axis(4)};
  depthwise.b = {axis(0), axis(3), axis(4)};
  depthwise.out = {axis(0), axis(1), axis(2)};
  graph.outputs = {{"y", build.contract(x, weights({4, 512, 3, 3}), c)},
                   {"z", build.contract(x, weights({512, 3, 3}), depthwise)}};
  const Expected<std::vector<QuantizedLayer>> layers = quantize_weights(graph, format, {});
  EXPECT_TRUE(layers && verify(graph));
  std::vector<std::vector<int64_t>> groups;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_dequantize) groups.push_back(node.attributes.ints);
  return groups;
}

TEST(QuantizeWeights, windows_have_blocks_along_channels_or_a_scale_per_column_and_depthwise_ones_stay) {
  EXPECT_THAT(groups_of_windows({.bits = 8}), testing::ElementsAre(testing::ElementsAre(1, 512, 3, 3)));
  EXPECT_THAT(groups_of_windows({.bits = 4, .block = 32}),
              testing::ElementsAre(testing::ElementsAre(1, 32, 1, 1)));
}

TEST(QuantizeWeights, steps_that_integers_hold_are_exact) {
  std::vector<float> values(64 * 64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i * 7 % 16) - 8) * 0.25f;
  Graph graph = network(values);
  Expected<std::vector<QuantizedLayer>> layers = quantize_weights(graph, {.bits = 4, .block = 16}, {});
  ASSERT_TRUE(layers);
  for (const QuantizedLayer& layer : *layers)
    EXPECT_LT(layer.error, layer.bits == 4 ? 1e-6 : 0.01) << layer.name;
}

TEST(QuantizeWeights, a_pattern_names_a_node) {
  Graph graph = network(waves());
  Expected<std::vector<QuantizedLayer>> layers = quantize_weights(graph, {.bits = 8}, {"head"});
  ASSERT_FALSE(layers);
  EXPECT_EQ(layers.errors()[0].message,
            "--float-weights: expected a pattern that names a node, found 'head'");
}

}  // namespace
}  // namespace quernel
