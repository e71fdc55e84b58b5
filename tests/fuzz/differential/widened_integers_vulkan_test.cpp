// 64-bit integers that were widened from narrower ones, on the machine's Vulkan device: drivers know their range and
// choose narrower instructions, not always rightly (Mesa 22.3 compared such a number with a constant without its sign).
#include <fmt/format.h>

#include "on_vulkan.h"

namespace quernel::testing {
namespace {

// A graph of one node for each operation and constant: `%c` is the widened input.
Graph operations_on(const char* narrow) {
  std::string body = fmt::format("  %c = cast %x : i64[64]\n", narrow), results;
  int count = 0;
  auto node = [&](const std::string& text, const char* dtype) {
    body += fmt::format("  %{} = {} : {}[64]\n", count, text, dtype);
    results += fmt::format("{}y{} = %{}", count == 0 ? "" : ", ", count, count);
    ++count;
  };
  for (const char* op : {"neg", "abs", "sign", "bit_not"}) node(fmt::format("{} %c", op), "i64");
  for (int64_t number : {-200, -3, -1, 0, 1, 7, 100000}) {
    std::string constant =
        fmt::format("%k{}", number < 0 ? fmt::format("n{}", -number) : std::to_string(number));
    body +=
        fmt::format("  {0}a = constant i64[1] {{{1}}}\n  {0} = expand {0}a : i64[64]\n", constant, number);
    for (const char* op :
         {"add", "sub", "mul", "max", "min", "idiv", "fdiv", "mod", "fmod", "and", "or", "xor"})
      node(fmt::format("{} %c, {}", op, constant), "i64");
    for (const char* op : {"idiv", "mod", "fmod", "max"}) node(fmt::format("{} {}, %c", op, constant), "i64");
    for (const char* op : {"lt", "gt", "le", "ge", "eq", "ne"})
      node(fmt::format("{} %c, {}", op, constant), "bool");
    if (number >= 0)
      for (const char* op : {"shl", "shr", "pow"}) node(fmt::format("{} %c, {}", op, constant), "i64");
  }
  Expected<Graph> graph =
      parse_graph(fmt::format("graph @g(%x: {}[64]) {{\n{}  return {}\n}}\n", narrow, body, results), narrow);
  EXPECT_TRUE(graph) << to_string(graph.errors()) << body;
  return graph ? *graph : Graph();
}

TEST(VulkanWidenedIntegers, keep_their_sign) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  CompileOptions options;
  options.targets = {"vulkan"};
  for (const char* narrow : {"i8", "u8", "i16", "u16", "i32", "u32"})
    check(1, operations_on(narrow), options, {});
}

}  // namespace
}  // namespace quernel::testing
