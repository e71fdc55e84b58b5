// The interpreter and the compiled result agree on random graphs, on every target this machine runs and on
// several threads. QUERNEL_FUZZ_SEEDS=FIRST:COUNT runs other seeds, for long runs by hand.
#include <gtest/gtest.h>

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
  EXPECT_EQ(differences(graph, *got, *want), "") << "seed " << seed << "\n" << print(graph, 64);
}

TEST(Differential, NativeTarget) {
  auto [first, count] = fuzz_seeds(500);
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed)
    compare(seed, {}, 1 + seed % 2);
}

TEST(Differential, EveryHostTarget) {
  auto [first, count] = fuzz_seeds(60);
  for (const std::string& name : host_targets()) {
    CompileOptions options;
    options.targets = {name};
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) compare(seed, options, 1);
  }
}

TEST(Differential, EveryPassDisabledInTurn) {
  auto [first, count] = fuzz_seeds(20);
  auto each = [&](std::string_view name) {
    CompileOptions options;
    options.disabled_passes = {std::string(name)};
    for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) compare(seed, options, 1);
  };
  for (std::string_view name : optional_passes()) each(name);
}

// An operand that is a constant only after folding, in windows whose plan depends on that.
TEST(Differential, OperandsThatFoldLateAreReadAsPlanned) {
  Expected<Graph> graph = parse_graph(R"(graph @main(%x: f32[17,7]) {
    %1 = pad %x [2:2, 0:0] reflect : f32[21,7]
    %2 = constant f32[] {1.5}
    %3 = reshape %2 : f32[1,1]
    %6 = cast %3 : f16[1,1]
    %4 = expand %6 : f16[21,2]
    %5 = contract %1, %4 axes(a: 21, b: 3 | c: 2) a[a, 2*b + c] b[a, c] out[a, b] acc f32 : f32[21,3]
    return y = %5
  })");
  ASSERT_TRUE(graph) << to_string(graph.errors());
  std::vector<Tensor> inputs = random_inputs(*graph, 1);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  CompileOptions options;
  options.disabled_passes = {"fold-constants"};
  Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1);
  ASSERT_TRUE(got) << to_string(got.errors());
  EXPECT_EQ(differences(*graph, *got, *want), "");
}

}  // namespace
}  // namespace quernel::testing
