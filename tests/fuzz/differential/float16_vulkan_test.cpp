// Conversions between halves and floats by the instructions of vulkan+float16 against those of the processor,
// bit for bit: all halves, and floats around every number and every boundary of rounding.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "on_vulkan.h"
#include "schemas/kernel_abi.h"
#include "support/dtype.h"

namespace quernel::testing {
namespace {

template <typename T>
Tensor tensor(DType dtype, const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  return {dtype,
          {static_cast<int64_t>(values.size())},
          Bytes::own(std::vector<uint8_t>(bytes, bytes + values.size() * sizeof(T)))};
}

Graph cast(DType from, DType to, size_t n) {
  std::string size = "[" + std::to_string(n) + "]", in = std::string(to_string(from)) + size,
              out = std::string(to_string(to)) + size;
  Expected<Graph> graph =
      parse_graph("graph @g(%x: " + in + ") {\n  %y = cast %x : " + out + "\n  return y = %y\n}\n", "test");
  EXPECT_TRUE(graph) << to_string(graph.errors());
  return *graph;
}

class VulkanFloat16 : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string why;
    if (!has_device(&why)) GTEST_SKIP() << why;
    if (GetParam() != "vulkan" && !has_features(QNL_SPIRV_FLOAT16))
      GTEST_SKIP() << "the device has no float16";
  }

  static Tensor run(const Graph& graph, const Tensor& input) {
    CompileOptions options;
    options.targets = {GetParam()};
    qnl_vulkan_options vulkan = {};
    Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, 1, {}, &vulkan);
    EXPECT_TRUE(compiled) << to_string(compiled.errors());
    Expected<std::vector<Tensor>> got = compiled->run({input});
    EXPECT_TRUE(got) << to_string(got.errors());
    return (*got)[0];
  }
};

TEST_P(VulkanFloat16, widens_all_halves) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  Tensor got = run(cast(DType::kF16, DType::kF32, halves.size()), tensor(DType::kF16, halves));
  size_t wrong = 0;
  for (size_t i = 0; i < halves.size(); ++i) {
    float want = f16_bits_to_f32(halves[i]), x = got.at<float>(static_cast<int64_t>(i));
    bool same =
        std::isnan(want) ? std::isnan(x) : std::bit_cast<uint32_t>(want) == std::bit_cast<uint32_t>(x);
    if (!same && ++wrong < 9) ADD_FAILURE() << std::hex << halves[i] << ": " << x << ", expected " << want;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(VulkanFloat16, rounds_floats_to_the_nearest_half) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> floats = {kInf, std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::denorm_min(), std::nanf("")};
  for (uint16_t half = 0; half < 0x7c00; ++half) {
    float number = f16_bits_to_f32(half);
    float next = half == 0x7bff ? 65536.0f : f16_bits_to_f32(static_cast<uint16_t>(half + 1));
    for (float x : {number, number + (next - number) / 2}) {
      float below = std::nextafter(x, -kInf), above = std::nextafter(x, kInf);
      floats.insert(floats.end(),
                    {x, below, above, std::nextafter(below, -kInf), std::nextafter(above, kInf)});
    }
  }
  size_t positive = floats.size();
  for (size_t i = 0; i < positive; ++i) floats.push_back(-floats[i]);
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  Tensor got = run(cast(DType::kF32, DType::kF16, floats.size()), tensor(DType::kF32, floats));
  size_t wrong = 0;
  for (size_t i = 0; i < floats.size(); ++i) {
    uint16_t want = f32_to_f16_bits(floats[i]), x = got.at<uint16_t>(static_cast<int64_t>(i));
    bool same = std::isnan(floats[i]) ? (x & 0x7fff) > 0x7c00 : want == x;
    if (!same && ++wrong < 9)
      ADD_FAILURE() << std::hexfloat << floats[i] << std::hex << ": " << x << ", expected " << want;
  }
  EXPECT_EQ(wrong, 0u);
}

// Doubles and bytes go through halves or floats.
TEST_P(VulkanFloat16, other_widths) {
  std::mt19937_64 random(7);
  std::vector<double> doubles(20000);
  for (double& x : doubles)
    x = std::ldexp(static_cast<double>(random()) - 0x1p63, static_cast<int>(random() % 48) - 92);
  for (size_t i = 0; i < 10000; ++i)  // beside the middle of two halves, by less than a float says
    doubles[i] = static_cast<double>(f16_bits_to_f32(static_cast<uint16_t>(random() % 0x7c00))) *
                 (1 + 0x1p-11) * (1 + static_cast<double>(static_cast<int>(i % 3) - 1) * 0x1p-50);
  Tensor got = run(cast(DType::kF64, DType::kF16, doubles.size()), tensor(DType::kF64, doubles));
  for (size_t i = 0; i < doubles.size(); ++i)
    ASSERT_EQ(got.at<uint16_t>(static_cast<int64_t>(i)), f64_to_f16_bits(doubles[i]))
        << std::hexfloat << doubles[i];
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    Graph graph = cast(dtype, DType::kF32, bytes.size());
    Tensor input = tensor(dtype, bytes);
    Expected<std::vector<Tensor>> want = interpret(graph, {input});
    ASSERT_TRUE(want) << to_string(want.errors());
    EXPECT_EQ(difference(run(graph, input), (*want)[0], 0, 0), "");
  }
}

// A bundle of both variants runs on devices with and without the instructions, to the same bits.
TEST(VulkanFloat16Variants, a_device_without_the_instructions_takes_the_other) {
  if (!has_features(QNL_SPIRV_FLOAT16)) GTEST_SKIP() << "no device with float16";
  Expected<Graph> graph = parse_graph(
      "graph @g(%x: f16[500]) {\n  %a = mul %x, %x : f16[500]\n  %b = add %a, %x : f16[500]\n"
      "  return y = %b\n}\n",
      "test");
  ASSERT_TRUE(graph) << to_string(graph.errors());
  std::vector<uint16_t> halves(500);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i * 7919 % 0x7c00);
  Tensor input = tensor(DType::kF16, halves);
  Expected<std::vector<Tensor>> want = interpret(*graph, {input});
  ASSERT_TRUE(want) << to_string(want.errors());
  CompileOptions options;
  options.targets = {"vulkan", "vulkan+float16"};
  for (bool has : {true, false}) {
    qnl_vulkan_options vulkan = {};
    if (!has) vulkan.feature_mask = ~QNL_SPIRV_FLOAT16;
    Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    const qnl_session* session = compiled->session().get();
    std::string text(qnl_session_describe(session, QNL_JSON, nullptr, 0), '\0');
    qnl_session_describe(session, QNL_JSON, text.data(), text.size());
    EXPECT_NE(text.find(has ? "\"vulkan+float16\"" : "\"vulkan\""), std::string::npos) << text;
    Expected<std::vector<Tensor>> got = compiled->run({input});
    ASSERT_TRUE(got) << to_string(got.errors());
    EXPECT_EQ(difference((*got)[0], (*want)[0], 0, 0), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, VulkanFloat16, ::testing::Values("vulkan", "vulkan+float16"),
                         [](const auto& info) {
                           return info.param == "vulkan" ? std::string("integers")
                                                         : std::string("instructions");
                         });

}  // namespace
}  // namespace quernel::testing
