// What a pass was given when it broke an invariant is written as a golden test, which can be read back.
#include "pipeline/reproducer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/text.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "pipeline/run_passes.h"
#include "support/temporary_directory.h"

namespace quernel {
namespace {

const char* const kGraph = R"(graph @main(%x: f32[4]) {
  %1 = neg %x : f32[4]
  return y = %1
}
)";

const GraphPass kSpoilsTypes = {"spoil-types", "", [](const Graph& graph, auto&&...) -> Expected<Graph> {
                                  Graph spoiled = graph;
                                  spoiled.values.back().type.dtype = DType::kI64;
                                  return spoiled;
                                }};
const GraphPass kBreaks = {"break", "", [](const Graph& graph, auto&&...) -> Expected<Graph> {
                             QUERNEL_ASSERT(graph.nodes.empty());
                             return graph;
                           }};

Graph parsed(const std::string& text) {
  Expected<Graph> graph = parse_graph(text, "test");
  EXPECT_TRUE(graph) << to_string(graph.errors());
  return *std::move(graph);
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// What stands between "# input" and "# expect".
std::string input_of(const std::string& test) {
  size_t from = test.find("# input\n") + 8;
  return test.substr(from, test.find("# expect\n") - from);
}

Status run(const GraphPass& pass, const std::string& dir, const std::string& text = kGraph) {
  CompileOptions options;
  options.verify_each = true;
  options.dump_dir = dir;
  Dump none("");
  Expected<Graph> result = run_passes({&pass}, parsed(text), *find_target("x86-64"), options, none);
  return result ? Status() : Status(result.errors());
}

TEST(Reproducers, a_result_that_is_refused_leaves_one) {
  TemporaryDirectory folder;
  EXPECT_FALSE(run(kSpoilsTypes, folder.path()));
  std::string test = read(folder.path() + "/quernel-spoil-types.test");
  EXPECT_EQ(test.find("# pass: spoil-types\n# target: x86-64\n"), 0u) << test;
  EXPECT_EQ(print(parsed(input_of(test))), print(parsed(kGraph)));
}

TEST(Reproducers, a_broken_invariant_leaves_one) {
  TemporaryDirectory folder;
  EXPECT_DEATH((void)run(kBreaks, folder.path()), "broken invariant.*\n.*wrote '.*/quernel-break.test'");
  EXPECT_EQ(input_of(read(folder.path() + "/quernel-break.test")), print(parsed(kGraph)));
}

TEST(Reproducers, an_error_of_the_model_leaves_none) {
  const GraphPass refuses = {
      "refuse", "", [](const Graph&, auto&&...) -> Expected<Graph> { return unsupported("not this one"); }};
  TemporaryDirectory folder;
  EXPECT_FALSE(run(refuses, folder.path()));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Reproducers, hold_no_weights) {
  std::string text = "graph @main(%x: f32[1000]) {\n  %w = constant f32[1000] {";
  for (int i = 0; i < 1000; ++i) text += (i == 0 ? "" : ", ") + std::to_string(i);
  text += "}\n  %1 = mul %x, %w : f32[1000]\n  return y = %1\n}\n";
  std::string test = graph_reproducer("stage", "lower", parsed(text), *find_target("cortex-m4"));
  EXPECT_NE(test.find("%w = constant f32[1000] {0 ...}"), std::string::npos) << test;
  EXPECT_LT(test.size(), 500u);
}

TEST(Reproducers, kernels_can_be_read_back) {
  const std::string kernel = "kernel @k {\n  buffer %y: f32[1] write binding 0\n  %y[0] = 1f32\n}\n";
  Expected<std::vector<loop::Kernel>> kernels = loop::parse_kernels(kernel, "test");
  ASSERT_TRUE(kernels) << to_string(kernels.errors());
  EXPECT_EQ(input_of(loop_reproducer("simplify", (*kernels)[0].name, loop::to_string((*kernels)[0]))),
            kernel);
}

TEST(Reproducers, of_generated_code_have_a_case_for_each_kernel) {
  const std::string kernel = "kernel @k {\n  buffer %y: f32[1] write binding 0\n  %y[0] = 1f32\n}\n";
  Expected<std::vector<loop::Kernel>> kernels = loop::parse_kernels(kernel, "test");
  ASSERT_TRUE(kernels) << to_string(kernels.errors());
  EXPECT_EQ(code_reproducer(*kernels, "glsl", "vulkan"),
            "# Reproduces an internal error.\n\n# case: k\n# input\n" + kernel + "# glsl vulkan\n");
  EXPECT_NE(code_reproducer(*kernels, "llvm", "x86-64").find("# llvm x86-64\n"), std::string::npos);
}

}  // namespace
}  // namespace quernel
