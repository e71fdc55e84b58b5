#include <gmock/gmock.h>

#include "graph_testing.h"
#include "random_graph/random_graph.h"

namespace quernel {
namespace {

using testing::ElementsAre;

std::vector<double> contract(const std::string& a, const std::string& b, const std::string& rest) {
  return values(evaluate("%a = constant " + a + "\n%b = constant " + b + "\n%y = contract %a, %b " + rest +
                         "\nreturn y = %y"));
}

// ---- seed traps ----
TEST(SeedTraps, contract_matmul) {
  EXPECT_THAT(contract("f32[2,3] {1, 2, 3, 4, 5, 6}", "f32[3,2] {1, 2, 3, 4, 5, 6}",
                       "axes(m: 2, n: 2 | k: 3) a[m, k] b[k, n] out[m, n] acc f32 : f32[2,2]"),
              ElementsAre(22, 28, 49, 64));
}

TEST(InterpretContract, transposed_and_batched) {
  EXPECT_THAT(contract("f32[2,3] {1, 2, 3, 4, 5, 6}", "f32[2,3] {1, 0, 0, 0, 1, 1}",
                       "axes(m: 2, n: 2 | k: 3) a[m, k] b[n, k] out[n, m] acc f32 : f32[2,2]"),
              ElementsAre(1, 4, 5, 11));
  EXPECT_THAT(
      contract("f32[2,1,2] {1, 2, 3, 4}", "f32[2,2,1] {1, 1, 10, 1}",
               "axes(b: 2, m: 1, n: 1 | k: 2) a[b, m, k] b[b, k, n] out[b, m, n] acc f32 : f32[2,1,1]"),
      ElementsAre(3, 34));
}

TEST(InterpretContract, strided_dilated_grouped_convolution) {
  EXPECT_THAT(contract("f32[1,1,7] {1, 2, 3, 4, 5, 6, 7}", "f32[1,1,2] {1, 10}",
                       "axes(n: 1, o: 1, x: 3 | c: 1, r: 2) a[n, c, 2*x + 2*r] b[o, c, r] out[n, o, x] acc "
                       "f32 : f32[1,1,3]"),
              ElementsAre(31, 53, 75));
  // Two groups of one channel: the output's channels are a mixed radix of group and channel.
  EXPECT_THAT(contract("f32[1,2,2] {1, 2, 3, 4}", "f32[4,1,1] {1, 10, 100, 1000}",
                       "axes(n: 1, g: 2, o: 2, x: 2 | c: 1, r: 1) a[n, g + c, x + r] b[2*g + o, c, r] out[n, "
                       "2*g + o, x] acc f32 : f32[1,4,2]"),
              ElementsAre(1, 2, 10, 20, 300, 400, 3000, 4000));
}

TEST(InterpretContract, accumulates_in_its_own_dtype) {
  EXPECT_THAT(contract("i8[1,3] {127, 127, 127}", "i8[3,1] {127, 127, 127}",
                       "axes(m: 1, n: 1 | k: 3) a[m, k] b[k, n] out[m, n] acc i32 : i32[1,1]"),
              ElementsAre(48387));
  EXPECT_THAT(contract("f16[1,3] {2048, 1, 1}", "f16[3,1] {1, 1, 1}",
                       "axes(m: 1, n: 1 | k: 3) a[m, k] b[k, n] out[m, n] acc f32 : f16[1,1]"),
              ElementsAre(2050));
  EXPECT_THAT(
      contract("i64[1] {9223372036854775807}", "i64[1] {2}", "axes(| k: 1) a[k] b[k] out[] acc i64 : i64[]"),
      ElementsAre(-2));
}

TEST(InterpretContract, empty_axes) {
  EXPECT_THAT(contract("f32[2,0] {}", "f32[0,2] {}",
                       "axes(m: 2, n: 2 | k: 0) a[m, k] b[k, n] out[m, n] acc f32 : f32[2,2]"),
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(contract("f32[0,2] {}", "f32[2,2] {1 ...}",
                       "axes(m: 0, n: 2 | k: 2) a[m, k] b[k, n] out[m, n] acc f32 : f32[0,2]"),
              ElementsAre());
}

// The blocked loops against the definition, point by point.
TEST(InterpretContract, agrees_with_the_definition) {
  int checked = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Graph graph = random_graph(seed);
    for (const Node& node : graph.nodes) {
      if (node.op != OpKind::k_contract || graph.dtype(node.inputs[0]) != DType::kF32) continue;
      Graph single;
      ValueId a = single.add_input("a", graph.type(node.inputs[0])),
              b = single.add_input("b", graph.type(node.inputs[1]));
      Expected<ValueId> y = single.add(node.op, {a, b}, node.attributes);
      ASSERT_TRUE(y);
      single.outputs = {{"y", *y}};
      std::vector<Tensor> inputs = random_inputs(single, seed);
      Tensor found = run(single, inputs)[0];
      const Contraction& c = node.attributes.contraction;
      std::vector<double> expected(static_cast<size_t>(found.count()), 0);
      std::vector<int64_t> point(c.axes.size(), 0);
      auto at = [&](const std::vector<IndexExpr>& map, const std::vector<int64_t>& dims) {
        int64_t offset = 0;
        for (size_t d = 0; d < dims.size(); ++d) offset = offset * dims[d] + evaluate(map[d], point.data());
        return offset;
      };
      bool empty = false;
      for (const auto& axis : c.axes) empty |= axis.extent == Dim(0);
      for (bool done = empty; !done;) {
        expected[static_cast<size_t>(at(c.out, found.dims))] +=
            element_as_f64(inputs[0], at(c.a, inputs[0].dims)) *
            element_as_f64(inputs[1], at(c.b, inputs[1].dims));
        size_t i = c.axes.size();
        for (; i > 0; --i) {
          if (++point[i - 1] < c.axes[i - 1].extent.value()) break;
          point[i - 1] = 0;
        }
        done = i == 0;
      }
      EXPECT_EQ(values(found), expected) << print(single);
      ++checked;
    }
  }
  EXPECT_GT(checked, 50);
}

}  // namespace
}  // namespace quernel
