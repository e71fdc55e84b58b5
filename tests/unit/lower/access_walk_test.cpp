// Plans choose loops by the accesses that schedule/plans/access_walk finds; lowering's evaluator does the
// accesses. Both walk the same graph: they must agree on every load, with its offset, and in order.
#include <gtest/gtest.h>

#include "graph/passes/passes.h"
#include "graph/text.h"
#include "lower/evaluate.h"
#include "pipeline/run_passes.h"
#include "random_graph/random_graph.h"
#include "schedule/plans/access_walk.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel {
namespace {

using schedule::ElementLoad;

std::string text(const Graph& graph, const std::vector<ElementLoad>& loads) {
  std::string result;
  for (const ElementLoad& load : loads)
    result += graph.values[load.value].name + " at " + to_string(load.offset) + "\n";
  return result;
}

struct Loads {
  int kernels = 0, loads = 0;
};

// Compares both for every map and reduction of the schedule at the indices of its results.
void compare(const schedule::Schedule& s, const Target& target, const std::string& what, Loads& seen) {
  for (const schedule::Item& item : s.items) {
    if (item.group < 0) continue;
    const schedule::Group& group = s.groups[static_cast<size_t>(item.group)];
    for (const schedule::Schedule& body : group.bodies) compare(body, target, what + ", a body", seen);
    bool is_map = group.kind == schedule::GroupKind::kMap,
         is_reduce = group.kind == schedule::GroupKind::kReduce;
    if (!is_map && !is_reduce) continue;
    std::vector<ValueId> values = group.outputs;
    if (is_reduce) values = {s.graph.nodes[static_cast<size_t>(group.anchor)].inputs[0]};
    const Shape& dims = s.graph.shape(values[0]);
    std::vector<IndexExpr> at;
    for (size_t d = 0; d < dims.size(); ++d) at.push_back(IndexExpr::axis(static_cast<int>(d)));

    schedule::AccessWalk walk(s, group, dims);
    for (ValueId v : values) walk.read(v, at);

    lower::restart_names();
    lower::KernelBuffers buffers = lower::make_buffers(s, item, target);
    lower::LaunchSymbols symbols;
    lower::Evaluator evaluator(s, group, buffers, symbols);
    for (const Dim& extent : dims)
      evaluator.axes.push_back({loop::var_ref(lower::fresh_var("i", loop::kIndexType)), extent});
    std::vector<ElementLoad> loads;
    evaluator.on_load = [&](ValueId v, const IndexExpr& offset, loop::Expr loaded) {
      loads.push_back({v, offset});
      return loaded;
    };
    for (ValueId v : values) evaluator.evaluate(v, at);
    EXPECT_EQ(text(s.graph, walk.loads), text(s.graph, loads)) << what;
    ++seen.kernels;
    seen.loads += static_cast<int>(loads.size());
  }
}

Expected<schedule::Schedule> schedule_of(Graph graph, const Target& target) {
  QUERNEL_TRY(Graph floats, expand_dequantize(graph));
  QUERNEL_TRY(Graph ready, schedule::materialize_operands(floats, target));
  schedule::Packings packings;
  return make_schedule(std::move(ready), target, packings);
}

TEST(AccessWalk, finds_the_loads_of_random_graphs) {
  Target target = *find_target("x86-64-v4");
  Loads seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Expected<schedule::Schedule> s = schedule_of(random_graph(seed, {}), target);
    if (s) compare(*s, target, "seed " + std::to_string(seed), seen);
  }
  EXPECT_GT(seen.kernels, 300);
  EXPECT_GT(seen.loads, seen.kernels);
}

// What positions depend on data, padding or bits is walked alike.
TEST(AccessWalk, finds_the_loads_behind_computed_positions) {
  const char* graphs[] = {
      // a table of rows, whose indices are data
      "graph @g(%x: f32[9,4], %i: i64[3]) {\n  %1 = take %x, %i {0} : f32[3,4]\n"
      "  %2 = exp %1 : f32[3,4]\n  return y = %2\n}\n",
      // mirrored padding
      "graph @g(%x: f32[9,8]) {\n  %1 = pad %x [1:1, 2:2] reflect : f32[11,12]\n"
      "  %2 = exp %1 : f32[11,12]\n  return y = %2\n}\n",
      // halves of words
      "graph @g(%x: u8[6,8]) {\n  %1 = bitcast %x : u16[6,4]\n  %2 = cast %1 : f32[6,4]\n"
      "  return y = %2\n}\n",
      // a value that two guards read
      "graph @g(%x: f32[4,16]) {\n  %1 = pad %x [1:0, 0:0] fill 2 : f32[5,16]\n"
      "  %2 = pad %x [0:1, 0:0] fill 3 : f32[5,16]\n  %3 = add %1, %2 : f32[5,16]\n"
      "  %4 = mul %3, %1 : f32[5,16]\n  return y = %4\n}\n",
  };
  Target target = *find_target("x86-64-v3");
  for (const char* source : graphs) {
    Expected<Graph> graph = parse_graph(source, "graph");
    ASSERT_TRUE(graph) << to_string(graph.errors());
    Expected<schedule::Schedule> s = schedule_of(*std::move(graph), target);
    ASSERT_TRUE(s) << to_string(s.errors());
    Loads seen;
    compare(*s, target, source, seen);
    EXPECT_GT(seen.loads, 0) << source;
  }
}

}  // namespace
}  // namespace quernel
