// Graphs on the machine's Vulkan device against the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "graph/text.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {

// Seeds of QUERNEL_FUZZ_SEEDS=FIRST:COUNT.
inline void for_each_seed(unsigned long long count, const std::function<void(uint64_t seed)>& run) {
  unsigned long long first = 0;
  if (const char* text = std::getenv("QUERNEL_FUZZ_SEEDS")) std::sscanf(text, "%llu:%llu", &first, &count);
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFatalFailure(); ++seed) run(seed);
}

inline void check(uint64_t seed, const Graph& graph, const CompileOptions& options,
                  const qnl_vulkan_options& vulkan) {
  std::vector<Tensor> inputs = random_inputs(graph, seed);
  Expected<std::vector<Tensor>> want = interpret(graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, 1, {}, &vulkan);
  ASSERT_TRUE(compiled) << "seed " << seed << ": " << to_string(compiled.errors()) << print(graph);
  Expected<std::vector<Tensor>> got = compiled->run(inputs);
  ASSERT_TRUE(got) << "seed " << seed << ": " << to_string(got.errors()) << print(graph);
  for (size_t i = 0; i < want->size(); ++i) {
    Tolerance t = tolerance_of(graph, graph.outputs[i].value);
    EXPECT_EQ(difference((*got)[i], (*want)[i], t.rtol, t.atol), "")
        << "seed " << seed << " output " << graph.outputs[i].name << "\n"
        << print(graph, 64);
  }
}

inline bool has_device(std::string* why) {
  qnl_error error = {};
  Device device;
  bool has = device.open_vulkan(nullptr, &error) == QNL_OK;
  *why = error.text;
  return has;
}

}  // namespace quernel::testing
