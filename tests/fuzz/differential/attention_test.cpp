// Attention kernels against the interpreter: sizes with and without tails, masks, several batches and heads,
// orders of dims, every target that this machine runs, one and two threads. Each graph of 16 rows or more
// must have become such a kernel; of fewer, the rows may be what vectors hold.
#include <gtest/gtest.h>

#include "attention_graphs.h"
#include "graph/interpret.h"
#include "on_host_targets.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

TEST(Attention, equals_the_interpreter) {
  const AttentionCase cases[] = {
      {1, 2, 16, 16, 8, 16, false, false},
      {1, 12, 128, 128, 64, 64, true, false},
      {2, 3, 50, 33, 20, 7, true, false},
      {1, 1, 197, 197, 16, 24, false, false},
      {3, 2, 7, 100, 32, 48, true, true},
      {1, 4, 2, 17, 3, 5, false, true},
      {1, 2, 300, 2000, 4, 8, false, true},
      {1, 1, 40, 1024, 8, 256, true, false},
      {2, 2, 21, 40, 16, 16, true, false, true, false},
      {1, 2, 33, 40, 16, 16, true, true, false, true},
  };
  for (const AttentionCase& c : cases) {
    Expected<Graph> graph = parse_graph(attention_text(c));
    ASSERT_TRUE(graph) << to_string(graph.errors()) << attention_text(c);
    std::map<std::string, int64_t> sizes;
    if (c.free_batch) sizes["B"] = c.batch;
    if (c.free_rows) sizes["N"] = c.rows;
    std::vector<Tensor> inputs = random_inputs_at(*graph, sizes, 3);
    Expected<std::vector<Tensor>> want = interpret(*graph, inputs, sizes);
    ASSERT_TRUE(want) << to_string(want.errors());
    for (const std::string& target : host_targets()) {
      if (c.rows >= 16) {
        EXPECT_EQ(kernels_of(*graph, find_target(target)), std::vector<std::string>{"attention"})
            << c.rows << "x" << c.keys;
      }
      expect_on_target(*graph, inputs, *want, target, 1e-5, 1e-6,
                       std::to_string(c.rows) + "x" + std::to_string(c.keys) + "x" + std::to_string(c.depth));
    }
  }
}

}  // namespace
}  // namespace quernel::testing
