// Sums of very many f32 terms, reduced and contracted, on every target that this machine runs: within the
// bound of compiler/lower/README.md, and the same bits with one thread and with two.
#include <gtest/gtest.h>

#include "host_targets.h"
#include "long_sums.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

class LongSums : public ::testing::TestWithParam<std::string> {};

TEST_P(LongSums, are_within_the_bound) {
  static const AllSums cases[] = {AllSums(Terms::kTenths), AllSums(Terms::kMixed)};
  CompileOptions options;
  options.targets = {GetParam()};
  Expected<CompiledGraph> one = CompiledGraph::make(cases[0].all, options, 1),
                          two = CompiledGraph::make(cases[0].all, options, 2);
  ASSERT_TRUE(one) << to_string(one.errors());
  ASSERT_TRUE(two) << to_string(two.errors());
  for (const AllSums& c : cases) {
    Expected<std::vector<Tensor>> got = one->run(c.inputs), same = two->run(c.inputs);
    ASSERT_TRUE(got && same);
    c.expect(*got);
    for (size_t i = 0; i < got->size(); ++i)
      EXPECT_EQ(difference((*same)[i], (*got)[i], 0, 0), "") << kSumCases[i].name << ", two threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, LongSums, ::testing::ValuesIn(host_targets()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// A known answer, from no interpreter: 2^20 times 0.1f is a float.
TEST(LongSum, of_tenths_is_known) {
  const int64_t n = 1 << 20;
  const Graph graph = graph_of({"",
                                "graph @g(%x: f32[1048576]) {\n  %y = reduce_sum %x {0} acc f32 : f32[]\n"
                                "  return y = %y\n}\n"});
  std::vector<Tensor> inputs{f32_tensor({n}, std::vector<float>(n, 0.1f))};
  Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, {}, 2), want = interpret(graph, inputs);
  ASSERT_TRUE(got && want);
  const float exact = 0.1f * 1048576;
  EXPECT_EQ((*want)[0].at<float>(0), exact);
  EXPECT_NEAR((*got)[0].at<float>(0), exact, exact * 1e-5);
}

}  // namespace
}  // namespace quernel::testing
