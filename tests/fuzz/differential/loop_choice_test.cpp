// Kernels over elements give the interpreter's results with each of their legal choices: axes, tiles, windows, work
// per workgroup.
#include "loop_choices.h"
#include "on_host_targets.h"

namespace quernel::testing {
namespace {

void compare_all(const Graph& graph, const std::vector<Tensor>& inputs, const CompileOptions& options) {
  Expected<std::vector<Tensor>> want = interpret(graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  for_each_choice_file(graph, options, [&](const CompileOptions& chosen, const std::string& text) {
    Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, chosen, 1 + text.size() % 2);
    ASSERT_TRUE(got) << to_string(got.errors()) << text << print(graph, 8);
    EXPECT_EQ(differences(graph, *got, *want), "") << text << print(graph, 8);
  });
}

void compare_all_on_host_targets(const std::string& text) {
  Expected<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
  for (const std::string& name : host_targets()) {
    CompileOptions options;
    options.targets = {name};
    compare_all(*graph, random_inputs(*graph, 3), options);
  }
}

TEST(LoopChoices, of_transposed_operands) {
  for (auto [h, w] : {std::pair<int64_t, int64_t>{40, 3}, {16, 32}, {20, 56}, {33, 45}}) {
    std::string in = "f32[2," + std::to_string(h) + "," + std::to_string(w) + "]",
                out = "f32[2," + std::to_string(w) + "," + std::to_string(h) + "]";
    compare_all_on_host_targets("graph @g(%x: " + in + ", %r: " + out +
                                ") {\n  %t = view %x [d0, d2, d1] : " + out + "\n  %e = exp %t : " + out +
                                "\n  %y = mul %e, %r : " + out + "\n  return y = %y\n}\n");
  }
}

TEST(LoopChoices, of_borders_and_repetitions) {
  for (const char* mode : {"reflect", "edge"})
    compare_all_on_host_targets("graph @g(%x: f32[3,7,20]) {\n  %p = pad %x [0:0, 2:1, 3:2] " +
                                std::string(mode) + " : f32[3,10,25]\n  %y = exp %p : f32[3,10,25]\n" +
                                "  return y = %y\n}\n");
  compare_all_on_host_targets(
      "graph @g(%x: f32[3,16], %r: f32[3,80]) {\n  %v = view %x [d0, d2] : f32[3,5,16]\n  %f = reshape %v : "
      "f32[3,80]\n  %y = add %f, %r : f32[3,80]\n  return y = %y\n}\n");
}

TEST(LoopChoices, of_reductions) {
  for (const char* reduced : {"{0}", "{1}", "{2}", "{0, 2}", "{1, 2}", "{0, 1, 2}"})
    compare_all_on_host_targets(
        "graph @g(%x: f32[5,33,18]) {\n  %e = exp %x : f32[5,33,18]\n  %y = reduce_sum %e " +
        std::string(reduced) + " keepdims acc f32 : f32[" +
        (std::string(reduced).find('0') == std::string::npos ? "5," : "1,") +
        (std::string(reduced).find('1') == std::string::npos ? "33," : "1,") +
        (std::string(reduced).find('2') == std::string::npos ? "18]" : "1]") + "\n  return y = %y\n}\n");
  for (auto [axis, shape] : {std::pair<const char*, const char*>{"0", "33,18"}, {"1", "5,18"}, {"2", "5,33"}})
    compare_all_on_host_targets("graph @g(%x: f32[5,33,18]) {\n  %y = reduce_argmax %x {" +
                                std::string(axis) + "} : i64[" + shape + "]\n  return y = %y\n}\n");
}

TEST(LoopChoices, of_windows) {
  for (int64_t step : {1, 2})
    for (int64_t width : {12, 60}) {
      std::string x = std::to_string(width), w = std::to_string((width - 1) / step + 1),
                  s = std::to_string(step);
      std::string at = s + "*d2 + d4 + -1", out = "f32[2,4," + w;
      compare_all_on_host_targets("graph @g(%x: f32[2,9," + x + "]) {\n  %v = view %x [d0, 2*d1 + d3, " + at +
                                  "] if 0 <= " + at + " < " + x + " fill -inf : " + out +
                                  ",3,3]\n  %y = reduce_max %v {3, 4} : " + out + "]\n  return y = %y\n}\n");
    }
}

TEST(LoopChoices, of_scans_sorts_and_scatters) {
  compare_all_on_host_targets(
      "graph @g(%x: f32[6,9,30], %i: i64[6,9,30]) {\n"
      "  %a = scan_sum %x {1} acc f32 : f32[6,9,30]\n"
      "  %b = scan_max %x {2} : f32[6,9,30]\n"
      "  %c = argsort %x {2} : i64[6,9,30]\n"
      "  %d = cat %x, %a {0} : f32[12,9,30]\n"
      "  return a = %a, b = %b, c = %c, d = %d\n}\n");
}

TEST(LoopChoices, of_random_graphs) {
  auto [first, count] = fuzz_seeds(30);
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    Graph graph = random_graph(seed, {});
    SCOPED_TRACE(seed);
    CompileOptions options;
    options.targets = {host_targets()[seed % host_targets().size()]};
    compare_all(graph, random_inputs(graph, seed), options);
  }
}

}  // namespace
}  // namespace quernel::testing
