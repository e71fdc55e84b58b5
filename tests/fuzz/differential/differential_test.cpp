// The interpreter and the compiled result agree on random graphs, on every target this machine runs and on
// several threads. QUERNEL_FUZZ_SEEDS=FIRST:COUNT runs other seeds, for long runs by hand.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "graph/interpret.h"
#include "graph/text.h"
#include "host_targets.h"
#include "pipeline.h"
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
  for (size_t i = 0; i < want->size(); ++i) {
    Tolerance t = tolerance_of(graph, graph.outputs[i].value);
    std::string problem = difference((*got)[i], (*want)[i], t.rtol, t.atol);
    EXPECT_EQ(problem, "") << "seed " << seed << " output " << graph.outputs[i].name << "\n"
                           << print(graph, 64);
  }
}

std::pair<uint64_t, uint64_t> seeds(uint64_t count) {
  unsigned long long first = 0, n = count;
  if (const char* text = std::getenv("QUERNEL_FUZZ_SEEDS")) std::sscanf(text, "%llu:%llu", &first, &n);
  return {first, n};
}

TEST(Differential, NativeTarget) {
  auto [first, count] = seeds(500);
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed)
    compare(seed, {}, 1 + seed % 2);
}

TEST(Differential, EveryHostTarget) {
  auto [first, count] = seeds(60);
  for (const std::string& name : host_targets()) {
    CompileOptions options;
    options.targets = {name};
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) compare(seed, options, 1);
  }
}

TEST(Differential, EveryPassDisabledInTurn) {
  auto [first, count] = seeds(20);
  auto each = [&](std::string_view name) {
    CompileOptions options;
    options.disabled_passes = {std::string(name)};
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) compare(seed, options, 1);
  };
  for (std::string_view name : optional_passes()) each(name);
}

}  // namespace
}  // namespace quernel::testing
