// Quantised operators: products of integers around their zero points, rounding and saturation.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/text.h"
#include "run_model.h"

namespace quernel::onnx_test {
namespace {

Tensor u8(std::vector<int64_t> dims, const std::vector<uint8_t>& values) {
  return make_tensor(DType::kU8, std::move(dims), values);
}
Tensor i8(std::vector<int64_t> dims, const std::vector<int8_t>& values) {
  return make_tensor(DType::kI8, std::move(dims), values);
}

constexpr int kUint8 = 2, kInt8 = 3, kInt4 = 22;

// An initializer of small integers.
void small_ints(ModelBuilder& m, const std::string& name, int type, const std::vector<int64_t>& dims,
                const std::vector<int>& values) {
  onnx::TensorProto& tensor = *m.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (int64_t d : dims) tensor.add_dims(d);
  for (int v : values) tensor.add_int32_data(v);
}

onnx::NodeProto& contrib(onnx::NodeProto& node) {
  node.set_domain("com.microsoft");
  return node;
}

TEST(Quantized, rounds_half_to_even_and_saturates) {
  ModelBuilder m;
  m.input("x", {6}).output("y");
  m.floats("scale", {}, {1});
  small_ints(m, "zero", kInt8, {}, {1});
  m.node("QuantizeLinear", {"x", "scale", "zero"}, {"y"});
  expect_values(run(m, {f32_tensor({6}, {0.5, 1.5, 2.5, -2.5, -200, 300})}).at(0), {6},
                {1, 3, 3, -1, -128, 127});
}

TEST(Quantized, blocks_have_scales_of_their_own) {
  ModelBuilder m(21);
  m.input("x", {5}).output("y");
  m.floats("scale", {3}, {1, 2, 4});
  onnx::NodeProto& node = m.node("QuantizeLinear", {"x", "scale"}, {"y"});
  set_int(node, "axis", 0);
  set_int(node, "block_size", 2);
  set_int(node, "output_dtype", kInt4);
  expect_values(run(m, {f32_tensor({5}, {3, -20, 6, 6, 40})}).at(0), {5}, {3, -8, 3, 3, 7});
}

TEST(Quantized, float8_has_no_zero_point) {
  constexpr int kFloat8E4M3FN = 17;
  ModelBuilder m(19);
  m.input("x", {1}).input("zero", {}, kFloat8E4M3FN).output("y");
  m.floats("scale", {}, {1});
  m.node("QuantizeLinear", {"x", "scale", "zero"}, {"y"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_FALSE(imported);
  EXPECT_NE(to_string(imported.errors()).find("expected a zero point of 0 for float8"), std::string::npos);
}

TEST(Quantized, dequantizes_per_channel) {
  ModelBuilder m;
  m.input("x", {2, 2}, kUint8).output("y");
  m.floats("scale", {2}, {0.5, 2});
  small_ints(m, "zero", kUint8, {2}, {10, 200});
  set_int(m.node("DequantizeLinear", {"x", "scale", "zero"}, {"y"}), "axis", -1);
  expect_values(run(m, {u8({2, 2}, {0, 0, 20, 255})}).at(0), {2, 2}, {-5, -400, 5, 110});
}

// (5-3)*(130-zero) + (7-3)*(125-zero), however the product is computed.
TEST(Quantized, products_take_any_zero_point) {
  for (auto [zero, expected] : {std::pair{0, 760}, {128, -8}, {100, 160}}) {
    ModelBuilder m;
    m.input("a", {1, 2}, kUint8).output("y");
    small_ints(m, "b", kUint8, {2, 1}, {130, 125});
    small_ints(m, "a_zero", kUint8, {}, {3});
    small_ints(m, "b_zero", kUint8, {}, {zero});
    m.node("MatMulInteger", {"a", "b", "a_zero", "b_zero"}, {"y"});
    expect_values(run(m, {u8({1, 2}, {5, 7})}).at(0), {1, 1}, {static_cast<double>(expected)});
  }
}

TEST(Quantized, padding_stands_for_zero) {
  for (int zero : {0, 1}) {
    ModelBuilder m;
    m.input("x", {1, 1, 1, 1}, kUint8).output("y");
    small_ints(m, "w", kInt8, {1, 1, 3, 3}, {1, 1, 1, 1, 4, 1, 1, 1, 1});
    small_ints(m, "x_zero", kUint8, {}, {3});
    small_ints(m, "w_zero", kInt8, {}, {zero});
    set_ints(m.node("ConvInteger", {"x", "w", "x_zero", "w_zero"}, {"y"}), "pads", {1, 1, 1, 1});
    expect_values(run(m, {u8({1, 1, 1, 1}, {5})}).at(0), {1, 1, 1, 1}, {2.0 * (4 - zero)});
  }
}

// Zero points known and not, weights of both dtypes: what the definition says.
TEST(Quantized, products_of_any_zero_points) {
  const std::vector<uint8_t> a{0, 5, 255, 7, 200, 31}, b{9, 250, 0, 128, 255, 3};
  for (int weights : {kUint8, kInt8})
    for (int a_zero : {0, 9})
      for (int b_zero : {0, 5, 128})
        for (int known = 0; known < 4; ++known) {
          if (weights == kInt8 && b_zero > 127) continue;
          ModelBuilder m;
          m.input("a", {2, 3}, kUint8);
          std::vector<Tensor> inputs{u8({2, 3}, a)};
          if (known & 1) {
            small_ints(m, "a_zero", kUint8, {}, {a_zero});
          } else {
            m.input("a_zero", {}, kUint8);
            inputs.push_back(u8({}, {static_cast<uint8_t>(a_zero)}));
          }
          small_ints(m, "b_zero", weights, {}, {b_zero});
          auto value = [&](size_t i) {
            return weights == kInt8 ? int{static_cast<int8_t>(b[i])} : int{b[i]};
          };
          if (known & 2) {
            std::vector<int> values;
            for (size_t i = 0; i < b.size(); ++i) values.push_back(value(i));
            small_ints(m, "b", weights, {3, 2}, values);
          } else {
            m.input("b", {3, 2}, weights);
            Tensor bytes = u8({3, 2}, b);
            bytes.dtype = weights == kInt8 ? DType::kI8 : DType::kU8;
            inputs.push_back(bytes);
          }
          m.output("y");
          m.node("MatMulInteger", {"a", "b", "a_zero", "b_zero"}, {"y"});
          std::vector<double> want(4, 0);
          for (size_t i = 0; i < 12; ++i)
            want[i / 6 * 2 + i % 2] +=
                (a[i / 6 * 3 + i / 2 % 3] - a_zero) * (value(i / 2 % 3 * 2 + i % 2) - b_zero);
          expect_values(run(m, inputs).at(0), {2, 2}, want);
        }
}

TEST(Quantized, convolutions_of_any_zero_points) {
  const std::vector<uint8_t> x{0, 5, 255, 7, 200, 31, 128, 90};  // [1,2,2,2]
  const std::vector<int> w{9, 250, 0, 128, 255, 3, 77, 1};       // [2,2,1,2]
  for (int w_zero : {0, 5, 128}) {
    ModelBuilder m;
    m.input("x", {1, 2, 2, 2}, kUint8).output("y");
    small_ints(m, "w", kUint8, {2, 2, 1, 2}, w);
    small_ints(m, "x_zero", kUint8, {}, {11});
    small_ints(m, "w_zero", kUint8, {}, {w_zero});
    set_ints(m.node("ConvInteger", {"x", "w", "x_zero", "w_zero"}, {"y"}), "pads", {0, 0, 0, 1});
    std::vector<double> want;
    for (int o = 0; o < 2; ++o)
      for (int row = 0; row < 2; ++row)
        for (int column = 0; column < 2; ++column) {
          int sum = 0;
          for (int c = 0; c < 2; ++c)
            for (int k = 0; k < 2; ++k)
              if (column + k < 2)
                sum += (x[c * 4 + row * 2 + column + k] - 11) * (w[o * 4 + c * 2 + k] - w_zero);
          want.push_back(sum);
        }
    expect_values(run(m, {u8({1, 2, 2, 2}, x)}).at(0), {1, 2, 2, 2}, want);
  }
}

TEST(Quantized, elementwise_operators_rescale) {
  ModelBuilder m;
  m.input("a", {2}, kUint8).input("b", {2}, kUint8).output("y");
  m.floats("sa", {}, {0.5});
  m.floats("sb", {}, {2});
  m.floats("sy", {}, {0.25});
  small_ints(m, "za", kUint8, {}, {4});
  small_ints(m, "zb", kUint8, {}, {5});
  small_ints(m, "zy", kUint8, {}, {7});
  contrib(m.node("QLinearAdd", {"a", "sa", "za", "b", "sb", "zb", "sy", "zy"}, {"y"}));
  // 3 + 2 = 5 = 20 * 0.25; 125.5 + 500 saturates.
  expect_values(run(m, {u8({2}, {10, 255}), u8({2}, {6, 255})}).at(0), {2}, {27, 255});
}

TEST(Quantized, concat_brings_operands_to_one_scale) {
  ModelBuilder m;
  m.input("a", {1}, kUint8).input("b", {1}, kUint8).output("y");
  for (auto [name, value] : {std::pair{"sy", 1.0f}, {"sa", 2.0f}, {"sb", 0.5f}}) m.floats(name, {}, {value});
  for (auto [name, value] : {std::pair{"zy", 10}, {"za", 1}, {"zb", 2}})
    small_ints(m, name, kUint8, {}, {value});
  onnx::NodeProto& node =
      contrib(m.node("QLinearConcat", {"sy", "zy", "a", "sa", "za", "b", "sb", "zb"}, {"y"}));
  set_int(node, "axis", 0);
  expect_values(run(m, {u8({1}, {4}), u8({1}, {9})}).at(0), {2}, {16, 14});  // 6; 3.5, which rounds to 4
}

TEST(Quantized, qgemm_gives_floats_without_an_output_scale) {
  ModelBuilder m;
  m.input("a", {1, 2}, kInt8).output("y");
  small_ints(m, "b", kInt8, {1, 2}, {3, -4});
  small_ints(m, "c", 6, {1}, {100});
  m.floats("sa", {}, {0.5});
  m.floats("sb", {}, {0.25});
  small_ints(m, "za", kInt8, {}, {-1});
  small_ints(m, "zb", kInt8, {}, {0});
  set_int(contrib(m.node("QGemm", {"a", "sa", "za", "b", "sb", "zb", "c"}, {"y"})), "transB", 1);
  // (2+1)*3 + (5+1)*-4 + 100 = 85
  expect_values(run(m, {i8({1, 2}, {2, 5})}).at(0), {1, 1}, {85 * 0.125});
}

// A MatMulNBits of one column. `block`: of elements.
onnx::NodeProto& n_bits(ModelBuilder& m, const std::vector<std::string>& inputs, int k, int bits, int block) {
  onnx::NodeProto& node = contrib(m.node("MatMulNBits", inputs, {"y"}));
  set_int(node, "K", k);
  set_int(node, "N", 1);
  set_int(node, "bits", bits);
  set_int(node, "block_size", block);
  return node;
}

TEST(Quantized, four_bit_weights_unpack_low_nibble_first) {
  ModelBuilder m;
  m.input("a", {1, 2}).output("y");
  small_ints(m, "b", kUint8, {1, 1, 1}, {0x9a});
  m.floats("scales", {1}, {0.5});
  n_bits(m, {"a", "b", "scales"}, 2, 4, 2);
  // (10-8)/2 = 1 and (9-8)/2
  expect_values(run(m, {f32_tensor({1, 2}, {4, 6})}).at(0), {1, 1}, {7});
}

// 10, 9, 11 and 12, less 8, in two blocks of two elements with scales of 2 and 10, or as g_idx has it.
TEST(Quantized, matmul_n_bits_in_the_order_of_g_idx) {
  const struct {
    std::vector<int> order;
    double expected;
    const char* groups;  // per dim of the weights
  } kCases[] = {{{0, 0, 1, 1}, 4 + 20 + 3000 + 40000, "{1, 2}"},
                {{1, 0, 0, 1}, 20 + 20 + 600 + 40000, "{1, 2}"},
                {{1, 1, 0, 1}, 20 + 100 + 600 + 40000, "{1, 1}"}};
  for (const auto& c : kCases) {
    ModelBuilder m;
    m.input("a", {1, 4}).output("y");
    small_ints(m, "b", kUint8, {1, 2, 1}, {0x9a, 0xcb});
    m.floats("scales", {2}, {2, 10});
    small_ints(m, "order", 6, {4}, c.order);
    n_bits(m, {"a", "b", "scales", "", "order"}, 4, 4, 2);
    expect_values(run(m, {f32_tensor({1, 4}, {1, 10, 100, 1000})}).at(0), {1, 1}, {c.expected});
    EXPECT_THAT(print(m.import()->graph), testing::HasSubstr(c.groups))
        << "blocks stay where they can be sorted";
  }
}

TEST(Quantized, matmul_n_bits_of_two_bits) {
  ModelBuilder m;
  m.input("a", {1, 4}).output("y");
  small_ints(m, "b", kUint8, {1, 1, 1}, {0xe4});  // 0, 1, 2, 3, around 2
  m.floats("scales", {1}, {0.5});
  n_bits(m, {"a", "b", "scales"}, 4, 2, 4);
  expect_values(run(m, {f32_tensor({1, 4}, {1, 10, 100, 1000})}).at(0), {1, 1}, {494});
}

// 1 to 3 ask for floats.
TEST(Quantized, matmul_n_bits_says_whether_activations_may_be_rounded) {
  for (int level : {0, 1, 3, 4}) {
    ModelBuilder m;
    m.input("a", {1, 2}).output("y");
    small_ints(m, "b", kUint8, {1, 1, 1}, {0x9a});
    m.floats("scales", {1}, {0.5});
    onnx::NodeProto& node = n_bits(m, {"a", "b", "scales"}, 2, 4, 2);
    set_int(node, "accuracy_level", level);
    EXPECT_TRUE(m.import());
    ImportOptions rounded;
    rounded.activations = DType::kI8;
    Expected<ImportedModel> imported = m.import(rounded);
    EXPECT_EQ(imported.has_value(), level == 0 || level == 4);
    if (!imported) {
      EXPECT_THAT(to_string(imported.errors()),
                  testing::HasSubstr(
                      "attribute 'accuracy_level': expected 0 or 4 (i8) with --activations i8, found " +
                      std::to_string(level) + ", which asks for floats"));
    }
  }
}

TEST(Quantized, gathered_rows_of_blocks_in_bytes) {
  ModelBuilder m;
  m.input("rows", {2}, 7).output("y");
  small_ints(m, "data", kUint8, {2, 2}, {0x10, 0x32, 0x98, 0xfe});
  m.floats("scales", {2, 2}, {1, 10, 0.5, 2});
  small_ints(m, "zeros", kUint8, {2, 1}, {0x21, 0x98});
  onnx::NodeProto& node = contrib(m.node("GatherBlockQuantized", {"data", "rows", "scales", "zeros"}, {"y"}));
  set_int(node, "block_size", 2);
  expect_values(run(m, {make_tensor<int64_t>(DType::kI64, {2}, {1, 0})}).at(0), {2, 4},
                {0, 0.5, 10, 12, -1, 0, 0, 10});
}

TEST(Quantized, gathered_columns_of_int4) {
  ModelBuilder m;
  m.input("columns", {1}, 7).output("y");
  small_ints(m, "data", kInt4, {2, 2}, {0x78, 0xf1});  // -8, 7, 1, -1
  m.floats("scales", {1, 2}, {1, 2});
  onnx::NodeProto& node = contrib(m.node("GatherBlockQuantized", {"data", "columns", "scales"}, {"y"}));
  set_int(node, "gather_axis", 1);
  set_int(node, "quantize_axis", 0);
  set_int(node, "block_size", 16);
  expect_values(run(m, {make_tensor<int64_t>(DType::kI64, {1}, {1})}).at(0), {2, 1}, {14, -2});
}

TEST(Quantized, gathered_blocks_that_contradict_each_other) {
  struct Wrong {
    std::vector<std::pair<std::string, int64_t>> attributes;
    int type;
    std::vector<int64_t> scales;
    const char* says;
  };
  const Wrong wrong[] = {
      {{{"gather_axis", 1}}, kUint8, {2, 2}, "expected 'gather_axis' and 'quantize_axis' to differ"},
      {{{"quantize_axis", 2}}, kUint8, {2, 2}, "attribute 'quantize_axis': expected a dim of"},
      {{{"gather_axis", 1}, {"quantize_axis", 0}},
       kUint8,
       {2, 2},
       "expected the last dim of packed data to be 'quantize_axis', found 0"},
      {{{"bits", 3}}, kUint8, {2, 2}, "attribute 'bits': expected 4, or with uint8 data 2, 4 or 8, found 3"},
      {{{"bits", 8}}, kInt4, {2, 2}, "attribute 'bits': expected 4"},
      {{{"block_size", 0}}, kUint8, {2, 2}, "attribute 'block_size': expected at least 1, found 0"},
      {{}, kUint8, {2, 3}, "expected scales [2,2], found [2,3]"},
      {{}, kInt8, {2, 2}, "expected data of uint8, int4 or uint4, found i8"},
  };
  for (const Wrong& w : wrong) {
    ModelBuilder m;
    m.input("rows", {1}, 7).output("y");
    std::vector<int> bytes{0x10, 0x32, 0x18, 0x7e};
    if (w.type == kInt4) bytes.resize(2);
    small_ints(m, "data", w.type, {2, 2}, bytes);
    m.floats("scales", w.scales, std::vector<float>(static_cast<size_t>(w.scales[0] * w.scales[1]), 1));
    onnx::NodeProto& node = contrib(m.node("GatherBlockQuantized", {"data", "rows", "scales"}, {"y"}));
    if (w.attributes.empty() || w.attributes[0].first != "block_size") set_int(node, "block_size", 2);
    for (const auto& [name, value] : w.attributes) set_int(node, name.c_str(), value);
    Expected<ImportedModel> imported = m.import();
    ASSERT_FALSE(imported) << w.says;
    EXPECT_NE(to_string(imported.errors()).find(w.says), std::string::npos) << to_string(imported.errors());
  }
}

// One token: its value is what comes out.
TEST(Quantized, attention_with_a_scale_for_each_column) {
  ModelBuilder m;
  m.input("x", {1, 1, 1}, kUint8).output("y");
  small_ints(m, "w", kInt8, {1, 3}, {1, 2, 3});
  m.floats("b", {3}, {0, 0, 1});
  m.floats("x_scale", {}, {0.5});
  m.floats("w_scale", {3}, {1, 1, 0.5});
  small_ints(m, "x_zero", kUint8, {}, {128});
  small_ints(m, "w_zero", kInt8, {}, {0});
  set_int(contrib(m.node("QAttention", {"x", "w", "b", "x_scale", "w_scale", "", "x_zero", "w_zero"}, {"y"})),
          "num_heads", 1);
  expect_values(run(m, {u8({1, 1, 1}, {132})}).at(0), {1, 1, 1}, {2 * 1.5 + 1});
}

TEST(Quantized, embeddings_are_those_of_dequantised_tables) {
  std::vector<Tensor> results;
  for (bool quantized : {true, false}) {
    ModelBuilder m;
    m.input("ids", {1, 2}, 6).input("segments", {1, 2}, 6).output("y").output("mask_index");
    std::vector<std::string> operands{"ids", "segments"}, scales, zeros;
    const std::vector<std::vector<int>> tables{
        {1, 200, 7, 90}, {5, 6, 70, 80}, {0, 255, 3, 9}, {130, 140}, {120, 110}};
    for (size_t i = 0; i < tables.size(); ++i) {
      const std::string name = "t" + std::to_string(i);
      const std::vector<int64_t> dims = i < 3 ? std::vector<int64_t>{2, 2} : std::vector<int64_t>{2};
      const float scale = 0.01F * static_cast<float>(i + 1);
      const int zero = static_cast<int>(100 + i);
      operands.push_back(name);
      if (quantized) {
        small_ints(m, name, kUint8, dims, tables[i]);
        m.floats(name + "_scale", {}, {scale});
        small_ints(m, name + "_zero", kUint8, {}, {zero});
        scales.push_back(name + "_scale");
        zeros.push_back(name + "_zero");
      } else {
        std::vector<float> values;
        for (int v : tables[i]) values.push_back(static_cast<float>(v - zero) * scale);
        m.floats(name, dims, values);
      }
    }
    operands.push_back("");
    operands.insert(operands.end(), scales.begin(), scales.end());
    operands.insert(operands.end(), zeros.begin(), zeros.end());
    if (!quantized) operands.pop_back();
    contrib(m.node(quantized ? "QEmbedLayerNormalization" : "EmbedLayerNormalization", operands,
                   {"y", "mask_index"}));
    results.push_back(run(m, {make_tensor<int32_t>(DType::kI32, {1, 2}, {1, 0}),
                              make_tensor<int32_t>(DType::kI32, {1, 2}, {0, 1})})
                          .at(0));
  }
  std::vector<double> expected;
  for (int64_t i = 0; i < results[1].count(); ++i) expected.push_back(element_as_f64(results[1], i));
  expect_values(results[0], {1, 2, 2}, expected);
}

// X and the state lie on steps of their dynamic scales (1 and 1/255), so that one step loses nothing.
TEST(Quantized, lstm_of_one_step_is_that_of_dequantised_weights) {
  for (bool per_column : {false, true}) {
    std::vector<std::vector<Tensor>> results;
    for (bool quantized : {true, false}) {
      ModelBuilder m;
      m.input("x", {1, 2, 2}).input("h", {1, 2, 1}).input("c", {1, 2, 1});
      m.output("y").output("last").output("cell");
      const std::vector<int> w{10, -20, 30, 40, -50, 60, 70, -80}, r{11, 22, -33, 44};  // [2,4], [1,4]
      auto scale = [&](size_t column) {
        return per_column ? 0.0005F * static_cast<float>(column + 1) : 0.001F;
      };
      m.floats("b", {1, 8}, {0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0});
      const std::vector<std::string> states{"b", "", "h", "c"};
      std::vector<std::string> operands{"x", "w", "r"};
      operands.insert(operands.end(), states.begin(), states.end());
      if (quantized) {
        small_ints(m, "w", kInt8, {1, 2, 4}, w);
        small_ints(m, "r", kInt8, {1, 1, 4}, r);
        const std::vector<int64_t> dims = per_column ? std::vector<int64_t>{1, 4} : std::vector<int64_t>{1};
        std::vector<float> scales;
        for (size_t i = 0; i < (per_column ? 4U : 1U); ++i) scales.push_back(scale(i));
        m.floats("scale", dims, scales);
        small_ints(m, "zero", kInt8, dims, std::vector<int>(scales.size(), 0));
        for (const char* name : {"", "scale", "zero", "scale", "zero"}) operands.emplace_back(name);
      } else {
        std::vector<float> wide_w(8), wide_r(4);
        for (size_t k = 0; k < 2; ++k)
          for (size_t g = 0; g < 4; ++g) wide_w[g * 2 + k] = static_cast<float>(w[k * 4 + g]) * scale(g);
        for (size_t g = 0; g < 4; ++g) wide_r[g] = static_cast<float>(r[g]) * scale(g);
        m.floats("w", {1, 4, 2}, wide_w);
        m.floats("r", {1, 4, 1}, wide_r);
      }
      onnx::NodeProto& node =
          m.node(quantized ? "DynamicQuantizeLSTM" : "LSTM", operands, {"y", "last", "cell"});
      if (quantized) contrib(node);
      set_int(node, "hidden_size", 1);
      results.push_back(run(m, {f32_tensor({1, 2, 2}, {0, 255, 7, 100}), f32_tensor({1, 2, 1}, {1, 0.2F}),
                                f32_tensor({1, 2, 1}, {0.5, -0.5})}));
    }
    for (size_t i = 0; i < 3; ++i) {
      std::vector<double> expected;
      for (int64_t e = 0; e < results[1].at(i).count(); ++e)
        expected.push_back(element_as_f64(results[1][i], e));
      expect_values(results[0].at(i), results[1][i].dims, expected);
    }
  }
}

TEST(Quantized, lstm_operands_that_do_not_fit) {
  for (auto [type, scales, says] :
       {std::tuple(kInt8, int64_t{3}, "expected input 8 of shape [1] or [1,4], found [3]"),
        std::tuple(1, int64_t{1}, "expected weights of int8 or uint8, found f32")}) {
    ModelBuilder m;
    m.input("x", {1, 1, 1}).output("y");
    if (type == 1)
      m.floats("w", {1, 1, 4}, {1, 1, 1, 1});
    else
      small_ints(m, "w", type, {1, 1, 4}, {1, 1, 1, 1});
    m.floats("scale", {scales}, std::vector<float>(static_cast<size_t>(scales), 1));
    small_ints(m, "zero", kInt8, {1}, {0});
    set_int(contrib(m.node("DynamicQuantizeLSTM",
                           {"x", "w", "w", "", "", "", "", "", "scale", "zero", "scale", "zero"}, {"y"})),
            "hidden_size", 1);
    Expected<ImportedModel> imported = m.import();
    ASSERT_FALSE(imported) << says;
    EXPECT_NE(to_string(imported.errors()).find(says), std::string::npos) << to_string(imported.errors());
  }
}

}  // namespace
}  // namespace quernel::onnx_test
