// Loops of run-time length on the machine's Vulkan device: results are right, or the run is refused where the
// driver would end a loop early (Mesa's software driver, after 65,535 iterations).
#include <cstring>

#include "on_vulkan.h"

namespace quernel::testing {
namespace {

Tensor numbers(int64_t rows, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7919) % 10007) / 16;
  return make_tensor(DType::kF32, {rows, columns}, values);
}

bool ends_loops(const Device& device) {
  qnl_device_info info;
  qnl_device_get_info(device.get(), &info);
  return std::strstr(info.name, "llvmpipe") != nullptr;
}

TEST(VulkanLongLoops, are_right_or_refused) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  struct Case {
    const char* text;
    int64_t fits, ends;  // sizes
    bool rows;           // n is the first dim
  };
  for (const Case& c :
       {Case{"graph @g(%x: f32[2,n]) {\n  %z = argsort %x {1} : i64[2,n]\n  return z = %z\n}\n", 2000, 9000,
             false},
        Case{"graph @g(%x: f32[n,20]) {\n  %z = reduce_sum %x {0} acc f32 : f32[20]\n  return z = %z\n}\n",
             60'000, 70'000, true}}) {
    Expected<Graph> graph = parse_graph(std::string("symbol n min=1\n") + c.text, "long loops");
    ASSERT_TRUE(graph) << to_string(graph.errors());
    CompileOptions options;
    options.targets = {"vulkan"};
    qnl_vulkan_options vulkan = {};
    Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    for (int64_t n : {c.fits, c.ends}) {
      const std::vector<Tensor> inputs = {c.rows ? numbers(n, 20) : numbers(2, n)};
      Expected<std::vector<Tensor>> got = compiled->run(inputs);
      if (n == c.ends && ends_loops(compiled->device())) {
        ASSERT_FALSE(got) << n << c.text;
        EXPECT_NE(to_string(got.errors())
                      .find("without an error; run it on the CPU, or compile it for known sizes (--dim)"),
                  std::string::npos)
            << to_string(got.errors());
        continue;
      }
      ASSERT_TRUE(got) << to_string(got.errors()) << n << c.text;
      Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
      ASSERT_TRUE(want) << to_string(want.errors());
      EXPECT_EQ(difference((*got)[0], (*want)[0], 1e-5, 0), "") << n << c.text;
    }
  }
}

}  // namespace
}  // namespace quernel::testing
