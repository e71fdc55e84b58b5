// Stages over many short rows, of which kernels reduce as many together as a vector has lanes: softmax, norms, rows as bytes,
// integers; rows that are whole blocks, that leave a rest, fewer than a block, and as many as a run has.
#include <gtest/gtest.h>

#include "on_host_targets.h"
#include "pipeline/pipeline.h"

namespace quernel::testing {
namespace {

// `%1` to `%9` may be used; ROWS, ONE and FULL stand for shapes without and with one element a row, and with all; LAST for the
// dim of the columns.
struct Case {
  const char* name;
  const char* dtype;
  const char* text;
};

constexpr Case kCases[] = {
    {"softmax", "f32", R"(
  %1 = reduce_max %x {LAST} keepdims : f32ONE
  %2 = expand %1 : f32FULL
  %3 = sub %x, %2 : f32FULL
  %4 = exp %3 : f32FULL
  %5 = reduce_sum %4 {LAST} keepdims acc f32 : f32ONE
  %6 = expand %5 : f32FULL
  %y = div %4, %6 : f32FULL
  return y = %y)"},
    {"root of squares", "f16", R"(
  %c = cast %x : f32FULL
  %1 = mul %c, %c : f32FULL
  %2 = reduce_sum %1 {LAST} keepdims acc f32 : f32ONE
  %3 = sqrt %2 : f32ONE
  %4 = expand %3 : f32FULL
  %5 = div %c, %4 : f32FULL
  %y = cast %5 : f16FULL
  return y = %y, norms = %3)"},
    {"bytes", "f32", R"(
  %1 = abs %x : f32FULL
  %2 = reduce_max %1 {LAST} keepdims : f32ONE
  %3 = expand %2 : f32FULL
  %4 = div %x, %3 : f32FULL
  %5 = add %4, %4 : f32FULL
  %6 = round %5 : f32FULL
  %7 = reduce_sum %6 {LAST} acc f32 : f32ROWS
  %y = cast %6 : i8FULL
  return y = %y, most = %2, sums = %7)"},
    {"integers", "i32", R"(
  %1 = reduce_min %x {LAST} keepdims : i32ONE
  %2 = expand %1 : i32FULL
  %3 = sub %x, %2 : i32FULL
  %4 = reduce_sum %3 {LAST} acc i32 : i32ROWS
  return y = %3, sums = %4)"},
};

std::string replaced(std::string text, const std::string& name, const std::string& by) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size()))
    text.replace(at, name.size(), by);
  return text;
}

std::string graph_text(const Case& c, const std::string& rows, int64_t width) {
  const auto rank = 1 + std::count(rows.begin(), rows.end(), ',');
  std::string text = "graph @g(%x: " + std::string(c.dtype) + "FULL) {" + c.text + "\n}\n";
  text = replaced(text, "ROWS", "[" + rows + "]");
  text = replaced(text, "ONE", "[" + rows + ",1]");
  text = replaced(text, "FULL", "[" + rows + "," + std::to_string(width) + "]");
  return replaced(text, "LAST", std::to_string(rank));
}

TEST(ShortRows, blocks_rests_and_few_rows) {
  for (const Case& c : kCases)
    for (const char* rows : {"16", "50", "3", "5,32", "3,18"})
      for (int64_t width : {16, 64}) {
        SCOPED_TRACE(std::string(c.name) + ", rows " + rows);
        error_on_host_targets(graph_text(c, rows, width), 1e-3);
        if (::testing::Test::HasFailure()) return;
      }
}

TEST(ShortRows, as_many_as_a_run_has) {
  for (const Case& c : kCases) {
    Expected<Graph> graph = parse_graph("symbol n min=1\n" + graph_text(c, "n", 32));
    ASSERT_TRUE(graph) << to_string(graph.errors());
    for (const std::string& target : host_targets()) {
      CompileOptions options;
      options.targets = {target};
      Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 2);
      ASSERT_TRUE(compiled) << to_string(compiled.errors());
      for (int64_t n : {1, 16, 55}) {
        std::vector<Tensor> inputs = random_inputs_at(*graph, {{"n", n}}, 7);
        Expected<std::vector<Tensor>> want = interpret(*graph, inputs, {{"n", n}}),
                                      got = compiled->run(inputs);
        ASSERT_TRUE(want && got) << to_string(want ? got.errors() : want.errors());
        EXPECT_LT(largest_error(*got, *want), 1e-3) << c.name << ", " << target << ", " << n << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace quernel::testing
