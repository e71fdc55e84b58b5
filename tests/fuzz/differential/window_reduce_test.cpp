// Reductions of windows, as poolings are, whose kernels reduce rows of positions first, against the
// interpreter: steps, windows and borders of several kinds, rows shorter and longer than vectors, longer than
// a kernel keeps at a time, and of a length that only a run knows.
#include <map>

#include "on_host_targets.h"

namespace quernel::testing {
namespace {

struct Case {
  int64_t channels, h, w;  // of the image
  int64_t window[2], step[2], dilation[2];
  int64_t top, left, bottom, right;  // padding
  const char* op = "reduce_max";
  const char* dtype = "f32";
  bool epilogue = false;
};

std::string text_of(const Case& c) {
  auto s = [](int64_t v) { return std::to_string(v); };
  auto results = [&](int64_t size, int64_t before, int64_t after, int axis) {
    return (size + before + after - (c.window[axis] - 1) * c.dilation[axis] - 1) / c.step[axis] + 1;
  };
  auto position = [&](const char* out, const char* in, int axis, int64_t before) {
    return s(c.step[axis]) + "*" + out + " + " + s(c.dilation[axis]) + "*" + in + " + " + s(-before);
  };
  std::string dtype = c.dtype, h = s(results(c.h, c.top, c.bottom, 0)),
              w = s(results(c.w, c.left, c.right, 1));
  std::string y = position("d1", "d3", 0, c.top), x = position("d2", "d4", 1, c.left);
  std::string out = dtype + "[" + s(c.channels) + "," + h + "," + w + "]";
  bool max = std::string(c.op) == "reduce_max";
  bool integer = dtype == "i8" || dtype == "i32";
  std::string fill = max ? (integer ? "-100" : "-inf") : "0", acc = max ? "" : " acc " + dtype;
  return "graph @g(%x: " + dtype + "[" + s(c.channels) + "," + s(c.h) + "," + s(c.w) + "], %r: " + out +
         ") {\n  %v = view %x [d0, " + y + ", " + x + "] if 0 <= " + y + " < " + s(c.h) + ", 0 <= " + x +
         " < " + s(c.w) + " fill " + fill + " : " + dtype + "[" + s(c.channels) + "," + h + "," + w + "," +
         s(c.window[0]) + "," + s(c.window[1]) + "]\n  %y = " + c.op + " %v {3, 4}" + acc + " : " + out +
         "\n" +
         (c.epilogue ? "  %z = mul %y, %r : " + out + "\n  return z = %z\n}\n" : "  return y = %y\n}\n");
}

TEST(WindowReduce, of_two_dims) {
  const Case cases[] = {
      {3, 14, 14, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1},
      {2, 15, 15, {3, 3}, {2, 2}, {1, 1}, 0, 0, 1, 1, "reduce_sum", "f32", true},
      {5, 7, 7, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1, "reduce_max", "f32", true},
      {2, 28, 28, {2, 2}, {2, 2}, {1, 1}, 0, 0, 0, 0},
      {1, 13, 13, {13, 13}, {1, 1}, {1, 1}, 6, 6, 6, 6},
      {2, 13, 29, {5, 5}, {1, 1}, {1, 1}, 2, 2, 2, 2, "reduce_sum"},
      {1, 5, 300, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1, "reduce_sum"},
      {1, 5, 1025, {3, 3}, {2, 2}, {1, 1}, 1, 1, 1, 1},
      {1, 3, 2000, {1, 7}, {1, 3}, {1, 1}, 0, 5, 0, 4, "reduce_max", "f32", true},
      {2, 3, 70, {2, 40}, {1, 4}, {1, 1}, 0, 9, 1, 20, "reduce_sum"},
      {2, 9, 40, {3, 3}, {1, 1}, {2, 2}, 2, 2, 2, 2},
      {2, 9, 40, {3, 3}, {2, 4}, {1, 2}, 2, 2, 2, 2},
      {2, 9, 40, {3, 3}, {5, 5}, {1, 1}, 1, 1, 1, 1},
      {2, 4, 33, {3, 3}, {1, 2}, {1, 1}, 1, 1, 1, 1, "reduce_max", "f64"},
      {2, 6, 33, {3, 3}, {1, 2}, {1, 1}, 1, 1, 1, 1, "reduce_max", "f16"},
      {2, 6, 50, {3, 3}, {1, 2}, {1, 1}, 1, 1, 1, 1, "reduce_max", "i8"},
      {2, 6, 50, {2, 3}, {1, 1}, {1, 1}, 0, 0, 0, 0, "reduce_sum", "i32"},
      {2, 6, 50, {3, 2}, {1, 2}, {1, 1}, 0, 0, 0, 0, "reduce_prod", "f32"},
      {2, 6, 50, {3, 3}, {1, 2}, {1, 1}, 1, 1, 1, 1, "reduce_sum", "bf16"},
      {1, 4, 1, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 4, 2, {3, 3}, {1, 1}, {1, 1}, 1, 1, 1, 1},
      {1, 3, 4, {3, 3}, {1, 1}, {1, 1}, 1, 20, 1, 19, "reduce_sum"},
  };
  for (const Case& c : cases) error_on_host_targets(text_of(c), 1e-6);
}

TEST(WindowReduce, beside_the_operand) {
  for (int64_t before : {3000, -45}) {
    Case c{2, 9, 40, {3, 3}, {1, 2}, {1, 1}, 1, before, 1, -15 - before, "reduce_max", "i32"};
    Expected<Graph> graph = parse_graph(text_of(c));
    ASSERT_TRUE(graph) << to_string(graph.errors());
    std::vector<Tensor> inputs = random_inputs(*graph, 1);
    Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    for (const std::string& target : host_targets()) {
      CompileOptions options;
      options.targets = {target};
      Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1);
      ASSERT_TRUE(got) << to_string(got.errors());
      EXPECT_EQ(difference((*got)[0], (*want)[0], 0, 0), "") << target << "\n" << text_of(c);
    }
  }
}

// What the operand was computed from is computed once for each position, not for each window.
TEST(WindowReduce, of_what_the_kernel_computes) {
  error_on_host_targets(R"(graph @g(%x: f32[3,20,37], %s: f32[3,1,1]) {
    %e = expand %s : f32[3,20,37]
    %m = mul %x, %e : f32[3,20,37]
    %c = exp %m : f32[3,20,37]
    %v = view %c [d0, 2*d1 + d3 + -1, 2*d2 + d4 + -1] if 0 <= 2*d1 + d3 + -1 < 20, 0 <= 2*d2 + d4 + -1 < 37 fill 0 : f32[3,10,19,3,3]
    %y = reduce_sum %v {3, 4} acc f32 : f32[3,10,19]
    return y = %y
  })",
                        1e-6);
}

// A window over the last dim alone whose weights go along with it is no window of one position.
TEST(WindowReduce, of_positions_that_are_weighted) {
  error_on_host_targets(R"(graph @g(%x: f32[3,40], %w: f32[5]) {
    %v = view %x [d0, 2*d1 + d2] : f32[3,18,5]
    %f = reshape %w : f32[1,1,5]
    %e = expand %f : f32[3,18,5]
    %m = add %v, %e : f32[3,18,5]
    %y = reduce_max %m {2} : f32[3,18]
    return y = %y
  })",
                        1e-6);
}

TEST(WindowReduce, of_a_length_that_a_run_knows) {
  Expected<Graph> graph = parse_graph(R"(symbol n min=1 max=1024
symbol m min=1 max=1024
graph @g(%x: f32[2,n,m]) {
    %v = view %x [d0, d1 + d3 + -1, 2*d2 + d4 + -1] if 0 <= d1 + d3 + -1 < n, 0 <= 2*d2 + d4 + -1 < m fill -inf : f32[2,n,((m + 1) floordiv 2),3,3]
    %y = reduce_max %v {3, 4} : f32[2,n,((m + 1) floordiv 2)]
    return y = %y
  })");
  ASSERT_TRUE(graph) << to_string(graph.errors());
  for (const std::string& target : host_targets()) {
    CompileOptions options;
    options.targets = {target};
    Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 2);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    for (auto [n, m] :
         {std::pair<int64_t, int64_t>{1, 1}, {3, 2}, {2, 31}, {4, 32}, {2, 33}, {1, 255}, {2, 700}}) {
      const std::map<std::string, int64_t> sizes{{"n", n}, {"m", m}};
      std::vector<Tensor> inputs = random_inputs_at(*graph, sizes, 1);
      Expected<std::vector<Tensor>> want = interpret(*graph, inputs, sizes), got = compiled->run(inputs);
      ASSERT_TRUE(want) << to_string(want.errors());
      ASSERT_TRUE(got) << to_string(got.errors());
      EXPECT_EQ(difference((*got)[0], (*want)[0], 0, 0), "") << target << " " << n << "x" << m;
    }
  }
}

}  // namespace
}  // namespace quernel::testing
