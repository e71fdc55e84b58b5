// What the pass split-long-lines makes of lines that are too long to have constants of their size.
#include <gtest/gtest.h>

#include "graph/passes/passes.h"
#include "graph/text.h"

namespace quernel {
namespace {

// The elements of the largest constant after the pass, of a sort of all elements.
int64_t largest_constant(const std::string& type, const LongLines& limits) {
  std::string size = type.substr(type.find('['));
  Expected<Graph> graph = parse_graph("graph @g(%x: " + type + ") {\n  %y = argsort %x {0} : i64" + size +
                                      "\n  return y = %y\n}\n");
  EXPECT_TRUE(graph) << to_string(graph.errors());
  Expected<Graph> split = split_long_lines(*graph, limits);
  EXPECT_TRUE(split) << to_string(split.errors());
  EXPECT_GT(split->nodes.size(), 5u);  // the sort has become something else
  int64_t largest = 0;
  for (const Node& node : split->nodes)
    if (const Tensor* constant = split->constant(node.output)) largest = std::max(largest, constant->count());
  return largest;
}

TEST(SplitLongLines, constants_stay_small_beside_the_line) {
  const LongLines gpu{.by_bounds = true,
                      .longest = 8192,
                      .longest_sorted = 2048,
                      .block = 1024,
                      .arg_block = 1024,
                      .sorted_block = 2048,
                      .most_kept = 2048};
  const LongLines cpu{.longest = 1 << 16,
                      .longest_sorted = 1 << 18,
                      .block = 8192,
                      .arg_block = 8192,
                      .sorted_block = 1 << 17,
                      .most_kept = 16};
  EXPECT_LE(largest_constant("f32[268435456]", gpu), 1 << 20);
  EXPECT_LE(largest_constant("bool[1099511627776]", cpu), 1 << 20);
}

}  // namespace
}  // namespace quernel
