// Graphs on the machine's Vulkan device against the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "graph/text.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {

inline void for_each_seed(uint64_t how_many, const std::function<void(uint64_t seed)>& run) {
  auto [first, count] = fuzz_seeds(how_many);
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
  EXPECT_EQ(differences(graph, *got, *want), "") << "seed " << seed << "\n" << print(graph, 64);
}

inline bool has_device(std::string* why) {
  qnl_error error = {};
  Device device;
  bool has = device.open_vulkan(nullptr, &error) == QNL_OK;
  *why = error.text;
  return has;
}

// Whether there is a device that has the features, QNL_SPIRV_*.
inline bool has_features(uint64_t features) {
  Device device;
  qnl_error error = {};
  if (device.open_vulkan(nullptr, &error) != QNL_OK) return false;
  qnl_device_info info;
  qnl_device_get_info(device.get(), &info);
  return (info.features & features) == features;
}

}  // namespace quernel::testing
