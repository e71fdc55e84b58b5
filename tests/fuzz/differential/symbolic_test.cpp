// Random graphs with symbols in their shapes: one graph, interpreted and compiled, at several values of the
// symbols.
#include <gtest/gtest.h>

#include "graph/interpret.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "pipeline/pipeline.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

void compare(uint64_t seed, const CompileOptions& options) {
  const Graph graph = random_symbolic_graph(seed);
  Status valid = verify(graph);
  ASSERT_TRUE(valid) << "seed " << seed << ": " << to_string(valid.errors()) << print(graph);
  Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, 1 + seed % 2);
  ASSERT_TRUE(compiled) << "seed " << seed << ": " << to_string(compiled.errors()) << print(graph);
  for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 2}, {7, 8}, {40, 32}, {33, 14}}) {
    std::vector<Tensor> inputs = random_inputs_at(graph, {{"n", n}, {"m", m}}, seed);
    Expected<std::vector<Tensor>> want = interpret(graph, inputs, {{"n", n}, {"m", m}});
    ASSERT_TRUE(want) << "seed " << seed << ": " << to_string(want.errors()) << print(graph);
    Expected<std::vector<Tensor>> got = compiled->run(inputs);
    ASSERT_TRUE(got) << "seed " << seed << ": " << to_string(got.errors()) << print(graph);
    for (size_t i = 0; i < want->size(); ++i)
      ASSERT_EQ(difference((*got)[i], (*want)[i], 0, 0), "")
          << "seed " << seed << ", n " << n << ", m " << m << ", output " << graph.outputs[i].name << "\n"
          << print(graph, 64);
  }
}

TEST(Symbolic, native_target) {
  for (uint64_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) compare(seed, {});
}

// No masks, other vector lengths.
TEST(Symbolic, baseline_target) {
  CompileOptions options;
  options.targets = {"x86-64"};
  for (uint64_t seed = 1; seed <= 60 && !HasFatalFailure(); ++seed) compare(seed, options);
}

TEST(Symbolic, every_graph_pass_disabled_in_turn) {
  for (const GraphPass& pass : graph_passes()) {
    if (!pass.optional) continue;
    CompileOptions options;
    options.disabled_passes = {std::string(pass.name)};
    for (uint64_t seed = 1; seed <= 8 && !HasFatalFailure(); ++seed) compare(seed, options);
  }
}

}  // namespace
}  // namespace quernel::testing
