// Sorts and scatters on the machine's Vulkan device against the interpreter.
#include "on_vulkan.h"
#include "ordered_graphs.h"

namespace quernel::testing {
namespace {

void expect_same(const std::string& text, int64_t largest_index, int64_t n = 0) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  Expected<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
  std::vector<Tensor> inputs = inputs_of(*graph, largest_index, n, false);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  CompileOptions options;
  options.targets = {"vulkan"};
  qnl_vulkan_options vulkan = {};
  Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 1, {}, &vulkan);
  ASSERT_TRUE(compiled) << to_string(compiled.errors()) << text;
  Expected<std::vector<Tensor>> got = compiled->run(inputs);
  ASSERT_TRUE(got) << to_string(got.errors()) << text;
  for (size_t i = 0; i < want->size(); ++i) EXPECT_EQ(difference((*got)[i], (*want)[i], 0, 0), "") << text;
}

TEST(VulkanOrdered, first_of_many) {
  for (const char* order : {"", " descending"})
    for (const char* dtype : {"f32", "i64", "u8"}) {
      const std::string x = "(%x: " + std::string(dtype);
      expect_same(
          "graph @g" + x + "[2,99]) {\n%y = argsort %x {1}" + order + " : i64[2,20]\nreturn y = %y\n}", 50);
      for (int64_t n : {20, 21, 5000})
        expect_same("symbol n min=0\ngraph @g" + x + "[n]) {\n%y = argsort %x {0}" + order +
                        " : i64[20]\nreturn y = %y\n}",
                    50, n);
    }
}

// Of fewer columns than the template has, which are more than an invocation's group.
TEST(VulkanOrdered, updates_of_some_columns) {
  for (std::string mode : {"set", "add", "min"})
    expect_same(
        "graph @g(%x: f32[70,301], %i: i64[9,130], %u: f32[9,130]) {\n%y = scatter_elements %x, %i, %u {0} " +
            mode + " : f32[70,301]\nreturn y = %y\n}",
        70);
}

// In parts; sums are of small integers, exact in any order.
TEST(VulkanOrdered, many_updates_of_few_places) {
  for (std::string mode : {"add", "max", "set"}) {
    std::string rows = mode == "add" ? "65600" : "1000";
    expect_same(
        "graph @g(%x: f32[30], %i: i64[70001], %u: f32[70001]) {\n%y = scatter_elements %x, %i, %u {0} " +
            mode + " : f32[30]\nreturn y = %y\n}",
        31);
    expect_same("graph @g(%x: i32[5,66], %i: i64[" + rows + "], %u: i32[" + rows +
                    ",66]) {\n%y = scatter_rows %x, %i, %u {0} " + mode + " : i32[5,66]\nreturn y = %y\n}",
                6);
    for (int64_t n : {0, 1, 1000})
      expect_same(
          "symbol n min=0\ngraph @g(%x: f32[3,7], %i: i64[n,2], %u: f32[n]) {\n%y = scatter_nd %x, %i, %u "
          "{0} " +
              mode + " : f32[3,7]\nreturn y = %y\n}",
          7, n);
  }
}

}  // namespace
}  // namespace quernel::testing
