// Networks whose weights are stored in f16 and bf16: the kernels compute what the interpreter computes with
// the rounded weights, and operands where the target multiplies bf16, and that is as near to the result of
// f32 as the rounding allows. Every target that this machine runs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "graph/interpret.h"
#include "graph/passes/passes.h"
#include "graph/text.h"
#include "host_targets.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"
#include "schedule/target_passes/target_passes.h"

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
      {"odd_sums",
       "graph @g(%x: f32[5,131]) {\n" + weights("w", "131,77", 131 * 77) +
           "  %y = contract %x, %w axes(m: 5, n: 77 | k: 131) a[m, k] b[k, n] out[m, n] acc f32 : "
           "f32[5,77]\n  return y = %y\n}\n"},
      {"padded",
       "graph @g(%x: f32[1,9,9,33]) {\n" + weights("w", "40,33,5,5", 40 * 33 * 25) +
           "  %p = pad %x [0:0, 2:2, 2:2, 0:0] fill 0 : f32[1,13,13,33]\n"
           "  %y = contract %p, %w axes(h: 5, w: 5, o: 40 | c: 33, i: 5, j: 5) a[0, 2*h + i, 2*w + j, c] "
           "b[o, c, i, j] out[0, h, w, o] acc f32 : f32[1,5,5,40]\n  return y = %y\n}\n"},
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

// Floats that neither f16 nor bf16 holds, rows of the table.
std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> inputs = random_inputs(graph, 3);
  for (Tensor& input : inputs) {
    if (input.dtype == DType::kI64) {
      input = i64_tensor({7}, {0, 299, 5, 17, 130, 1, 64});
    } else {
      std::vector<float> values(static_cast<size_t>(input.count()));
      std::memcpy(values.data(), input.bytes.data(), input.bytes.size());
      for (float& value : values) value *= 0.7F;
      input = f32_tensor(input.dims, values);
    }
  }
  return inputs;
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
    std::vector<Tensor> inputs = inputs_of(*graph);
    Expected<Graph> narrow = narrow_weights(*graph, GetParam());
    ASSERT_TRUE(narrow) << to_string(narrow.errors());
    Expected<std::vector<Tensor>> exact = interpret(*graph, inputs), want = interpret(*narrow, inputs);
    ASSERT_TRUE(exact && want);
    EXPECT_GT(largest_error(*want, *exact), 0) << "nothing was rounded";
    worst = std::max(worst, largest_error(*want, *exact));
    EXPECT_LT(largest_error(*want, *exact), bound);
    for (const std::string& target : host_targets()) {
      if (find_target(target)->multiplies(GetParam())) continue;
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

TEST(PrecisionOfProducts, rounds_both_operands_and_nothing_else) {
  std::string target = host_targets().back();
  if (!find_target(target)->multiplies(DType::kBF16)) GTEST_SKIP() << "this machine does not multiply bf16";
  for (const Network& network : networks()) {
    SCOPED_TRACE(network.name);
    Expected<Graph> graph = parse_graph(network.text);
    ASSERT_TRUE(graph) << to_string(graph.errors());
    std::vector<Tensor> inputs = inputs_of(*graph);
    CompileOptions options;
    options.targets = {target};
    options.precision = DType::kBF16;
    options.disabled_passes = {"choose-winograd"};
    Expected<Graph> weights = narrow_weights(*graph, DType::kBF16);
    ASSERT_TRUE(weights);
    Expected<Graph> operands = schedule::round_operands(*graph, *find_target(target), DType::kBF16);
    ASSERT_TRUE(operands);
    operands = narrow_weights(*fold_constants(*operands), DType::kBF16);  // a table that is also looked up
    ASSERT_TRUE(operands);
    Expected<std::vector<Tensor>> exact = interpret(*graph, inputs), narrow = interpret(*weights, inputs),
                                  want = interpret(*operands, inputs);
    ASSERT_TRUE(exact && narrow && want);
    Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1);
    ASSERT_TRUE(got) << to_string(got.errors());
    bool rounds = std::string(network.name) != "weights_first";  // whose sums go across the rows of x
    EXPECT_LT(largest_error(*got, rounds ? *want : *narrow), 1e-6);
    EXPECT_LT(largest_error(*got, *exact), 0x1p-8);
    if (rounds) {
      EXPECT_GT(largest_error(*got, *narrow), 1e-5) << "only weights were rounded";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, Precision, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const ::testing::TestParamInfo<DType>& info) {
                           return std::string(to_string(info.param));
                         });

}  // namespace
}  // namespace quernel::testing
