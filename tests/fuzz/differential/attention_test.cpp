// Attention kernels against the interpreter: sizes with and without tails, masks, several batches and heads,
// orders of dims, every target that this machine runs, one and two threads. Each graph of 16 rows or more
// must have become such a kernel; of fewer, the rows may be what vectors hold.
#include <gtest/gtest.h>

#include "graph/interpret.h"
#include "graph/text.h"
#include "host_targets.h"
#include "pipeline.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"
#include "schedule/schedule.h"

namespace quernel::testing {
namespace {

struct Case {
  int64_t batch, heads, rows, keys, depth, width;
  bool mask;
  bool heads_last;  // operands and result are [batch, position, head, element]
  bool free_batch = false, free_rows = false;
};

std::string text_of(const Case& c) {
  auto s = [](int64_t v) { return std::to_string(v); };
  std::string b = c.free_batch ? "B" : s(c.batch), n = c.free_rows ? "N" : s(c.rows), h = s(c.heads),
              m = s(c.keys);
  auto dims = [&](const std::string& positions, int64_t last) {
    return "f32[" + b + "," + (c.heads_last ? positions + "," + h : h + "," + positions) + "," + s(last) +
           "]";
  };
  auto at = [&](const char* position, const char* last) {
    return std::string("[b, ") +
           (c.heads_last ? std::string(position) + ", h" : std::string("h, ") + position) + ", " + last + "]";
  };
  std::string scores = "f32[" + b + "," + h + "," + n + "," + m + "]";
  std::string row = "f32[" + b + "," + h + "," + n + ",1]";
  std::string text;
  if (c.free_batch) text += "symbol B min=1 max=8\n";
  if (c.free_rows) text += "symbol N min=1 max=64\n";
  text += "graph @g(%q: " + dims(n, c.depth) + ", %k: " + dims(m, c.depth) + ", %v: " + dims(m, c.width) +
          ", %m: f32[" + b + ",1,1," + m + "])";
  std::string common = "b: " + b + ", h: " + h + ", n: " + n;
  text += " {\n  %s = contract %q, %k axes(" + common + ", m: " + m + " | d: " + s(c.depth) + ") a" +
          at("n", "d") + " b" + at("m", "d") + " out[b, h, n, m] acc f32 : " + scores + "\n";
  text += "  %f = constant f32[1,1,1,1] {0.25}\n  %fe = expand %f : " + scores +
          "\n  %t = mul %s, %fe : " + scores + "\n";
  if (c.mask) text += "  %me = expand %m : " + scores + "\n  %u = add %t, %me : " + scores + "\n";
  std::string x = c.mask ? "%u" : "%t";
  text += "  %a = reduce_max " + x + " {3} keepdims : " + row + "\n  %ae = expand %a : " + scores + "\n";
  text += "  %c = sub " + x + ", %ae : " + scores + "\n  %e = exp %c : " + scores + "\n";
  text += "  %z = reduce_sum %e {3} keepdims acc f32 : " + row + "\n  %ze = expand %z : " + scores + "\n";
  text += "  %p = div %e, %ze : " + scores + "\n";
  text += "  %y = contract %p, %v axes(" + common + ", e: " + s(c.width) + " | m: " + m +
          ") a[b, h, n, m] b" + at("m", "e") + " out" + at("n", "e") + " acc f32 : " + dims(n, c.width) +
          "\n";
  return text + "  %g = abs %y : " + dims(n, c.width) + "\n  return y = %y, g = %g\n}\n";
}

// Kinds of the kernels, copies of operands aside.
std::vector<std::string> kernels_of(const Graph& graph, const std::string& name) {
  Expected<Target> target = find_target(name);
  Expected<Graph> ready = run_graph_passes(graph, *target, {});
  EXPECT_TRUE(ready) << to_string(ready.errors());
  schedule::Packings packings;
  Expected<schedule::Schedule> schedule = schedule::make_schedule(std::move(*ready), *target, packings);
  EXPECT_TRUE(schedule) << to_string(schedule.errors());
  std::vector<std::string> kinds;
  for (const schedule::Group& group : schedule->groups)
    if (schedule->graph.nodes[group.anchor].op != OpKind::k_contiguous)
      kinds.emplace_back(to_string(group.kind));
  return kinds;
}

TEST(Attention, equals_the_interpreter) {
  const Case cases[] = {
      {1, 2, 16, 16, 8, 16, false, false},
      {1, 12, 128, 128, 64, 64, true, false},
      {2, 3, 50, 33, 20, 7, true, false},
      {1, 1, 197, 197, 16, 24, false, false},
      {3, 2, 7, 100, 32, 48, true, true},
      {1, 4, 2, 17, 3, 5, false, true},
      {1, 2, 300, 2000, 4, 8, false, true},
      {1, 1, 40, 1024, 8, 256, true, false},
      {2, 2, 21, 40, 16, 16, true, false, true, false},
      {1, 2, 33, 40, 16, 16, true, true, false, true},
  };
  for (const Case& c : cases) {
    Expected<Graph> graph = parse_graph(text_of(c));
    ASSERT_TRUE(graph) << to_string(graph.errors()) << text_of(c);
    std::map<std::string, int64_t> sizes;
    if (c.free_batch) sizes["B"] = c.batch;
    if (c.free_rows) sizes["N"] = c.rows;
    std::vector<Tensor> inputs = random_inputs_at(*graph, sizes, 3);
    Expected<std::vector<Tensor>> want = interpret(*graph, inputs, sizes);
    ASSERT_TRUE(want) << to_string(want.errors());
    for (const std::string& target : host_targets()) {
      if (c.rows >= 16) {
        EXPECT_EQ(kernels_of(*graph, target), std::vector<std::string>{"attention"})
            << c.rows << "x" << c.keys;
      }
      for (unsigned threads : {1u, 2u}) {
        CompileOptions options;
        options.targets = {target};
        Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, threads);
        ASSERT_TRUE(got) << to_string(got.errors());
        for (size_t i = 0; i < want->size(); ++i)
          EXPECT_EQ(difference((*got)[i], (*want)[i], 1e-5, 1e-6), "")
              << target << ", " << threads << " threads, " << c.rows << "x" << c.keys << "x" << c.depth;
      }
    }
  }
}

}  // namespace
}  // namespace quernel::testing
