// Networks whose weights are stored in f16 and bf16: the kernels compute what the interpreter computes with
// the rounded weights, and that is as near to the result of f32 as the rounding allows. Every target that
// this machine runs.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/interpret.h"
#include "graph/passes/passes.h"
#include "graph/text.h"
#include "host_targets.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

std::string weights(const std::string& name, const std::string& dims, int64_t count) {
  std::string text = "  %" + name + " = constant f32[" + dims + "] {";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(static_cast<double>(i * 7919 % 2003 - 1001) / 1000);
  return text + "}\n";
}

struct Network {
  const char* name;
  std::string text;
};

std::vector<Network> networks() {
  return {
      {"one_row",
       "graph @g(%x: f32[1,160]) {\n" + weights("w", "160,130", 160 * 130) +
           "  %y = contract %x, %w axes(m: 1, n: 130 | k: 160) a[m, k] b[k, n] out[m, n] acc f32 : "
           "f32[1,130]\n  return y = %y\n}\n"},
      {"rows", "graph @g(%x: f32[37,160]) {\n" + weights("w", "130,160", 160 * 130) +
                   "  %y = contract %x, %w axes(m: 37, n: 130 | k: 160) a[m, k] b[n, k] out[m, n] acc f32 : "
                   "f32[37,130]\n  return y = %y\n}\n"},
      {"weights_first",
       "graph @g(%x: f32[160,5]) {\n" + weights("w", "130,160", 160 * 130) +
           "  %y = contract %w, %x axes(m: 130, n: 5 | k: 160) a[m, k] b[k, n] out[m, n] acc f32 : "
           "f32[130,5]\n  return y = %y\n}\n"},
      {"tied_embedding",
       "graph @g(%x: f32[2,64], %i: i64[7]) {\n" + weights("w", "300,64", 300 * 64) +
           "  %e = take %w, %i {0} : f32[7,64]\n"
           "  %y = contract %x, %w axes(m: 2, n: 300 | k: 64) a[m, k] b[n, k] out[m, n] acc f32 : "
           "f32[2,300]\n  return e = %e, y = %y\n}\n"},
      {"convolution",
       "graph @g(%x: f32[1,10,10,48]) {\n" + weights("w", "40,48,3,3", 40 * 48 * 9) +
           "  %y = contract %x, %w axes(h: 8, w: 8, o: 40 | c: 48, i: 3, j: 3) a[0, h + i, w + j, c] "
           "b[o, c, i, j] out[0, h, w, o] acc f32 : f32[1,8,8,40]\n  return y = %y\n}\n"},
  };
}

class Precision : public ::testing::TestWithParam<DType> {};

TEST_P(Precision, rounds_the_weights_and_nothing_else) {
  // Of a weight, rounded to 11 or 8 bits, up to 2^-12 or 2^-9 is lost; of these results, half as much again.
  const bool f16 = GetParam() == DType::kF16;
  double bound = f16 ? 0x1.8p-12 : 0x1.8p-9, worst = 0;
  for (const Network& network : networks()) {
    SCOPED_TRACE(network.name);
    Expected<Graph> graph = parse_graph(network.text);
    ASSERT_TRUE(graph) << to_string(graph.errors());
    std::vector<Tensor> inputs = random_inputs(*graph, 3);
    for (Tensor& input : inputs)
      if (input.dtype == DType::kI64) input = i64_tensor({7}, {0, 299, 5, 17, 130, 1, 64});
    Expected<Graph> narrow = narrow_weights(*graph, GetParam());
    ASSERT_TRUE(narrow) << to_string(narrow.errors());
    Expected<std::vector<Tensor>> exact = interpret(*graph, inputs), want = interpret(*narrow, inputs);
    ASSERT_TRUE(exact && want);
    EXPECT_GT(largest_error(*want, *exact), 0) << "nothing was rounded";
    worst = std::max(worst, largest_error(*want, *exact));
    EXPECT_LT(largest_error(*want, *exact), bound);
    for (const std::string& target : host_targets()) {
      CompileOptions options;
      options.targets = {target};
      options.precision = GetParam();
      Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1);
      ASSERT_TRUE(got) << to_string(got.errors());
      if (std::string(network.name) != "convolution") {
        EXPECT_LT(largest_error(*got, *want), 1e-6) << target;
      } else if (f16) {  // Winograd's algorithm rounds what it makes of the weights, too: 1.6e-3 was measured
        EXPECT_LT(largest_error(*got, *exact), 3e-3) << target;
      } else {  // it leaves them alone
        EXPECT_LT(largest_error(*got, *exact), 3e-6) << target;
      }
    }
  }
  std::printf("largest error, as a share of the largest result: %.2g\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Storage, Precision, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const ::testing::TestParamInfo<DType>& info) {
                           return std::string(to_string(info.param));
                         });

}  // namespace
}  // namespace quernel::testing
