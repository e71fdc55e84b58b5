// Attention of few rows against the interpreter: heads that share keys, caches of which a part is filled, windows,
// several positions, rows that see nothing, sizes that are no whole number of vectors, one and two threads.
#include <gtest/gtest.h>

#include <limits>

#include "attention_graphs.h"
#include "graph/interpret.h"
#include "graph/states.h"
#include "on_host_targets.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

struct Case {
  int64_t batch, groups, sharing, positions, keys, depth, width;
  std::vector<int64_t> lengths;  // of each row of the batch: keys that are filled, the new ones included
  int64_t window = 0;            // how far back a position sees; 0: to the first key
  bool hidden_is_zero = true;
  bool bias = false;
};

std::string graph_text(const Case& c) {
  auto s = [](int64_t v) { return std::to_string(v); };
  int64_t heads = c.groups * c.sharing;
  std::string b = s(c.batch), h = s(heads), n = s(c.positions), m = s(c.keys), d = s(c.depth), e = s(c.width);
  std::string row = b + "," + h + "," + n + ",1]", scores = b + "," + h + "," + n + "," + m + "]";
  std::string text = "graph @g(%q: f32[" + b + "," + h + "," + n + "," + d + "], %k: f32[" + b + "," +
                     s(c.groups) + "," + m + "," + d + "], %v: f32[" + b + "," + s(c.groups) + "," + m + "," +
                     e + "], %length: i64[" + b + "], %bias: f32[1,1,1," + m + "]) {\n";
  auto numbers = [&](int64_t count) {
    std::string list = "{";
    for (int64_t i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + s(i);
    return list + "}";
  };
  std::string axes = "axes(b: " + b + ", g: " + s(c.groups) + ", h: " + s(c.sharing) + ", i: " + n;
  std::string head = c.sharing == 1 ? "g + h" : s(c.sharing) + "*g + h";
  text += "  %s = contract %q, %k " + axes + ", j: " + m + " | d: " + d + ") a[b, " + head +
          ", i, d] b[b, g, j, d] out[b, " + head + ", i, j] acc f32 : f32[" + scores + "\n";
  text += "  %none = constant f32[1,1,1,1] {-inf}\n  %noner = expand %none : f32[" + row +
          "\n  %zero = constant f32[1,1,1,1] {0}\n" + "  %zeror = expand %zero : f32[" + row +
          "\n  %one = constant f32[1,1,1,1] {1}\n  %oner = expand %one : f32[" + row +
          "\n  %nones = expand %none : f32[" + scores + "\n";
  text += "  %there = constant i64[1,1,1," + m + "] " + numbers(c.keys) + "\n";
  text += "  %here = constant i64[1,1," + n + ",1] " + numbers(c.positions) + "\n";
  text += "  %l = reshape %length : i64[" + b + ",1,1,1]\n";
  std::string mask = "[" + b + ",1," + n + "," + m + "]";
  text += "  %lm = expand %l : i64" + mask + "\n  %tm = expand %there : i64" + mask +
          "\n  %inside = gt %lm, %tm : bool" + mask + "\n";
  text += "  %count = constant i64[1,1,1,1] {" + n + "}\n  %countb = expand %count : i64[" + b +
          ",1,1,1]\n  %past = sub %l, %countb : i64[" + b + ",1,1,1]\n";
  text += "  %pn = expand %past : i64[" + b + ",1," + n + ",1]\n  %hn = expand %here : i64[" + b + ",1," + n +
          ",1]\n  %at = add %pn, %hn : i64[" + b + ",1," + n + ",1]\n  %atm = expand %at : i64" + mask +
          "\n  %before = le %tm, %atm : bool" + mask + "\n  %seen = and %inside, %before : bool" + mask +
          "\n";
  std::string allowed = "seen";
  if (c.window != 0) {
    text += "  %w = constant i64[1,1,1,1] {" + s(c.window) + "}\n  %wb = expand %w : i64[" + b + ",1," + n +
            ",1]\n  %from = sub %at, %wb : i64[" + b + ",1," + n + ",1]\n  %fm = expand %from : i64" + mask +
            "\n  %near = gt %tm, %fm : bool" + mask + "\n  %both = and %seen, %near : bool" + mask + "\n";
    allowed = "both";
  }
  text += "  %am = expand %" + allowed + " : bool[" + scores + "\n";
  std::string score = "s";
  if (c.bias) {
    text += "  %be = expand %bias : f32[" + scores + "\n  %sb = add %s, %be : f32[" + scores + "\n";
    score = "sb";
  }
  text += "  %x = where %am, %" + score + ", %nones : f32[" + scores + "\n";
  text += "  %a = reduce_max %x {3} keepdims : f32[" + row + "\n";
  std::string top = "a", sum = "z";
  if (c.hidden_is_zero) {
    text += "  %ah = eq %a, %noner : bool[" + row + "\n  %ar = where %ah, %zeror, %a : f32[" + row + "\n";
    top = "ar";
  }
  text += "  %ae = expand %" + top + " : f32[" + scores + "\n  %c = sub %x, %ae : f32[" + scores +
          "\n  %e = exp %c : f32[" + scores + "\n  %z = reduce_sum %e {3} keepdims acc f32 : f32[" + row +
          "\n";
  if (c.hidden_is_zero) {
    text += "  %zh = eq %z, %zeror : bool[" + row + "\n  %zr = where %zh, %oner, %z : f32[" + row + "\n";
    sum = "zr";
  }
  text += "  %ze = expand %" + sum + " : f32[" + scores + "\n  %p = div %e, %ze : f32[" + scores + "\n";
  text += "  %y = contract %p, %v " + axes + ", e: " + e + " | j: " + m + ") a[b, " + head +
          ", i, j] b[b, g, j, e] out[b, " + head + ", i, e] acc f32 : f32[" + b + "," + h + "," + n + "," +
          e + "]\n";
  text += "  %w2 = abs %y : f32[" + b + "," + h + "," + n + "," + e + "]\n  return y = %y, w = %w2\n}\n";
  return text;
}

TEST(StreamedAttention, equals_the_interpreter) {
  const Case cases[] = {
      {2, 3, 3, 1, 520, 64, 64, {500, 0}},     {1, 2, 4, 1, 300, 32, 48, {300}},
      {1, 2, 7, 1, 777, 48, 16, {513}, 100},   {2, 2, 2, 3, 90, 16, 8, {17, 90}},
      {3, 1, 5, 3, 65, 8, 24, {4, 64, 2}, 20}, {2, 4, 1, 1, 257, 80, 80, {256, 1}, 0, true, true},
      {1, 2, 1, 1, 1024, 128, 128, {300}},     {1, 1, 16, 1, 40, 4, 4, {39}, 0, false},
      {2, 1, 3, 20, 100, 16, 16, {20, 51}},
  };
  for (const Case& c : cases) {
    std::string text = graph_text(c);
    Expected<Graph> graph = parse_graph(text);
    ASSERT_TRUE(graph) << to_string(graph.errors()) << text.substr(0, 300);
    std::vector<Tensor> inputs = random_inputs_at(*graph, {}, 3);
    std::vector<uint8_t> lengths(c.lengths.size() * 8);
    for (size_t i = 0; i < c.lengths.size(); ++i)
      store_i64(DType::kI64, lengths.data(), static_cast<int64_t>(i), c.lengths[i]);
    inputs[3].bytes = Bytes::own(lengths);
    Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    for (const std::string& target : host_targets()) {
      std::vector<std::string> kernels = kernels_of(*graph, find_target(target));
      EXPECT_NE(std::find(kernels.begin(), kernels.end(), "streamed attention"), kernels.end())
          << target << ", " << c.keys << "x" << c.depth;
      expect_on_target(
          *graph, inputs, *want, target, 1e-5, 1e-6,
          std::to_string(c.keys) + "x" + std::to_string(c.depth) + "x" + std::to_string(c.width));
    }
  }
}

// Keys that no row can see are not read: whatever they hold, the result is the same.
TEST(StreamedAttention, does_not_read_hidden_keys) {
  Case c{1, 2, 2, 1, 200, 16, 16, {77}};
  Expected<Graph> graph = parse_graph(graph_text(c));
  ASSERT_TRUE(graph);
  std::vector<Tensor> inputs = random_inputs_at(*graph, {}, 3);
  std::vector<uint8_t> length(8);
  store_i64(DType::kI64, length.data(), 0, c.lengths[0]);
  inputs[3].bytes = Bytes::own(length);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  ASSERT_TRUE(want);
  for (int operand : {1, 2}) {
    std::vector<uint8_t> bytes(inputs[operand].bytes.data(),
                               inputs[operand].bytes.data() + inputs[operand].bytes.size());
    for (int64_t g = 0; g < c.groups; ++g)
      for (int64_t i = c.lengths[0] * 16; i < c.keys * 16; ++i)
        store_f64(DType::kF32, bytes.data(), g * c.keys * 16 + i, std::numeric_limits<double>::quiet_NaN());
    inputs[operand].bytes = Bytes::own(bytes);
  }
  for (const std::string& target : host_targets()) {
    CompileOptions options;
    options.targets = {target};
    Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1);
    ASSERT_TRUE(got) << to_string(got.errors());
    EXPECT_EQ(difference((*got)[0], (*want)[0], 1e-5, 1e-6), "") << target;
  }
}

// Caches as states of f16: rounded when written, widened in the attention kernel, which is all that reads them.
TEST(StreamedAttention, states_of_f16) {
  Case c{1, 2, 2, 1, 96, 16, 16, {1}};
  std::string text = graph_text(c);
  auto replace = [&](const std::string& from, const std::string& to) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  const std::string cache = "f32[1,2,96,16]", row = "f32[1,2,1,16]";
  replace("%k: " + cache + ", %v: " + cache,
          "%row: " + row + ", state %k: " + cache + ", state %v: " + cache);
  replace(") {\n",
          ") {\n  %c1 = constant i64[1] {1}\n  %last = sub %length, %c1 : i64[1]\n  %lr = reshape %last : "
          "i64[1,1,1,1]\n  %place = expand %lr : i64[1,2,1,16]\n  %k2 = scatter_elements %k, %place, %row "
          "{2} set : " +
              cache + "\n  %twice = add %row, %row : " + row +
              "\n  %v2 = scatter_elements %v, %place, %twice {2} set : " + cache + "\n");
  replace("contract %q, %k ", "contract %q, %k2 ");
  replace("contract %p, %v ", "contract %p, %v2 ");
  replace("w = %w2", "w = %w2, state %k = %k2, state %v = %v2");
  Expected<Graph> wide = parse_graph(text);
  ASSERT_TRUE(wide) << to_string(wide.errors()) << text;
  Expected<Graph> graph = narrow_states(*wide, DType::kF16);
  ASSERT_TRUE(graph) << to_string(graph.errors());
  for (const std::string& target : host_targets()) {
    for (const std::string& kernel : kernels_of(*graph, find_target(target)))
      EXPECT_NE(kernel, "rows") << target;
    CompileOptions options;
    options.targets = {target};
    Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 1);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    std::vector<Tensor> states;  // keys and values
    for (int64_t run = 1; run <= 4; ++run) {
      std::vector<Tensor> all = random_inputs_at(*graph, {}, static_cast<uint64_t>(run)), given;
      std::vector<uint8_t> length(8);
      store_i64(DType::kI64, length.data(), 0, run);
      for (size_t i = 0; i < all.size(); ++i) {
        const std::string& name = graph->values[static_cast<size_t>(graph->inputs[i])].name;
        if (name == "length") all[i].bytes = Bytes::own(length);
        if (const Graph::State* state = graph->state_of_input(i)) {
          size_t number = static_cast<size_t>(state - graph->states.data());
          if (states.size() > number)
            all[i] = states[number];
          else
            all[i].bytes = Bytes::own(std::vector<uint8_t>(all[i].bytes.size()));
          EXPECT_EQ(all[i].dtype, DType::kF16);
        } else {
          given.push_back(all[i]);
        }
      }
      Expected<std::vector<Tensor>> want = interpret(*graph, all), got = compiled->run(given);
      ASSERT_TRUE(want) << to_string(want.errors());
      ASSERT_TRUE(got) << to_string(got.errors());
      states.clear();
      for (const Graph::State& state : graph->states) states.push_back((*want)[state.output]);
      for (size_t i = 0; i < got->size(); ++i)
        EXPECT_EQ(difference((*got)[i], (*want)[i], 1e-5, 1e-6), "") << target << ", run " << run;
    }
  }
}

}  // namespace
}  // namespace quernel::testing
