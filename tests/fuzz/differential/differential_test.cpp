// The interpreter and the compiled result agree on random graphs, on every target this machine runs and on
// several threads. QUERNEL_FUZZ_SEEDS=FIRST:COUNT runs other seeds, for long runs by hand.
#include <gtest/gtest.h>

#include "graph/interpret.h"
#include "graph/text.h"
#include "host_targets.h"
#include "pipeline/pipeline.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

void compare(uint64_t seed, const CompileOptions& options, unsigned threads) {
  Graph graph = random_graph(seed, {});
  std::vector<Tensor> inputs = random_inputs(graph, seed);
  Expected<std::vector<Tensor>> want = interpret(graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, threads);
  ASSERT_TRUE(got) << "seed " << seed << ": " << to_string(got.errors()) << print(graph);
  EXPECT_EQ(differences(graph, *got, *want), "") << "seed " << seed << "\n" << print(graph, 64);
}

TEST(Differential, native_target) {
  auto [first, count] = fuzz_seeds(250);
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed)
    compare(seed, {}, 1 + seed % 2);
}

TEST(Differential, every_host_target) {
  auto [first, count] = fuzz_seeds(60);
  for (const std::string& name : host_targets()) {
    CompileOptions options;
    options.targets = {name};
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) compare(seed, options, 1);
  }
}

TEST(Differential, every_pass_disabled_in_turn) {
  auto [first, count] = fuzz_seeds(20);
  auto each = [&](std::string_view name) {
    CompileOptions options;
    options.disabled_passes = {std::string(name)};
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) compare(seed, options, 1);
  };
  for (std::string_view name : optional_passes()) each(name);
}

}  // namespace
}  // namespace quernel::testing
