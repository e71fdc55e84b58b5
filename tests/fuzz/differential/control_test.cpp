// Loops and branches, interpreted and compiled: on one and two threads, for masks and without, and with every
// graph pass disabled in turn.
#include <gtest/gtest.h>

#include "graph/interpret.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "pipeline/pipeline.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

struct Program {
  const char* name;
  const char* text;
  std::vector<std::map<std::string, int64_t>> at = {{}};  // values of the symbols
};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

const Program kPrograms[] = {
    {"carries_and_scans", R"(
symbol i min=0 max=5 runtime bound=5
graph @main(%x: f32[4], %h0: f32[4]) {
  %l = loop %h0, %x carry 1 for i below 5 do (%h: f32[4], %x: f32[4]) {
    %1 = add %h, %x : f32[4]
    %n = dims [i] : i64[1]
    %f = cast %n : f32[1]
    %g = expand %f : f32[4]
    %2 = mul %1, %g : f32[4]
    return h = %1, s = %2
  }
  %h = result %l {0} : f32[4]
  %s = result %l {1} : f32[5,4]
  return h = %h, s = %s
})"},
    {"collatz", R"(
symbol i min=0 runtime
symbol go min=0 max=1 runtime
symbol odd min=0 max=1 runtime
graph @main(%x: f32[]) {
  %four = constant f32[] {4}
  %shifted = add %x, %four : f32[]
  %start = cast %shifted : i64[]
  %one = constant i64[] {1}
  %two = constant i64[] {2}
  %three = constant i64[] {3}
  %zero = constant i64[] {0}
  %c0 = gt %start, %one : bool[]
  bind go = %c0
  %l = loop %start, %zero, %one, %two, %three carry 2 for i while go do (%v: i64[], %steps: i64[], %one: i64[], %two: i64[], %three: i64[]) {
    %r = mod %v, %two : i64[]
    %is_odd = eq %r, %one : bool[]
    bind odd = %is_odd
    %b = branch %v, %one, %two, %three if odd then (%v: i64[], %one: i64[], %two: i64[], %three: i64[]) {
      %1 = mul %v, %three : i64[]
      %2 = add %1, %one : i64[]
      return r = %2
    } else (%v: i64[], %one: i64[], %two: i64[], %three: i64[]) {
      %1 = idiv %v, %two : i64[]
      return r = %1
    }
    %next = result %b {0} : i64[]
    %steps2 = add %steps, %one : i64[]
    %c = ne %next, %one : bool[]
    bind go = %c
    return v = %next, steps = %steps2
  }
  %v = result %l {0} : i64[]
  %s = result %l {1} : i64[]
  %count = dims [i] : i64[1]
  return v = %v, steps = %s, count = %count
})"},
    {"nested", R"(
symbol i min=0 max=4 runtime bound=4
symbol j min=0 max=4 runtime bound=4
graph @main(%x: f32[4,8]) {
  %z = constant f32[8] {0 ...}
  %l = loop %z, %x carry 1 for i below 4 do (%acc: f32[8], %x: f32[4,8]) {
    %row = slice %x [i:(i + 1), 0:8] : f32[1,8]
    %r = reshape %row : f32[8]
    %m = loop %acc, %r carry 1 for j below i do (%a: f32[8], %r: f32[8]) {
      %1 = add %a, %r : f32[8]
      return a = %1
    }
    %n = result %m {0} : f32[8]
    return acc = %n, all = %n
  }
  %a = result %l {0} : f32[8]
  %all = result %l {1} : f32[4,8]
  return a = %a, all = %all
})"},
    {"no_iteration", R"(
symbol i min=0 max=3 runtime bound=3
symbol n min=0 max=3 runtime bound=3
graph @main(%x: f32[3], %h0: f32[3]) {
  %s = constant i64[] {0}
  bind n = %s
  %l = loop %h0, %x carry 1 for i below n do (%h: f32[3], %x: f32[3]) {
    %1 = add %h, %x : f32[3]
    return h = %1, s = %1
  }
  %h = result %l {0} : f32[3]
  %all = result %l {1} : f32[n,3]
  %twice = add %h, %h : f32[3]
  return h = %h, all = %all, twice = %twice
})"},
    // A recurrence: the state times constant weights, and the input of each step; any number of steps.
    {"recurrence",
     R"(
symbol n min=1 max=40
symbol i min=0 max=40 runtime bound=n
graph @main(%x: f32[n,2,8]) {
  %w = constant f32[8,8] <0000803f000000400000803f000080bf000000000000803f000080bf0000803f0000803f000000400000803f000080bf000000000000803f000080bf0000803f0000803f000000400000803f000080bf000000000000803f000080bf0000803f0000803f000000400000803f000080bf000000000000803f000080bf0000803f0000803f000000400000803f000080bf000000000000803f000080bf0000803f0000803f000000400000803f000080bf000000000000803f000080bf0000803f0000803f000000400000803f000080bf000000000000803f000080bf0000803f0000803f000000400000803f000080bf000000000000803f000080bf0000803f>
  %low = constant f32[] {-8}
  %high = constant f32[] {8}
  %z = constant f32[] {0}
  %z1 = reshape %z : f32[1,1]
  %h0 = expand %z1 : f32[2,8]
  %lows = reshape %low : f32[1,1]
  %lows2 = expand %lows : f32[2,8]
  %highs = reshape %high : f32[1,1]
  %highs2 = expand %highs : f32[2,8]
  %l = loop %h0, %x, %w, %lows2, %highs2 carry 1 for i below n do (%h: f32[2,8], %x: f32[n,2,8], %w: f32[8,8], %low: f32[2,8], %high: f32[2,8]) {
    %s = slice %x [i:(i + 1), 0:2, 0:8] : f32[1,2,8]
    %xt = reshape %s : f32[2,8]
    %p = contract %h, %w axes(b: 2, o: 8 | k: 8) a[b, k] b[k, o] out[b, o] acc f32 : f32[2,8]
    %1 = add %p, %xt : f32[2,8]
    %2 = clamp %1, %low, %high : f32[2,8]
    return h = %2, y = %2
  }
  %h = result %l {0} : f32[2,8]
  %y = result %l {1} : f32[n,2,8]
  %back = flip %y {0} : f32[n,2,8]
  %both = cat %y, %back {2} : f32[n,2,16]
  return h = %h, both = %both
})",
     {{{"n", 1}}, {{"n", 2}}, {{"n", 7}}, {{"n", 40}}}},
    // While the sum stays small: scan outputs of a length that the loop finds.
    {"length_found", R"(
symbol i min=0 max=9 runtime bound=9
symbol go min=0 max=1 runtime
graph @main(%x: f32[9]) {
  %limit = constant f32[] {4}
  %z = constant f32[] {0}
  %yes = constant bool[] {true}
  bind go = %yes
  %l = loop %z, %x, %limit carry 1 for i below 9 while go do (%s: f32[], %x: f32[9], %limit: f32[]) {
    %e = slice %x [i:(i + 1)] : f32[1]
    %1 = reshape %e : f32[]
    %2 = abs %1 : f32[]
    %3 = add %s, %2 : f32[]
    %c = lt %3, %limit : bool[]
    bind go = %c
    %p = reshape %3 : f32[1]
    %pair = cat %p, %e {0} : f32[2]
    return s = %3, all = %pair
  }
  %all = result %l {1} : f32[i,2]
  %sum = reduce_sum %all {0} acc f32 : f32[2]
  return all = %all, sum = %sum
})"},
    // The order of two carried values changes in each iteration; one of them is never read.
    {"swaps", R"(
symbol i min=0 max=3 runtime bound=3
graph @main(%x: f32[5], %y: f32[5]) {
  %l = loop %x, %y, %x carry 3 for i below 3 do (%a: f32[5], %b: f32[5], %c: f32[5]) {
    return a = %b, b = %a, c = %c
  }
  %a = result %l {0} : f32[5]
  %b = result %l {1} : f32[5]
  %c = result %l {2} : f32[5]
  return a = %a, b = %b, c = %c
})"},
    // Branches that read different values, one of which runs a loop; their result feeds a product.
    {"branches", R"(
symbol positive min=0 max=1 runtime
symbol j min=0 max=6 runtime bound=6
graph @main(%x: f32[16], %y: f32[16]) {
  %s = reduce_sum %x {0} acc f32 : f32[]
  %z = constant f32[] {0}
  %c = gt %s, %z : bool[]
  bind positive = %c
  %b = branch %x, %y if positive then (%x: f32[16], %y: f32[16]) {
    %1 = add %x, %x : f32[16]
    return r = %1, q = %x
  } else (%x: f32[16], %y: f32[16]) {
    %l = loop %y carry 1 for j below 6 do (%v: f32[16]) {
      %1 = flip %v {0} : f32[16]
      %2 = add %1, %v : f32[16]
      return v = %2
    }
    %1 = result %l {0} : f32[16]
    %2 = sub %1, %x : f32[16]
    return r = %2, q = %y
  }
  %r = result %b {0} : f32[16]
  %q = result %b {1} : f32[16]
  %p = contract %r, %q axes(| k: 16) a[k] b[k] out[] acc f32 : f32[]
  return r = %r, p = %p
})"},
    // Sizes found inside a body: the elements above 0 of each row.
    {"sizes_inside", R"(
symbol i min=0 max=4 runtime bound=4
symbol k min=0 max=6 runtime bound=6
graph @main(%x: f32[4,6]) {
  %z = constant f32[6] {0 ...}
  %l = loop %x, %z carry 0 for i below 4 do (%x: f32[4,6], %z: f32[6]) {
    %s = slice %x [i:(i + 1), 0:6] : f32[1,6]
    %row = reshape %s : f32[6]
    %m = gt %row, %z : bool[6]
    %n = cast %m : i64[6]
    %count = reduce_sum %n {0} acc i64 : i64[]
    bind k = %count
    %order = argsort %m {0} descending : i64[k]
    %found = take %row, %order {0} : f32[k]
    %sum = reduce_sum %found {0} acc f32 : f32[]
    return sum = %sum
  }
  %sums = result %l {0} : f32[4]
  return sums = %sums
})"},
};

std::vector<Tensor> inputs_at(const Graph& graph, const std::map<std::string, int64_t>& at, uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    std::vector<int64_t> dims;
    for (const Dim& d : graph.shape(v)) dims.push_back(*d.evaluate(at));
    std::vector<float> data(static_cast<size_t>(*element_count(dims)));
    for (float& x : data) x = static_cast<float>(random.between(-3, 3));
    inputs.push_back(f32_tensor(dims, data));
  }
  return inputs;
}

class Control : public ::testing::TestWithParam<Program> {
 protected:
  void compare(const CompileOptions& options, uint64_t seeds) {
    Expected<Graph> graph = parse_graph(GetParam().text, GetParam().name);
    ASSERT_TRUE(graph) << to_string(graph.errors());
    Status valid = verify(*graph);
    ASSERT_TRUE(valid) << to_string(valid.errors());
    for (const std::map<std::string, int64_t>& at : GetParam().at)
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        std::vector<Tensor> inputs = inputs_at(*graph, at, seed);
        Expected<std::vector<Tensor>> want = interpret(*graph, inputs, at);
        ASSERT_TRUE(want) << to_string(want.errors());
        Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1 + seed % 2);
        ASSERT_TRUE(got) << to_string(got.errors());
        for (size_t i = 0; i < want->size(); ++i)
          ASSERT_EQ(difference((*got)[i], (*want)[i], 0, 0), "")
              << "seed " << seed << ", output " << graph->outputs[i].name;
      }
  }
};

TEST_P(Control, prints_and_parses) {
  Expected<Graph> graph = parse_graph(GetParam().text, GetParam().name);
  ASSERT_TRUE(graph) << to_string(graph.errors());
  std::string text = print(*graph);
  Expected<Graph> again = parse_graph(text);
  ASSERT_TRUE(again) << to_string(again.errors()) << text;
  EXPECT_EQ(print(*again), text);
}

TEST_P(Control, native_target) { compare({}, 4); }

TEST_P(Control, baseline_target) {
  CompileOptions options;
  options.targets = {"x86-64"};
  compare(options, 2);
}

TEST_P(Control, every_graph_pass_disabled_in_turn) {
  for (const GraphPass& pass : graph_passes()) {
    if (!pass.optional) continue;
    SCOPED_TRACE(std::string(pass.name));
    CompileOptions options;
    options.disabled_passes = {std::string(pass.name)};
    compare(options, 1);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(programs, Control, ::testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

// Random nodes in random loops and branches.
void compare_random(uint64_t seed, const CompileOptions& options) {
  RandomGraphOptions made_of;
  made_of.control = true;
  Graph graph = random_graph(seed, made_of);
  Status valid = verify(graph);
  ASSERT_TRUE(valid) << "seed " << seed << ": " << to_string(valid.errors()) << print(graph);
  std::vector<Tensor> inputs = random_inputs(graph, seed);
  Expected<std::vector<Tensor>> want = interpret(graph, inputs);
  ASSERT_TRUE(want) << "seed " << seed << ": " << to_string(want.errors()) << print(graph);
  Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, 1 + seed % 2);
  ASSERT_TRUE(got) << "seed " << seed << ": " << to_string(got.errors()) << print(graph);
  EXPECT_EQ(differences(graph, *got, *want), "") << "seed " << seed << "\n" << print(graph, 64);
}

TEST(RandomControl, native_target) {
  auto [first, count] = fuzz_seeds(200);
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed)
    compare_random(seed, {});
}

TEST(RandomControl, every_graph_pass_disabled_in_turn) {
  for (const GraphPass& pass : graph_passes()) {
    if (!pass.optional) continue;
    CompileOptions options;
    options.disabled_passes = {std::string(pass.name)};
    for (uint64_t seed = 1; seed <= 8 && !::testing::Test::HasFailure(); ++seed)
      compare_random(seed, options);
  }
}

}  // namespace
}  // namespace quernel::testing
