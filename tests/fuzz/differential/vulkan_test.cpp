// Random graphs as compute shaders on the machine's Vulkan device, alone and beside the processor, against
// the interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "graph/text.h"
#include "on_vulkan.h"
#include "schemas/kernel_abi.h"

namespace quernel::testing {
namespace {

TEST(Vulkan, random_graphs) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  CompileOptions base, more;
  base.targets = {"vulkan"};
  more.targets = {"vulkan", "vulkan+subgroups", "vulkan+subgroups+float16"};  // what the device has
  for_each_seed(60, [&](uint64_t seed) { check(seed, random_graph(seed, {}), seed % 2 ? more : base, {}); });
}

// Each node on one of the two by chance; every other graph as if the GPU had memory of its own.
TEST(Vulkan, random_placements) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  for_each_seed(40, [](uint64_t seed) {
    Graph graph = random_graph(seed, {});
    CompileOptions options;
    options.targets = {"vulkan/native"};
    std::mt19937_64 random(seed);
    for (const Node& node : graph.nodes)
      if (!is_control(node.op) && !gives_token(node.op) && node.op != OpKind::k_result)
        options.place.push_back({graph.values[node.output].name, random() % 2 == 0});
    qnl_vulkan_options vulkan = {};
    vulkan.copy_always = seed % 2;
    check(seed, graph, options, vulkan);
  });
}

// Of every combination of signs, by a device that has the instruction and by one that has not.
TEST(Vulkan, products_of_bytes) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  CompileOptions options;
  options.targets = {"vulkan", "vulkan+dotprod"};
  constexpr int kRows = 13, kColumns = 21;
  for (const char* signs : {"i8 i8", "u8 u8", "u8 i8", "i8 u8"})
    for (int depth : {64, 35}) {
      std::string a(signs, 2), b(signs + 3, 2), k = std::to_string(depth), weights;
      for (int i = 0; i < depth * kColumns; ++i)
        weights += (i ? ", " : "") + std::to_string(i * 7919 % 256 - (b == "i8" ? 128 : 0));
      Expected<Graph> graph = parse_graph(
          fmt::format("graph @g(%x: {}[{},{}]) {{\n  %w = constant {}[{},{}] {{{}}}\n"
                      "  %y = contract %x, %w axes(m: {}, n: {} | k: {}) a[m, k] b[k, n] out[m, n] acc i32 "
                      ": i32[{},{}]\n  return y = %y\n}}\n",
                      a, kRows, k, b, k, kColumns, weights, kRows, kColumns, k, kRows, kColumns),
          "test");
      ASSERT_TRUE(graph) << to_string(graph.errors());
      for (uint64_t without : {uint64_t{0}, QNL_SPIRV_DOTPROD}) {
        SCOPED_TRACE(fmt::format("{}, depth {}, without {}", signs, depth, without));
        qnl_vulkan_options vulkan = {};
        vulkan.feature_mask = ~without;
        check(static_cast<uint64_t>(depth), *graph, options, vulkan);
      }
    }
}

// What the processor reads and writes is copied once each, and nothing else but inputs and outputs.
TEST(Vulkan, a_placed_node_moves_what_it_reads_and_writes) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  Expected<Graph> graph = parse_graph(
      "graph @main(%x: f32[64,32]) {\n"
      "  %a = exp %x : f32[64,32]\n"
      "  %b = reduce_sum %a {1} acc f32 : f32[64]\n"
      "  %c = sqrt %b : f32[64]\n"
      "  return y = %c\n"
      "}\n",
      "test");
  ASSERT_TRUE(graph) << to_string(graph.errors());
  CompileOptions options;
  options.targets = {"vulkan/native"};
  options.place = {{"[ac]", false}, {"b", true}};
  qnl_vulkan_options vulkan = {};
  vulkan.copy_always = 1;
  Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 1, {}, &vulkan);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  std::vector<Tensor> inputs = random_inputs(*graph, 1);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs), first = compiled->run(inputs);
  ASSERT_TRUE(want && first);
  std::vector<std::string> seen;
  auto hook = [](void* user, const qnl_trace_event* event) {
    auto& list = *static_cast<std::vector<std::string>*>(user);
    switch (event->kind) {
      case QNL_TRACE_ITEM:
        return list.push_back(event->on_queue != 0 ? "GPU" : "processor");
      case QNL_TRACE_SUBMIT:
        return list.push_back("submit");
      case QNL_TRACE_UPLOAD:
      case QNL_TRACE_DOWNLOAD:
        if (event->on_queue != 0)
          list.push_back((event->kind == QNL_TRACE_UPLOAD ? "up " : "down ") + std::to_string(event->bytes));
        return;
      default:
        return;
    }
  };
  qnl_device_set_trace(compiled->device().get(), hook, &seen);
  Expected<std::vector<Tensor>> got = compiled->run(inputs);
  qnl_device_set_trace(compiled->device().get(), nullptr, nullptr);
  ASSERT_TRUE(got) << to_string(got.errors());
  EXPECT_EQ(difference((*got)[0], (*want)[0], 1e-5, 1e-6), "");
  std::sort(seen.begin(), seen.end());
  std::vector<std::string> expected = {"GPU",    "GPU",    "down 256", "down 8192", "processor",
                                       "submit", "submit", "submit",   "up 256",    "up 8192"};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace quernel::testing
