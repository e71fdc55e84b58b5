// Properties of passes that no single golden case shows: time linear in the graph's size, and sizes of what
// is folded.
#include <gmock/gmock.h>

#include <chrono>
#include <numeric>

#include "graph/build.h"
#include "graph/passes/passes.h"
#include "graph_testing.h"

namespace quernel {
namespace {

constexpr Expected<Graph> (*kAllPasses[])(const Graph&) = {
    canonicalize_movement,
    compose_views,
    eliminate_dead_nodes,
    fold_constants,
    fold_scales_into_contractions,
    [](const Graph& graph) { return form_integer_contractions(graph, DType::kU8); },
    merge_common_subexpressions,
    simplify_algebra};

template <class Step>
Graph chain(int length, Step step) {
  Graph graph;
  GraphBuilder build(graph);
  ValueId v = graph.add_input("x", {DType::kF32, {4, 4}});
  for (int i = 0; i < length; ++i) v = step(build, v, i);
  EXPECT_TRUE(build.ok()) << to_string(build.take_status().errors());
  graph.outputs.push_back({"y", v});
  return graph;
}

template <class Step>
void expect_linear(Step step) {
  Graph graph = chain(10000, step);
  for (auto pass : kAllPasses) {
    auto start = std::chrono::steady_clock::now();
    Expected<Graph> result = pass(graph);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(result) << to_string(result.errors());
    EXPECT_LT(seconds, 5);  // well under a second; sanitizers and a busy machine take longer
  }
}

// ---- seed traps ----
TEST(SeedTraps, deep_chain) {
  expect_linear([](GraphBuilder& b, ValueId v, int i) {
    return i % 2 ? b.unary(UnaryOp::k_exp, v) : b.binary(BinaryOp::k_add, v, v);
  });
  expect_linear([](GraphBuilder& b, ValueId v, int) { return b.permute(v, {1, 0}); });
  expect_linear([](GraphBuilder& b, ValueId v, int i) {
    return i % 2 ? b.flip(v, {0}) : b.permute(v, {1, 0});
  });
  expect_linear([](GraphBuilder& b, ValueId v, int i) {
    return b.binary(i % 2 ? BinaryOp::k_mul : BinaryOp::k_add, v, 1.5);
  });
  expect_linear([](GraphBuilder& b, ValueId v, int i) {
    return b.reshape(v, i % 2 ? Shape{4, 4} : Shape{16});
  });
  expect_linear(
      [](GraphBuilder& b, ValueId v, int i) { return b.unary(i % 3 ? UnaryOp::k_neg : UnaryOp::k_abs, v); });
  expect_linear([](GraphBuilder& b, ValueId v, int) {
    ValueId row = b.slice(v, {0, 0}, {1, 4});
    return b.slice(b.cat({row, v}, 0), {0, 0}, {4, 4});
  });
}

TEST(SeedTraps, deep_chain_of_constants) {
  Graph graph;
  GraphBuilder build(graph);
  ValueId v = build.full(DType::kF32, {4}, 1);
  for (int i = 0; i < 10000; ++i) v = build.binary(BinaryOp::k_add, v, 1);
  graph.outputs.push_back({"y", v});
  Expected<Graph> folded = fold_constants(graph);
  ASSERT_TRUE(folded);
  EXPECT_LE(folded->nodes.size(), 2u);
  EXPECT_THAT(values(run(*folded)[0]), testing::Each(10001.0));
}

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes) bytes += static_cast<int64_t>(node.attributes.tensor.bytes.size());
  return bytes;
}

TEST(FoldConstants, keeps_large_broadcasts_small) {
  Graph graph = graph_of(R"(graph @g(%x: f32[1,64,512,512]) {
    %s = constant f32[1,64,1,1] {2 ...}
    %b = expand %s : f32[1,64,512,512]
    %c = mul %b, %b : f32[1,64,512,512]
    %p = permute %c {0, 2, 3, 1} : f32[1,512,512,64]
    %q = permute %p {0, 3, 1, 2} : f32[1,64,512,512]
    %y = add %x, %q : f32[1,64,512,512]
    return y = %y
  })");
  Expected<Graph> folded = fold_constants(graph);
  ASSERT_TRUE(folded) << to_string(folded.errors());
  EXPECT_EQ(constant_bytes(*folded), 64 * 4);
  EXPECT_EQ(folded->nodes.size(), 3u) << print(*folded);
}

// A value of 1 MB that doubles again and again.
Graph doubled_again_and_again() {
  Graph graph;
  GraphBuilder build(graph);
  std::vector<float> elements(1 << 18);
  std::iota(elements.begin(), elements.end(), 0.0f);
  ValueId v = build.constant(f32_tensor({1 << 18}, elements));
  for (int i = 0; i < 8; ++i) v = build.cat({v, v}, 0);
  graph.outputs.push_back({"y", v});
  return graph;
}

TEST(FoldConstants, one_limit_over_all_calls) {
  Graph graph = doubled_again_and_again();
  FoldBudget budget;
  for (int call = 0; call < 4; ++call) {
    Expected<Graph> folded = fold_constants(graph, budget);
    ASSERT_TRUE(folded) << to_string(folded.errors());
    graph = std::move(*folded);
    EXPECT_LE(constant_bytes(graph), int64_t{128} << 20) << "call " << call;
    EXPECT_GE(constant_bytes(graph), int64_t{32} << 20);
  }
}

TEST(FoldConstants, a_limit_lifted) {
  Graph graph = doubled_again_and_again();
  FoldBudget budget;
  budget.left = INT64_MAX;
  Expected<Graph> folded = fold_constants(graph, budget);
  ASSERT_TRUE(folded) << to_string(folded.errors());
  EXPECT_EQ(folded->nodes.size(), 1u);
}

TEST(FoldConstants, a_slice_of_all_is_no_copy) {
  Graph graph;
  GraphBuilder build(graph);
  const ValueId whole = build.constant(f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6}));
  graph.outputs.push_back({"y", build.slice(whole, {0, 0}, {2, 3})});
  graph.outputs.push_back({"z", build.slice(whole, {0, 0}, {2, 3}, {1, 2})});
  Expected<Graph> folded = fold_constants(graph);
  ASSERT_TRUE(folded) << to_string(folded.errors());
  const Tensor &y = *folded->constant(folded->outputs[0].value),
               &z = *folded->constant(folded->outputs[1].value);
  EXPECT_EQ(y.bytes.data(), graph.constant(whole)->bytes.data());
  EXPECT_EQ(z.dims, (std::vector<int64_t>{2, 2}));
}

TEST(FoldConstants, rows_by_columns_stay_small) {
  constexpr int64_t kCount = 40000;
  std::vector<float> elements(kCount);
  std::iota(elements.begin(), elements.end(), 0.0f);
  Graph graph;
  GraphBuilder build(graph);
  ValueId rows = build.broadcast_to(build.constant(f32_tensor({kCount, 1}, elements)), {kCount, kCount});
  ValueId columns = build.broadcast_to(build.constant(f32_tensor({1, kCount}, elements)), {kCount, kCount});
  graph.outputs.push_back({"y", build.binary(BinaryOp::k_mul, rows, columns)});
  Expected<Graph> folded = fold_constants(graph);
  ASSERT_TRUE(folded) << to_string(folded.errors());
  EXPECT_EQ(constant_bytes(*folded), 2 * kCount * 4);
}

TEST(FoldConstants, weights_made_of_one_element_become_data) {
  Graph graph = graph_of(R"(graph @g(%x: f32[1,8]) {
    %s = constant f32[1,1] {0.5}
    %w = expand %s : f32[8,4]
    %y = contract %x, %w axes(m: 1, n: 4 | k: 8) a[m, k] b[k, n] out[m, n] acc f32 : f32[1,4]
    return y = %y
  })");
  Expected<Graph> folded = fold_constants(graph);
  ASSERT_TRUE(folded);
  const Node& contract = folded->nodes.back();
  ASSERT_EQ(contract.op, OpKind::k_contract);
  ASSERT_NE(folded->constant(contract.inputs[1]), nullptr);
  EXPECT_EQ(folded->constant(contract.inputs[1])->count(), 32);
}

}  // namespace
}  // namespace quernel
