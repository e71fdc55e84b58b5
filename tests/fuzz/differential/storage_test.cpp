// Storage-only dtypes, compiled: every conversion from and to them, movement of packed elements that begin
// within a byte, and constants.
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/interpret.h"
#include "graph/text.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

void expect_same(const Graph& graph, const std::vector<Tensor>& inputs) {
  Expected<std::vector<Tensor>> want = interpret(graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  for (const char* target : {"native", "x86-64"}) {
    CompileOptions options;
    options.targets = {target};
    Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, 2);
    ASSERT_TRUE(got) << to_string(got.errors()) << print(graph);
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_EQ(difference((*got)[i], (*want)[i], 0, 0), "") << print(graph, 64);
  }
}

void expect_same(const std::string& text) {
  Expected<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
  expect_same(*graph, random_inputs(*graph, 1));
}

TEST(Storage, every_conversion) {
  for (int from = 0; from < kDTypeCount; ++from) {
    Graph graph;
    GraphBuilder build(graph);
    ValueId x = graph.add_input("x", {static_cast<DType>(from), {5, 29}});
    for (int to = 0; to < kDTypeCount; ++to) {
      bool stored = from >= static_cast<int>(DType::kI4) || to >= static_cast<int>(DType::kI4);
      if (stored && from != to)
        graph.outputs.push_back({"y" + std::to_string(to), build.cast(x, static_cast<DType>(to))});
    }
    ASSERT_TRUE(build.ok());
    expect_same(graph, random_inputs(graph, static_cast<uint64_t>(from)));
  }
}

TEST(Storage, packed_elements_move) {
  for (std::string t : {"i4", "u4"}) {
    auto graph = [&](const std::string& inputs, const std::string& nodes) {
      std::string text = "graph @g(" + inputs + ") {\n" + nodes + "\n}\n";
      for (size_t at; (at = text.find('@', 7)) != std::string::npos;) text.replace(at, 1, t);
      return text;
    };
    expect_same(graph("%x: @[3,5]", "%y = permute %x {1, 0} : @[5,3]\nreturn y = %y"));
    expect_same(graph("%x: @[3,5]", "%y = slice %x [1:3, 1:5:3] : @[2,2]\nreturn y = %y"));
    expect_same(graph("%x: @[3,5]", "%y = pad %x [1:0, 0:2] fill 3 : @[4,7]\nreturn y = %y"));
    expect_same(graph("%x: @[3,5], %z: @[2,5]", "%y = cat %x, %z {0} : @[5,5]\nreturn y = %y"));
    expect_same(graph("%x: @[3,5], %i: i64[4]", "%y = take %x, %i {1} : @[3,4]\nreturn y = %y"));
    expect_same(graph("%x: @[1]", "%y = expand %x : @[7]\nreturn y = %y"));
  }
}

TEST(Storage, packed_bits) {
  expect_same(
      "graph @g(%x: i4[3,6]) {\n%y = bitcast %x : u8[3,3]\n%z = bitcast %x : u4[3,6]\nreturn y = %y, z = "
      "%z\n}");
  expect_same("graph @g(%x: f32[3,2]) {\n%y = bitcast %x : u4[3,16]\nreturn y = %y\n}");
}

// The rounding to storage in the middle of a chain, which is evaluated where it is needed.
TEST(Storage, quantised_chains) {
  expect_same(
      "graph @g(%x: f32[7,9]) {\n%a = mul %x, %x : f32[7,9]\n%q = cast %a : i4[7,9]\n%d = cast %q : "
      "f32[7,9]\n"
      "%y = add %d, %x : f32[7,9]\n%e = cast %x : f8e4m3[7,9]\n%f = cast %e : f16[7,9]\nreturn y = %y, q = "
      "%q, f = %f\n}");
  expect_same(
      "graph @g(%x: f32[7,9]) {\n%s = reduce_max %x {1} : f32[7]\n%q = cast %s : u4[7]\n%e = cast %s : "
      "f8e5m2[7]\n"
      "return q = %q, e = %e\n}");
}

}  // namespace
}  // namespace quernel::testing
