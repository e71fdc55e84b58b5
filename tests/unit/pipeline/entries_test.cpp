// Entry points of one model that read the same constants.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "pipeline/lower_variant.h"
#include "schedule/contraction/contraction_plan.h"

namespace quernel {
namespace {

// `rows` rows of floats by a quantised constant.
Graph product_of(const std::string& name, int64_t rows) {
  const std::string m = std::to_string(rows);
  Expected<Graph> graph = parse_graph(
      "graph @" + name + "(%x: f32[" + m + ",576]) {\n  %q = constant u4[3072,576] {5 ...}\n" +
      "  %s = constant f32[3072,18] {0.5 ...}\n  %w = dequantize %q, %s {1, 32} : f32[3072,576]\n" +
      "  %y = contract %x, %w axes(m: " + m + ", n: 3072 | k: 576) a[m, k] b[n, k] out[m, n] acc f32 : f32[" +
      m + ",3072]\n  return y = %y\n}\n");
  EXPECT_TRUE(graph) << to_string(graph.errors());
  return *graph;
}

// The tilings of the entries' products, and the vectors of their panels.
std::vector<std::pair<std::string, int>> plans_of(const std::vector<Graph>& graphs) {
  std::vector<std::pair<std::string, int>> plans;
  Expected<Lowered> lowered = lower_variant(graphs, *find_target("x86-64-v3"), {}, nullptr);
  EXPECT_TRUE(lowered) << to_string(lowered.errors());
  if (!lowered) return plans;
  for (const bundle::CompiledEntry& entry : lowered->variant.entries)
    for (const schedule::Group& group : entry.schedule.groups)
      if (group.contraction.blocks)
        plans.emplace_back(to_string(tiling_of(group.contraction)), group.contraction.panel_v);
  return plans;
}

// A token takes as long as reading the weights does, and a prompt adapts to their order, whichever comes first.
TEST(Entries, the_one_of_the_least_arithmetic_decides_how_constants_are_packed) {
  const Graph token = product_of("decode", 1), prompt = product_of("prefill", 64);
  const auto alone = plans_of({token}), of_prompt = plans_of({prompt}), first = plans_of({token, prompt}),
             last = plans_of({prompt, token});
  ASSERT_EQ(alone.size(), 1u);
  ASSERT_EQ(of_prompt.size(), 1u);
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(last.size(), 2u);
  ASSERT_NE(alone[0].second, of_prompt[0].second) << "the test needs products that prefer different panels";
  EXPECT_EQ(first[0], alone[0]);
  EXPECT_EQ(first[1].second, alone[0].second);
  EXPECT_EQ(last[0], first[1]) << "entries keep their order";
  EXPECT_EQ(last[1], first[0]);
}

}  // namespace
}  // namespace quernel
