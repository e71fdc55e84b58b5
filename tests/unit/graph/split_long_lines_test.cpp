// What the pass split-long-lines makes of lines that are too long to have constants of their size.
#include <gtest/gtest.h>

#include "graph/passes/passes.h"
#include "graph/text.h"

namespace quernel {
namespace {

TEST(SplitLongLines, constants_stay_small_beside_the_line) {
  Expected<Graph> graph = parse_graph(
      "graph @g(%x: f32[268435456]) {\n  %y = argsort %x {0} : i64[268435456]\n  return y = %y\n}\n");
  ASSERT_TRUE(graph) << to_string(graph.errors());
  Expected<Graph> split = split_long_lines(*graph, {.by_bounds = true,
                                                    .longest = 8192,
                                                    .longest_sorted = 2048,
                                                    .block = 1024,
                                                    .arg_block = 1024,
                                                    .sorted_block = 2048,
                                                    .most_kept = 2048});
  ASSERT_TRUE(split) << to_string(split.errors());
  EXPECT_GT(split->nodes.size(), 100u);  // it is sorted by merging blocks
  int64_t largest = 0;
  for (const Node& node : split->nodes)
    if (const Tensor* constant = split->constant(node.output)) largest = std::max(largest, constant->count());
  EXPECT_LE(largest, 1 << 20);
}

}  // namespace
}  // namespace quernel
