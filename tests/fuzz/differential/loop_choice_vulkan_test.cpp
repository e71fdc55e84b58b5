// Kernels over elements on the machine's Vulkan device, with each of their legal choices, against the interpreter.
#include "loop_choices.h"
#include "on_vulkan.h"

namespace quernel::testing {
namespace {

void check_all(uint64_t seed, const Graph& graph) {
  CompileOptions options;
  options.targets = {"vulkan"};
  for_each_choice_file(graph, options, [&](const CompileOptions& chosen, const std::string& text) {
    SCOPED_TRACE(text);
    check(seed, graph, chosen, {});
  });
}

TEST(VulkanLoopChoices, of_maps_and_reductions) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  for (const char* text :
       {"graph @g(%x: f32[2,40,30]) {\n  %t = view %x [d0, d2, d1] : f32[2,30,40]\n  %y = exp %t : "
        "f32[2,30,40]\n"
        "  return y = %y\n}\n",
        "graph @g(%x: f32[5,130,18]) {\n  %y = reduce_sum %x {1} acc f32 : f32[5,18]\n  return y = %y\n}\n",
        "graph @g(%x: f32[5,3,180]) {\n  %y = reduce_max %x {2} : f32[5,3]\n  %i = reduce_argmax %x {1} : "
        "i64[5,180]\n"
        "  return y = %y, i = %i\n}\n",
        "graph @g(%x: f32[70,9,30]) {\n  %y = scan_sum %x {1} acc f32 : f32[70,9,30]\n  return y = "
        "%y\n}\n"}) {
    Expected<Graph> graph = parse_graph(text);
    ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
    check_all(3, *graph);
  }
}

TEST(VulkanLoopChoices, of_random_graphs) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  for_each_seed(12, [](uint64_t seed) { check_all(seed, random_graph(seed, {})); });
}

}  // namespace
}  // namespace quernel::testing
