// Graphs in strips of rows compute the same to the bit, or are refused.
#include "graph/strips.h"

#include <algorithm>
#include <random>

#include "graph/multiply_adds.h"
#include "graph/passes/passes.h"
#include "graph_testing.h"

namespace quernel {
namespace {

// A strided convolution of a padded image, a residual connection around a pointwise one, and pooling windows.
const char* const kNetwork =
    R"(graph @net(%x: i8[1,13,6,3], %w1: i8[4,3,3,3], %w2: i8[4,4], %b: i32[1,1,1,4]) {
  %z = constant i8[1,1,1,1] {5}
  %c1 = expand %z : i8[1,13,1,3]
  %c2 = cat %c1, %x, %c1 {2} : i8[1,13,8,3]
  %r1 = expand %z : i8[1,1,8,3]
  %r2 = cat %r1, %c2, %r1 {1} : i8[1,15,8,3]
  %s1 = contract %r2, %w1 axes(y: 7, x: 3, o: 4 | ky: 3, kx: 3, c: 3) a[0, 2*y + ky, 2*x + kx, c] b[o, ky, kx, c] out[0, y, x, o] acc i32 : i32[1,7,3,4]
  %b1 = expand %b : i32[1,7,3,4]
  %s2 = add %s1, %b1 : i32[1,7,3,4]
  %k = constant i32[1,1,1,1] {6}
  %k1 = expand %k : i32[1,7,3,4]
  %s3 = shr %s2, %k1 : i32[1,7,3,4]
  %q = cast %s3 : i8[1,7,3,4]
  %s4 = contract %q, %w2 axes(y: 7, x: 3, o: 4 | c: 4) a[0, y, x, c] b[o, c] out[0, y, x, o] acc i32 : i32[1,7,3,4]
  %s5 = shr %s4, %k1 : i32[1,7,3,4]
  %q1 = cast %q : i32[1,7,3,4]
  %s6 = add %s5, %q1 : i32[1,7,3,4]
  %t = cast %s6 : i8[1,7,3,4]
  %v = view %t [d0, 2*d1 + d3, d2 + d4, d5] : i8[1,3,2,2,2,4]
  %m = reduce_max %v {3, 4} : i8[1,3,2,4]
  %n = permute %m {0, 2, 1, 3} : i8[1,2,3,4]
  return n = %n
}
)";

ValueId named(const Graph& graph, const std::string& name) {
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].name == name) return static_cast<ValueId>(v);
  ADD_FAILURE() << name;
  return kNoValue;
}

std::vector<Tensor> random_inputs(const Graph& graph) {
  std::mt19937 random(7);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    std::vector<int64_t> dims = static_dims(graph.shape(v));
    std::vector<uint8_t> bytes(
        static_cast<size_t>(byte_size(graph.dtype(v), element_count(graph.shape(v)).value())));
    for (size_t i = 0; i < bytes.size(); ++i)
      store_i64(DType::kI8, bytes.data(), static_cast<int64_t>(i),
                static_cast<int64_t>(random() % 256) - 128);
    inputs.push_back(Tensor{graph.dtype(v), dims, Bytes::own(std::move(bytes))});
  }
  return inputs;
}

std::optional<Graph> in_strips(const Graph& graph, const std::string& first, const std::string& last,
                               int64_t count, size_t dim = 1) {
  std::optional<Graph> result =
      compute_in_strips(graph, {named(graph, first), named(graph, last), dim, count});
  if (!result) return result;
  Expected<Graph> live = eliminate_dead_nodes(*result);
  if (!live) return std::nullopt;
  return std::move(*live);
}

using Run = std::tuple<const char*, const char*, int>;
class StripsOf : public testing::TestWithParam<Run> {};

TEST_P(StripsOf, compute_the_same) {
  const auto& [first, last, count] = GetParam();
  const Graph graph = graph_of(kNetwork);
  const std::optional<Graph> strips = in_strips(graph, first, last, count);
  ASSERT_TRUE(strips);
  Status valid = verify(*strips);
  ASSERT_TRUE(valid) << to_string(valid.errors()) << print(*strips);
  const std::vector<Tensor> inputs = random_inputs(graph);
  EXPECT_TRUE(same_tensor(run(graph, inputs)[0], run(*strips, inputs)[0])) << print(*strips);
  auto values_of = [](const Graph& g, OpKind op) {
    return std::count_if(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return n.op == op; });
  };
  EXPECT_GE(values_of(*strips, OpKind::k_cast), values_of(graph, OpKind::k_cast) + count - 1)
      << "each strip has casts of its own:\n"
      << print(*strips);
}
INSTANTIATE_TEST_SUITE_P(Network, StripsOf,
                         testing::Values(Run("x", "m", 2), Run("x", "m", 3), Run("x", "t", 2),
                                         Run("x", "t", 3), Run("x", "t", 7), Run("c2", "q", 4),
                                         Run("q", "t", 2), Run("q", "m", 3), Run("s2", "m", 3),
                                         Run("r2", "t", 5)));

TEST(Strips, rows_are_followed_through_permutations) {
  const Graph graph = graph_of(kNetwork);
  for (size_t dim : {1, 2}) {
    const std::optional<Graph> strips = in_strips(graph, "x", "n", 2, dim);
    ASSERT_TRUE(strips) << dim;
    const std::vector<Tensor> inputs = random_inputs(graph);
    EXPECT_TRUE(same_tensor(run(graph, inputs)[0], run(*strips, inputs)[0])) << print(*strips);
  }
}

TEST(Strips, shared_rows_of_windows_are_computed_in_each) {
  const Graph graph = graph_of(kNetwork);
  const std::optional<Graph> pooled = in_strips(graph, "x", "m", 3),
                             pointwise = in_strips(graph, "q", "t", 7);
  ASSERT_TRUE(pooled && pointwise);
  EXPECT_EQ(multiply_adds(*pointwise), multiply_adds(graph)) << "no rows are shared";
  EXPECT_EQ(multiply_adds(*pooled).value(), multiply_adds(graph).value() * 6 / 7)
      << "the last row is not pooled";
}

TEST(Strips, what_is_used_elsewhere_or_has_no_rows_is_refused) {
  const Graph graph = graph_of(kNetwork);
  EXPECT_FALSE(in_strips(graph, "x", "t", 2, 3)) << "weights are not cut";
  EXPECT_FALSE(in_strips(graph, "x", "t", 8)) << "seven rows";
  EXPECT_FALSE(in_strips(graph, "x", "t", 1));
  EXPECT_TRUE(in_strips(graph, "s4", "m", 2)) << "q is read beside it, a strip at a time";
  EXPECT_FALSE(in_strips(graph, "m", "t", 2)) << "in the wrong order";
  std::string two = kNetwork;
  two.replace(two.find("return n = %n"), 13, "return n = %n, q = %q");
  EXPECT_FALSE(in_strips(graph_of(two), "x", "t", 2)) << "q is an output";
  EXPECT_TRUE(in_strips(graph_of(two), "q", "t", 2));
}

TEST(Strips, sums_over_rows_are_refused) {
  const Graph graph = graph_of(R"(graph @sums(%x: i32[1,6,4]) {
  %y = reduce_sum %x {1} keepdims acc i32 : i32[1,1,4]
  %z = expand %y : i32[1,6,4]
  %s = add %x, %z : i32[1,6,4]
  return s = %s
}
)");
  EXPECT_FALSE(in_strips(graph, "x", "s", 2));
}

}  // namespace
}  // namespace quernel
