// Convolutions that slide over each channel by itself, channels first, against the interpreter: steps,
// windows and borders of several kinds, rows shorter and longer than vectors, every target that this machine
// runs, one and two threads.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/interpret.h"
#include "graph/text.h"
#include "host_targets.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

struct Case {
  int64_t n, channels, h, w;  // of the output
  int64_t window[2], step[2], dilation[2];
  int64_t top, left, bottom, right;  // padding
  bool epilogue = false;
};

std::string text_of(const Case& c) {
  auto s = [](int64_t v) { return std::to_string(v); };
  auto shape = [&](int64_t h, int64_t w) {
    return "f32[" + s(c.n) + "," + s(c.channels) + "," + s(h) + "," + s(w) + "]";
  };
  int64_t h = (c.h - 1) * c.step[0] + (c.window[0] - 1) * c.dilation[0] + 1;
  int64_t w = (c.w - 1) * c.step[1] + (c.window[1] - 1) * c.dilation[1] + 1;
  std::string image = shape(h - c.top - c.bottom, w - c.left - c.right), out = shape(c.h, c.w), values;
  for (int64_t i = 0; i < c.channels * c.window[0] * c.window[1]; ++i)
    values += (i ? ", " : "") + std::to_string(static_cast<double>(i * 7919 % 23 - 11) / 10);
  return "graph @g(%x: " + image + ", %r: " + out + ") {\n" +  //
         "  %p = pad %x [0:0, 0:0, " + s(c.top) + ":" + s(c.bottom) + ", " + s(c.left) + ":" + s(c.right) +
         "] fill 0 : " + shape(h, w) + "\n" +  //
         "  %w = constant f32[" + s(c.channels) + "," + s(c.window[0]) + "," + s(c.window[1]) + "] {" +
         values + "}\n" +  //
         "  %y = contract %p, %w axes(n: " + s(c.n) + ", c: " + s(c.channels) + ", y: " + s(c.h) +
         ", x: " + s(c.w) + " | i: " + s(c.window[0]) + ", j: " + s(c.window[1]) + ") a[n, c, " +
         s(c.step[0]) + "*y + " + s(c.dilation[0]) + "*i, " + s(c.step[1]) + "*x + " + s(c.dilation[1]) +
         "*j] b[c, i, j] out[n, c, y, x] acc f32 : " + out + "\n" +  //
         (c.epilogue ? "  %z = add %y, %r : " + out + "\n  return z = %z\n}\n" : "  return y = %y\n}\n");
}

TEST(Depthwise, equals_the_interpreter) {
  const Case cases[] = {
      {1, 5, 7, 7, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1, true},
      {1, 3, 14, 14, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1},
      {2, 4, 28, 28, {3, 3}, {2, 2}, {1, 1}, 0, 0, 1, 1, true},
      {1, 3, 56, 61, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1},
      {2, 3, 30, 100, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 3, 9, 33, {5, 5}, {2, 2}, {1, 1}, 2, 2, 2, 2, true},
      {1, 2, 19, 20, {5, 5}, {1, 1}, {2, 2}, 4, 4, 4, 4},
      {3, 2, 6, 5, {3, 3}, {2, 2}, {2, 2}, 2, 2, 2, 2},
      {1, 3, 11, 17, {7, 7}, {3, 3}, {1, 1}, 3, 3, 3, 3},
      {1, 2, 5, 21, {3, 3}, {4, 4}, {1, 1}, 0, 0, 0, 0},
      {1, 2, 5, 21, {3, 3}, {5, 5}, {1, 1}, 1, 1, 1, 1},
      {1, 2, 12, 40, {1, 3}, {1, 2}, {1, 1}, 0, 1, 0, 1},
      {1, 2, 12, 23, {3, 1}, {2, 3}, {1, 1}, 1, 0, 1, 0},
      {1, 2, 8, 1, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 2, 8, 2, {3, 3}, {2, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 2, 3, 9, {9, 9}, {1, 1}, {1, 1}, 5, 4, 5, 4},
      {1, 1, 3, 40, {3, 3}, {1, 1}, {1, 1}, 1, 19, 1, 18},
      {4, 3, 2, 12, {3, 3}, {2, 2}, {3, 3}, 3, 3, 3, 3, true},
  };
  double worst = 0;
  for (const Case& c : cases) {
    Expected<Graph> graph = parse_graph(text_of(c));
    ASSERT_TRUE(graph) << to_string(graph.errors());
    std::vector<Tensor> inputs = random_inputs(*graph, 3);
    Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    for (const std::string& target : host_targets())
      for (unsigned threads : {1u, 2u}) {
        CompileOptions options;
        options.targets = {target};
        Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, threads);
        ASSERT_TRUE(got) << to_string(got.errors());
        double error = 0, scale = 0;
        for (int64_t e = 0; e < want->front().count(); ++e) {
          double w = element_as_f64(want->front(), e);
          double difference = std::abs(element_as_f64(got->front(), e) - w);
          error = std::isnan(difference) ? INFINITY : std::max(error, difference);
          scale = std::max(scale, std::abs(w));
        }
        worst = std::max(worst, error / scale);
        EXPECT_LT(error / scale, 1e-6) << target << ", " << threads << " threads\n" << print(*graph, 8);
      }
  }
  std::printf("largest error, as a share of the largest result: %.2g\n", worst);
}

}  // namespace
}  // namespace quernel::testing
