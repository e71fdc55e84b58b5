// form-byte-tables on chains that are longer than models have.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/build.h"
#include "graph/passes/passes.h"

namespace quernel {
namespace {

int64_t count(const Graph& graph, OpKind op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.op == op; });
}

TEST(ByteTables, a_chain_too_long_for_a_table_stays) {
  Graph graph;
  GraphBuilder build(graph);
  ValueId v = build.cast(graph.add_input("x", {DType::kU8, {4}}), DType::kF32);
  for (int i = 0; i < 20'000; ++i) v = build.unary(UnaryOp::k_neg, v);
  graph.outputs.push_back({"y", build.cast(v, DType::kU8)});
  Expected<Graph> result = form_byte_tables(graph);
  ASSERT_TRUE(result) << to_string(result.errors());
  EXPECT_EQ(count(*result, OpKind::k_take), 0);
  EXPECT_EQ(count(*result, OpKind::k_neg), 20'000);
}

TEST(ByteTables, one_table_replaces_chains_behind_each_other) {
  Graph graph;
  GraphBuilder build(graph);
  ValueId v = graph.add_input("x", {DType::kU8, {4}});
  for (int i = 0; i < 1'000; ++i) {
    v = build.cast(v, DType::kF32);
    for (UnaryOp op : {UnaryOp::k_sqrt, UnaryOp::k_exp, UnaryOp::k_sin, UnaryOp::k_abs})
      v = build.unary(op, v);
    v = build.cast(v, DType::kU8);
  }
  graph.outputs.push_back({"y", v});
  Expected<Graph> formed = form_byte_tables(graph);
  ASSERT_TRUE(formed) << to_string(formed.errors());
  Expected<Graph> result = eliminate_dead_nodes(*formed);
  ASSERT_TRUE(result) << to_string(result.errors());
  // Each replaces some twenty of them, the last of which is computed in floats.
  EXPECT_GT(count(*result, OpKind::k_take), 10);
  EXPECT_LT(count(*result, OpKind::k_take), 100);
  EXPECT_LT(count(*result, OpKind::k_exp), 100);
}

}  // namespace
}  // namespace quernel
