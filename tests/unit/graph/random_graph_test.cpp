// Every graph pass on random graphs: results before and after must be the same bits, but for the pass that
// associates products anew.
#include <set>

#include "graph/passes/passes.h"
#include "graph_testing.h"
#include "random_graph/random_graph.h"

namespace quernel {
namespace {

constexpr uint64_t kGraphs = 500;

void expect_same_results(Expected<Graph> (*pass)(const Graph&), double tolerance,
                         const RandomGraphOptions& options = {}) {
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Graph before = random_graph(seed, options);
    Expected<Graph> after = pass(before);
    ASSERT_TRUE(after) << to_string(after.errors()) << print(before);
    Status status = verify(*after);
    ASSERT_TRUE(status) << to_string(status.errors()) << print(before) << print(*after);
    std::vector<Tensor> inputs = random_inputs(before, seed), expected = run(before, inputs),
                        found = run(*after, inputs);
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_TRUE(same_tensor(expected[i], found[i], tolerance))
          << "output " << before.outputs[i].name << "\n"
          << print(before) << print(*after);
  }
}

TEST(RandomGraphs, are_valid_and_varied) {
  std::set<OpKind> ops;
  std::set<DType> dtypes;
  std::set<size_t> ranks;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    Graph graph = random_graph(seed);
    Status status = verify(graph);
    ASSERT_TRUE(status) << to_string(status.errors()) << print(graph);
    for (const Node& node : graph.nodes) ops.insert(node.op);
    for (const Value& value : graph.values)
      dtypes.insert(value.type.dtype), ranks.insert(value.type.shape.size());
  }
  std::string missing;
  for (int op = 0; op <= static_cast<int>(OpKind::k_scatter_nd); ++op)
    if (!ops.contains(static_cast<OpKind>(op)))
      missing += " " + std::string(to_string(static_cast<OpKind>(op)));
  EXPECT_EQ(missing, "");
  for (int dtype = 0; dtype <= static_cast<int>(DType::kBool); ++dtype)
    EXPECT_TRUE(dtypes.contains(static_cast<DType>(dtype))) << to_string(static_cast<DType>(dtype));
  for (size_t rank = 0; rank <= 5; ++rank) EXPECT_TRUE(ranks.contains(rank)) << rank;
}

TEST(RandomGraphs, same_seed_same_graph) {
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(print(random_graph(seed)), print(random_graph(seed)));
}

// No infinities and NaNs, which would make comparisons with a tolerance meaningless.
TEST(RandomGraphs, stay_finite) {
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    Graph graph = random_graph(seed);
    for (const Tensor& output : run(graph, random_inputs(graph, seed)))
      for (double v : values(output))
        ASSERT_TRUE(std::isfinite(v)) << "seed " << seed << "\n" << print(graph);
  }
}

TEST(RandomGraphs, eliminate_dead_nodes) { expect_same_results(eliminate_dead_nodes, 0); }
TEST(RandomGraphs, split_long_contractions) {
  auto pass = [](const Graph& graph) {
    return split_long_contractions(
        graph, {.most_terms = 3, .part_terms = 2, .longest_shared = 2, .few_results = 4, .least_shared = 1});
  };
  expect_same_results(pass, 1e-4);
}
TEST(RandomGraphs, split_long_reductions) {
  auto pass = [](const Graph& graph) {
    return split_long_reductions(graph, {.least_shared = 8,
                                         .enough_workgroups = 1 << 10,
                                         .part_work = 4,
                                         .fewest_terms = 3,
                                         .most_terms = 8,
                                         .most_work = 16,
                                         .most_together = 4,
                                         .longest_row = 4});
  };
  expect_same_results(pass, 1e-4);
}
TEST(RandomGraphs, split_long_scatters) {
  auto pass = [](const Graph& graph) {
    return split_long_scatters(graph, {.longest = 2, .part = 1, .free_parts = 3, .most_results = 1 << 10});
  };
  expect_same_results(pass, 1e-4);
}
TEST(RandomGraphs, fold_constants) { expect_same_results(fold_constants, 0); }
TEST(RandomGraphs, merge_common_subexpressions) { expect_same_results(merge_common_subexpressions, 0); }
TEST(RandomGraphs, simplify_algebra) { expect_same_results(simplify_algebra, 0); }
TEST(RandomGraphs, canonicalize_movement) { expect_same_results(canonicalize_movement, 0); }
TEST(RandomGraphs, compose_views) { expect_same_results(compose_views, 0); }

// Scales move across sums, so that half floats would lose more than a bound could state.
TEST(RandomGraphs, fold_scales_into_contractions) {
  RandomGraphOptions options;
  options.half_floats = false;
  options.transcendentals = false;
  expect_same_results(fold_scales_into_contractions, 1e-4, options);
}

TEST(RandomGraphs, form_integer_contractions) {
  expect_same_results([](const Graph& graph) { return form_integer_contractions(graph, std::nullopt); },
                      1e-5);
  expect_same_results([](const Graph& graph) { return form_integer_contractions(graph, DType::kU8); }, 1e-5);
  expect_same_results([](const Graph& graph) { return form_integer_contractions(graph, DType::kI8); }, 1e-5);
}

TEST(RandomGraphs, all_passes_in_a_row) {
  auto all = [](const Graph& graph) -> Expected<Graph> {
    QUERNEL_TRY(Graph a, fold_constants(graph));
    QUERNEL_TRY(Graph b, simplify_algebra(a));
    QUERNEL_TRY(Graph c, canonicalize_movement(b));
    QUERNEL_TRY(Graph d, merge_common_subexpressions(c));
    QUERNEL_TRY(Graph e, fold_constants(d));
    QUERNEL_TRY(Graph f, compose_views(e));
    return eliminate_dead_nodes(f);
  };
  expect_same_results(all, 0);
}

}  // namespace
}  // namespace quernel
