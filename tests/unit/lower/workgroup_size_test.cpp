// No workgroup does the work of a whole large kernel: the turns of its loops stay below what a driver allows,
// and threads have several workgroups to share.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "graph/text.h"
#include "kernel_steps.h"
#include "lower/count_iterations.h"
#include "lower/lower_item.h"
#include "pipeline/pipeline.h"
#include "pipeline/run_passes.h"

namespace quernel {
namespace {

constexpr double kMostTurns = 65535;      // of one invocation's loops, all together: Mesa's software driver
constexpr double kMostSteps = 1 << 22;    // of a workgroup of a processor
constexpr double kLong = 4096;            // turns that count
constexpr double kSharedSteps = 100'000;  // about 50 us: two workgroups at least

struct Limits {
  double turns = 0;
  bool shared = false;
};

// What exceeds the limits, a line for each kernel.
std::string check(const schedule::Schedule& s, const Target& target, const Limits& limits,
                  const std::map<std::string, int64_t>& symbols) {
  std::string wrong;
  for (const schedule::Item& item : s.items) {
    if (item.group < 0) continue;
    const schedule::Group& group = s.groups[static_cast<size_t>(item.group)];
    for (const schedule::Schedule& body : group.bodies) wrong += check(body, target, limits, symbols);
    if (group.kind == schedule::GroupKind::kControl || group.kind == schedule::GroupKind::kCustom) continue;
    lower::LoweredItem lowered = lower::lower_item(s, item, target);
    if (Status status = run_loop_passes({&lowered.kernel}, {}); !status) return to_string(status.errors());
    auto value = [&](const Dim& dim) { return dim.evaluate(symbols).value_or(dim.estimate()); };
    std::vector<int64_t> values;
    for (const Dim& dim : lowered.symbols) values.push_back(value(dim));
    KernelSteps steps = count_steps(lowered.kernel, values);
    std::string name = std::string(to_string(group.kind)) + " " +
                       std::string(to_string(s.graph.nodes[static_cast<size_t>(group.anchor)].op)) + " " +
                       to_string(s.graph.type(group.outputs[0]));
    if (!steps.unknown.empty()) wrong += name + ": unknown extent " + steps.unknown + "\n";
    // What the runtime compares with a driver's limit, where loops are long: not too few, and not so many that it
    // refuses without need. count_steps takes the known side of a minimum, which may be twice the other.
    Dim iterations =
        lowered.iterations ? *lowered.iterations : lower::count_iterations(lowered.kernel, lowered.symbols);
    const auto counted = static_cast<double>(value(iterations));
    if (target.lanes_are_invocations() && std::max(counted, steps.turns) > kLong &&
        (counted < steps.turns / 2 || counted > 4 * steps.turns))
      wrong +=
          name + ": counted " + std::to_string(counted) + " turns of " + std::to_string(steps.turns) + "\n";
    if (steps.turns > limits.turns) wrong += name + ": " + std::to_string(steps.turns) + " turns\n";
    if (limits.shared && steps.turns > kSharedSteps && value(lowered.workgroups) < 2)
      wrong += name + ": one workgroup, of " + std::to_string(steps.turns) + " turns\n";
  }
  return wrong;
}

std::string check(Graph graph, const char* target_name, const Limits& limits,
                  const std::map<std::string, int64_t>& symbols = {}) {
  Expected<Target> target = find_target(target_name);
  if (!target) return to_string(target.errors());
  Expected<Graph> ready = run_graph_passes(std::move(graph), *target, CompileOptions());
  if (!ready) return to_string(ready.errors());
  schedule::Packings packings;
  Expected<schedule::Schedule> s = make_schedule(std::move(*ready), *target, packings);
  if (!s) return to_string(s.errors());
  return check(*s, *target, limits, symbols);
}

const Limits kOnGpu = {kMostTurns, false}, kOnCpu = {kMostSteps, true};

struct SingleOp {
  const char* name;
  const char* graph;  // N: 1000000, or the symbol n
  // Checks that it does not pass yet: "g" on a GPU, "f" there with a free size, "c" on a CPU.
  const char* beyond = "";
};
void PrintTo(const SingleOp& op, std::ostream* out) { *out << op.name; }

// Sums and contractions are not among them: lower_reduce and lower_contract walk a long sum in order.
const SingleOp kOps[] = {
    {"cat_of_two", "(%x: f32[N,3], %y: f32[N,3]) {\n  %z = cat %x, %y {1} : f32[N,6]\n"},
    {"cat_of_three",
     "(%x: f32[300,N], %y: f32[300,N], %w: f32[300,N]) {\n  %z = cat %x, %y, %w {0} : f32[900,N]\n"},
    {"cat_of_unequal", "(%x: f32[2,N], %y: f32[2,7]) {\n  %z = cat %x, %y {1} : f32[2,(N + 7)]\n"},
    {"scan", "(%x: f32[N]) {\n  %z = scan_sum %x {0} acc f32 : f32[N]\n"},
    {"scan_of_halves", "(%x: f16[2,N]) {\n  %z = scan_sum %x {1} exclusive reverse acc f32 : f16[2,N]\n"},
    {"scan_along_the_outer_axis", "(%x: f32[N,20]) {\n  %z = scan_max %x {0} : f32[N,20]\n"},
    {"scan_across", "(%x: f32[20,N]) {\n  %z = scan_prod %x {0} acc f32 : f32[20,N]\n"},
    {"argmax", "(%x: f32[N]) {\n  %z = reduce_argmax %x {0} : i64[]\n"},
    {"argmin_last", "(%x: i64[3,N]) {\n  %z = reduce_argmin %x {1} keepdims last : i32[3,1]\n"},
    {"argmax_along_the_outer_axis", "(%x: f32[N,20]) {\n  %z = reduce_argmax %x {0} : i64[20]\n"},
    {"argmax_across", "(%x: f32[21,N]) {\n  %z = reduce_argmax %x {0} : i64[N]\n"},
    {"first_ten", "(%x: f32[N]) {\n  %z = argsort %x {0} descending : i64[10]\n"},
    // Threads share the maxima of groups; a thousand of 31,623 groups, and then of as many elements, are selected
    // by one workgroup each.
    {"first_thousand", "(%x: f32[N]) {\n  %z = argsort %x {0} descending : i64[1000]\n", "c"},
    {"first_hundred_integers", "(%x: i64[N]) {\n  %z = argsort %x {0} : i64[100]\n"},
    {"booleans", "(%x: bool[N]) {\n  %z = argsort %x {0} descending : i64[N]\n"},
    // compiler/lower/README.md has what ranges of the places would take.
    {"scatter_elements",
     "(%x: f32[N], %i: i64[N], %u: f32[N]) {\n  %z = scatter_elements %x, %i, %u {0} set : f32[N]\n", "c"},
    {"scatter_sums",
     "(%x: f32[100,200], %i: i64[N], %u: f32[N,200]) {\n  %z = scatter_rows %x, %i, %u {0} add : "
     "f32[100,200]\n"},
    {"scatter_rows",
     "(%x: f32[100,200], %i: i64[N], %u: f32[N,200]) {\n  %z = scatter_rows %x, %i, %u {0} set : "
     "f32[100,200]\n",
     "c"},
    {"sums_of_few_places",
     "(%x: f32[30], %i: i64[N], %u: f32[N]) {\n  %z = scatter_elements %x, %i, %u {0} add : f32[30]\n"},
    {"scatter_tuples",
     "(%x: f32[500,700], %i: i64[N,2], %u: f32[N]) {\n  %z = scatter_nd %x, %i, %u {0} max : f32[500,700]\n"},
    {"gather", "(%x: f32[N], %i: i64[N]) {\n  %z = gather_elements %x, %i {0} : f32[N]\n"},
    {"permute", "(%x: f32[N,3]) {\n  %1 = permute %x {1, 0} : f32[3,N]\n  %z = contiguous %1 : f32[3,N]\n"},
    {"reflect",
     "(%x: f32[3,N]) {\n  %1 = pad %x [0:0, 2:2] reflect : f32[3,(N + 4)]\n  %z = neg %1 : f32[3,(N + 4)]\n"},
    {"softmax",
     "(%x: f32[N,20]) {\n  %1 = reduce_max %x {1} keepdims : f32[N,1]\n  %2 = expand %1 : f32[N,20]\n  %3 = "
     "sub %x, "
     "%2 : f32[N,20]\n  %z = exp %3 : f32[N,20]\n"},
};

Graph graph_of(const SingleOp& op, bool is_free) {
  std::string text = op.graph;
  auto replace_all = [&](const std::string& what, const std::string& by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  };
  if (!is_free) replace_all("(N + 4)", "1000004"), replace_all("(N + 7)", "1000007");
  replace_all("N", is_free ? "n" : "1000000");
  text = (is_free ? "symbol n min=10\n" : "") + ("graph @g" + text) + "  return z = %z\n}\n";
  Expected<Graph> graph = parse_graph(text, op.name);
  EXPECT_TRUE(graph) << to_string(graph.errors()) << text;
  return graph ? *graph : Graph();
}

class WorkgroupSize : public testing::TestWithParam<SingleOp> {};

// Compares with what the operator's row says, so that the row of one that is mended has to go.
void expect_limits(const SingleOp& op, char which, const std::string& found) {
  if (std::strchr(op.beyond, which) == nullptr)
    EXPECT_EQ(found, "");
  else
    EXPECT_NE(found, "") << "it is within the limits: remove '" << which << "' from its row";
}

TEST_P(WorkgroupSize, gpu_ends_no_loop) {
  expect_limits(GetParam(), 'g', check(graph_of(GetParam(), false), "vulkan", kOnGpu));
}
TEST_P(WorkgroupSize, gpu_ends_no_loop_of_free_size) {
  expect_limits(GetParam(), 'f', check(graph_of(GetParam(), true), "vulkan", kOnGpu, {{"n", 1'000'000}}));
}
TEST_P(WorkgroupSize, threads_share_it) {
  expect_limits(GetParam(), 'c', check(graph_of(GetParam(), false), "x86-64-v3", kOnCpu));
}

INSTANTIATE_TEST_SUITE_P(Ops, WorkgroupSize, testing::ValuesIn(kOps),
                         [](const auto& test) { return std::string(test.param.name); });

// The most iterations of a loop that the runtime is told of.
int64_t counted(const char* text, int64_t n) {
  Expected<Target> target = find_target("vulkan");
  Expected<Graph> ready = run_graph_passes(graph_of({"long", text}, true), *target, CompileOptions());
  EXPECT_TRUE(ready) << to_string(ready.errors());
  schedule::Packings packings;
  Expected<schedule::Schedule> s = make_schedule(std::move(*ready), *target, packings);
  EXPECT_TRUE(s) << to_string(s.errors());
  int64_t most = 0;
  for (const schedule::Item& item : s->items) {
    if (item.group < 0) continue;
    lower::LoweredItem lowered = lower::lower_item(*s, item, *target);
    EXPECT_TRUE(run_loop_passes({&lowered.kernel}, {}));
    Dim iterations =
        lowered.iterations ? *lowered.iterations : lower::count_iterations(lowered.kernel, lowered.symbols);
    most = std::max(most, iterations.evaluate({{"n", n}}).value_or(-1));
  }
  return most;
}

// One invocation walks a long sum in order, or sorts a line: the runtime refuses the sizes for which that takes
// too long for the driver, and no others.
TEST(WorkgroupSizeOfLongLoops, iterations_are_those_of_the_sizes) {
  for (const char* text : {"(%x: f32[N,20]) {\n  %z = reduce_sum %x {0} acc f32 : f32[20]\n",
                           "(%x: f32[8,N], %y: f32[N,16]) {\n  %z = contract %x, %y axes(m: 8, n: 16 | k: N) "
                           "a[m, k] b[k, n] out[m, n] acc f32 : f32[8,16]\n"})
    for (int64_t n : {3000, 60'000, 100'000}) {
      EXPECT_GE(counted(text, n), n) << text;
      EXPECT_LE(counted(text, n), n < 65'000 ? n + n / 16 + 1000 : 2 * n) << text;  // whole blocks of 65,536
    }
  const char* sort = "(%x: f32[5,N]) {\n  %z = argsort %x {1} : i64[5,N]\n";
  for (auto [n, passes] : {std::pair<int64_t, int64_t>{2, 1}, {100, 7}, {3000, 12}, {4097, 13}}) {
    EXPECT_GE(counted(sort, n), n * (passes + 2) + 62) << n;  // numbers, passes, results; the count of passes
    EXPECT_LE(counted(sort, n), n * (passes + 3) + 100) << n;
  }
}

TEST(WorkgroupSizeOfModels, gpu_ends_no_loop) {
  const char* data = std::getenv("QUERNEL_TEST_DATA");
  std::filesystem::path folder = std::filesystem::path(data == nullptr ? "" : data) / "models";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no models in " << folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string model = entry.path() / "model.onnx";
    if (!std::filesystem::exists(model)) continue;
    CompileOptions options;
    Expected<Imported> imported = import_model(model, options);
    if (!imported) continue;  // sizes that must be given
    EXPECT_EQ(check(std::move(imported->graph), "vulkan", kOnGpu), "") << model;
  }
}

}  // namespace
}  // namespace quernel
