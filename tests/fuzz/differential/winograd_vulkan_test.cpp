// Winograd's algorithm on GPUs: the graph of transforms and products against the convolution, in the
// interpreter and on the machine's Vulkan device.
#include <algorithm>
#include <cmath>

#include "graph/passes/passes.h"
#include "on_vulkan.h"
#include "schedule/target_passes/target_passes.h"
#include "winograd_graphs.h"

namespace quernel::testing {
namespace {

int count_of(const Graph& graph, OpKind op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.op == op; }));
}

Graph marked(const WinogradCase& c, int tile) {
  Expected<Graph> graph = parse_graph(winograd_text(c, tile));
  EXPECT_TRUE(graph) << to_string(graph.errors());
  return *graph;
}

class WinogradTiles : public ::testing::TestWithParam<int> {};

// Convolutions of groups and those without two dims to slide over stay as they stand.
TEST_P(WinogradTiles, expanded_equals_the_convolution) {
  Target target = *find_target("vulkan");
  for (const WinogradCase& c : kWinogradCases) {
    Graph graph = marked(c, GetParam());
    Expected<Graph> expanded = schedule::choose_winograd(graph, target);
    ASSERT_TRUE(expanded) << to_string(expanded.errors());
    int times = c.groups == 1 && c.h * c.w > 1 ? 1 : 0;
    EXPECT_EQ(count_of(*expanded, OpKind::k_winograd_input), times) << print(*expanded, 8);
    EXPECT_EQ(count_of(*expanded, OpKind::k_winograd_output), times);
    std::vector<Tensor> inputs = random_inputs(graph, 3);
    Expected<std::vector<Tensor>> want = interpret(graph, inputs), got = interpret(*expanded, inputs);
    ASSERT_TRUE(want && got);
    EXPECT_LT(largest_error(*got, *want), GetParam() == 2 ? 1e-6 : 3e-6) << print(*expanded, 8);
  }
}

// The algorithm amplifies what rounding changes in weights: bf16 is too coarse for those it transforms.
TEST_P(WinogradTiles, weights_are_stored_in_halves_but_not_in_bf16) {
  Graph graph = marked({1, 8, 8, 32, 32, 0, 0, 0, 0, false}, GetParam());
  Expected<Graph> expanded = schedule::choose_winograd(graph, *find_target("vulkan"));
  ASSERT_TRUE(expanded) << to_string(expanded.errors());
  for (auto [storage, stored] : {std::pair{DType::kF16, DType::kF16}, {DType::kBF16, DType::kF32}}) {
    Expected<Graph> narrow = narrow_weights(*expanded, storage);
    ASSERT_TRUE(narrow);
    for (const Node& node : narrow->nodes)
      if (node.op == OpKind::k_contract) {
        EXPECT_EQ(narrow->dtype(node.inputs[1]), stored);
      }
  }
}

TEST_P(WinogradTiles, on_a_device_equal_the_convolution) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  double worst = 0;
  for (const WinogradCase& c : kWinogradCases) {
    Graph graph = marked(c, GetParam());
    std::string messages;
    CompileOptions options;
    options.targets = {"vulkan"};
    qnl_vulkan_options vulkan = {};
    vulkan.validation = 2;
    vulkan.message_user = &messages;
    vulkan.message = [](void* user, const char* said) { *static_cast<std::string*>(user) += said; };
    std::vector<Tensor> inputs = random_inputs(graph, 3);
    Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    Expected<std::vector<Tensor>> want = interpret(graph, inputs), got = compiled->run(inputs);
    ASSERT_TRUE(want && got);
    double error = largest_error(*got, *want);
    worst = std::max(worst, error);
    EXPECT_LT(error, GetParam() == 2 ? 1e-6 : 3e-6) << print(graph, 8);
    EXPECT_EQ(messages, "") << "of the validation layers";
  }
  std::printf("largest error, as a share of the largest result: %.2g\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Tiles, WinogradTiles, ::testing::Values(2, 4), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace quernel::testing
