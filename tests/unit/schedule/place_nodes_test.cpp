// Which nodes run on the companion CPU.
#include <gtest/gtest.h>

#include <set>

#include "graph/interpret.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "random_graph/random_graph.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::schedule {
namespace {

Graph parsed(const std::string& text) {
  Expected<Graph> graph = parse_graph(text, "test");
  if (!graph) throw std::runtime_error(to_string(graph.errors()));
  return std::move(*graph);
}

const Target& target() {
  static const Target both = *find_target("vulkan/x86-64-v3");
  return both;
}

// Names of the values that the companion CPU computes, stretch by stretch.
std::vector<std::set<std::string>> on_companion(const Graph& graph) {
  std::vector<std::set<std::string>> stretches;
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::k_on_companion) continue;
    std::set<std::string>& names = stretches.emplace_back();
    const Graph& body = node.attributes.control->bodies[0];
    for (const Node& inner : body.nodes)
      if (inner.op != OpKind::k_constant) names.insert(body.values[inner.output].name);
  }
  return stretches;
}

using Stretches = std::vector<std::set<std::string>>;

const char kChain[] = R"(graph @main(%x: f32[4,8]) {
  %a = exp %x : f32[4,8]
  %b = neg %a : f32[4,8]
  %c = sqrt %a : f32[4,8]
  %d = add %b, %c : f32[4,8]
  return y = %d
}
)";

TEST(PlaceNodes, nodes_of_one_device_that_need_not_wait_are_one_stretch) {
  Expected<Graph> placed = place_nodes(parsed(kChain), target(), {{"*", false}, {"[bc]", true}});
  ASSERT_TRUE(placed) << to_string(placed.errors());
  EXPECT_EQ(on_companion(*placed), Stretches({{"b", "c"}}));
  placed = place_nodes(parsed(kChain), target(), {{"*", true}, {"[bc]", false}});
  ASSERT_TRUE(placed) << to_string(placed.errors());
  EXPECT_EQ(on_companion(*placed), Stretches({{"a"}, {"d"}}));
}

TEST(PlaceNodes, without_a_companion_nothing_moves) {
  Expected<Graph> placed = place_nodes(parsed(kChain), *find_target("vulkan"), {{"*", true}});
  ASSERT_TRUE(placed) << to_string(placed.errors());
  EXPECT_EQ(on_companion(*placed), Stretches());
}

const char* const kLarge = R"(graph @main(%x: f32[2048,2048], %w: f32[2048,2048]) {
  %a = contract %x, %w axes(m: 2048, n: 2048 | k: 2048) a[m, k] b[k, n] out[m, n] acc f32 : f32[2048,2048]
  %b = abs %a : f32[2048,2048]
  return y = %b
}
)";

// The same graphs on other devices: a profile's facts decide.
TEST(PlaceNodes, estimates_follow_the_facts_of_the_device) {
  Target near = target();
  near.flops_per_second = near.memory_bytes_per_second = near.transfer_bytes_per_second = 1e15;
  near.dispatch_seconds = near.transfer_seconds = 0;
  Expected<Graph> placed = place_nodes(parsed(kChain), near, {});
  ASSERT_TRUE(placed) << to_string(placed.errors());
  EXPECT_EQ(on_companion(*placed), Stretches());
  Target far = target();
  far.transfer_seconds = 10;
  placed = place_nodes(parsed(kLarge), far, {});
  ASSERT_TRUE(placed) << to_string(placed.errors());
  EXPECT_EQ(on_companion(*placed), Stretches({{"a", "b"}}));
}

TEST(PlaceNodes, a_loop_cannot_move_to_the_companion) {
  Graph loop = parsed(R"(symbol i min=0 max=3 runtime bound=3
graph @main(%x: f32[4]) {
  %l = loop %x carry 1 for i below 3 do (%v: f32[4]) {
    %1 = exp %v : f32[4]
    return v = %1
  }
  %r = result %l {0} : f32[4]
  return y = %r
}
)");
  Expected<Graph> placed = place_nodes(loop, target(), {{"l", true}});
  ASSERT_FALSE(placed);
  std::string text = to_string(placed.errors());
  EXPECT_NE(text.find("found a loop, a branch, a custom op or one whose size is found while the model runs"),
            std::string::npos)
      << text;
  EXPECT_TRUE(place_nodes(loop, target(), {}));
}

TEST(PlaceNodes, placed_graphs_compute_the_same_and_print) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Graph graph = random_graph(seed, {});
    std::vector<PlaceRule> rules;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (const Node& node = graph.nodes[n]; !gives_token(node.op) && node.op != OpKind::k_result)
        rules.push_back({graph.values[node.output].name, (seed * 7919 + n * 104729) % 3 == 0});
    Expected<Graph> placed = place_nodes(graph, target(), rules);
    ASSERT_TRUE(placed) << to_string(placed.errors());
    ASSERT_TRUE(verify(*placed, "place-nodes")) << print(*placed, 64);
    Expected<Graph> again = parse_graph(print(*placed, 0), "test");
    ASSERT_TRUE(again) << to_string(again.errors());
    EXPECT_EQ(print(*again, 0), print(*placed, 0));
    std::vector<Tensor> inputs = random_inputs(graph, seed);
    Expected<std::vector<Tensor>> want = interpret(graph, inputs), got = interpret(*placed, inputs);
    ASSERT_TRUE(want && got);
    for (size_t i = 0; i < want->size(); ++i) {
      ASSERT_EQ((*got)[i].bytes.size(), (*want)[i].bytes.size());
      EXPECT_TRUE(std::equal((*got)[i].bytes.data(), (*got)[i].bytes.data() + (*got)[i].bytes.size(),
                             (*want)[i].bytes.data()))
          << "seed " << seed << "\n"
          << print(*placed, 64);
    }
  }
}

}  // namespace
}  // namespace quernel::schedule
