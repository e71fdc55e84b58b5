// Random graphs as compute shaders on the machine's Vulkan device against the interpreter.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "graph/text.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

TEST(Vulkan, RandomGraphs) {
  qnl_error error = {};
  Device device;
  if (device.open_vulkan(nullptr, &error) != QNL_OK) GTEST_SKIP() << error.text;
  unsigned long long first = 0, count = 60;
  if (const char* text = std::getenv("QUERNEL_FUZZ_SEEDS")) std::sscanf(text, "%llu:%llu", &first, &count);
  CompileOptions options;
  options.targets = {"vulkan"};
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    Graph graph = random_graph(seed, {});
    std::vector<Tensor> inputs = random_inputs(graph, seed);
    Expected<std::vector<Tensor>> want = interpret(graph, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, 1);
    ASSERT_TRUE(got) << "seed " << seed << ": " << to_string(got.errors()) << print(graph);
    for (size_t i = 0; i < want->size(); ++i) {
      Tolerance t = tolerance_of(graph, graph.outputs[i].value);
      EXPECT_EQ(difference((*got)[i], (*want)[i], t.rtol, t.atol), "")
          << "seed " << seed << " output " << graph.outputs[i].name << "\n"
          << print(graph, 64);
    }
  }
}

}  // namespace
}  // namespace quernel::testing
