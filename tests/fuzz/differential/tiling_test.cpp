// Every tiling that a contraction's kernel may be given, against the interpreter: each class of contractions,
// with rows and columns that tiles do not divide, on every target that this machine runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "graph/interpret.h"
#include "graph/text.h"
#include "host_targets.h"
#include "pipeline/pipeline.h"
#include "pipeline/run_passes.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"
#include "schedule/contraction/tile_estimates.h"

namespace quernel::testing {
namespace {

using schedule::Tiling;

struct Case {
  const char* name;
  const char* text;
};

const Case kCases[] = {
    {"gemm",
     "graph @g(%x: f32[29,9], %r: f32[29,53]) {\n"
     "  %w = constant f32[9,53] {#477}\n"
     "  %y = contract %x, %w axes(m: 29, n: 53 | k: 9) a[m, k] b[k, n] out[m, n] acc f32 : f32[29,53]\n"
     "  %s = add %y, %r : f32[29,53]\n"
     "  return s = %s\n}\n"},
    {"gemm_of_many_rows",
     "graph @g(%x: f32[131,9]) {\n"
     "  %w = constant f32[9,53] {#477}\n"
     "  %y = contract %x, %w axes(m: 131, n: 53 | k: 9) a[m, k] b[k, n] out[m, n] acc f32 : f32[131,53]\n"
     "  return y = %y\n}\n"},
    {"gemm_of_bytes",
     "graph @g(%x: i8[29,24]) {\n"
     "  %w = constant i8[24,53] {#1272}\n"
     "  %y = contract %x, %w axes(m: 29, n: 53 | k: 24) a[m, k] b[k, n] out[m, n] acc i32 : i32[29,53]\n"
     "  return y = %y\n}\n"},
    {"gemv",
     "graph @g(%x: f32[1,40]) {\n"
     "  %w = constant f32[40,130] {#5200}\n"
     "  %y = contract %x, %w axes(m: 1, n: 130 | k: 40) a[m, k] b[k, n] out[m, n] acc f32 : f32[1,130]\n"
     "  return y = %y\n}\n"},
    {"batched_gemm",
     "graph @g(%x: f32[3,18,7], %z: f32[3,7,37]) {\n"
     "  %y = contract %x, %z axes(b: 3, m: 18, n: 37 | k: 7) a[b, m, k] b[b, k, n] out[b, m, n] acc f32 : "
     "f32[3,18,37]\n"
     "  return y = %y\n}\n"},
    {"conv3x3",
     "graph @g(%x: f32[1,17,15,5]) {\n"
     "  %w = constant f32[20,5,3,3] {#900}\n"
     "  %y = contract %x, %w axes(n: 1, o: 20, y: 8, x: 7 | ky: 3, kx: 3, c: 5) a[n, 2*y + ky, 2*x + kx, "
     "c] b[o, c, ky, kx] out[n, y, x, o] acc f32 : f32[1,8,7,20]\n"
     "  return y = %y\n}\n"},
    {"depthwise3x3",
     "graph @g(%x: f32[1,11,14,37]) {\n"
     "  %w = constant f32[37,3,3] {#333}\n"
     "  %y = contract %x, %w axes(n: 1, y: 9, x: 12, c: 37 | ky: 3, kx: 3) a[n, y + ky, x + kx, c] b[c, ky, "
     "kx] out[n, y, x, c] acc f32 : f32[1,9,12,37]\n"
     "  return y = %y\n}\n"},
    {"depthwise5x5_of_padded_image",
     "graph @g(%x: f32[1,9,23,37]) {\n"
     "  %p = pad %x [0:0, 2:2, 2:2, 0:0] fill 0 : f32[1,13,27,37]\n"
     "  %w = constant f32[37,5,5] {#925}\n"
     "  %y = contract %p, %w axes(n: 1, y: 9, x: 23, c: 37 | i: 5, j: 5) a[n, y + i, x + j, c] b[c, i, j] "
     "out[n, y, x, c] acc f32 : f32[1,9,23,37]\n"
     "  return y = %y\n}\n"},
    {"grouped3x3",
     "graph @g(%x: f32[1,7,8,4,6]) {\n"
     "  %w = constant f32[4,10,6,3,3] {#2160}\n"
     "  %y = contract %x, %w axes(n: 1, y: 5, x: 6, g: 4, o: 10 | ky: 3, kx: 3, c: 6) a[n, y + ky, x + kx, "
     "g, "
     "c] b[g, o, c, ky, kx] out[n, y, x, g, o] acc f32 : f32[1,5,6,4,10]\n"
     "  return y = %y\n}\n"},
    {"gemm_of_turned_results",
     "graph @g(%x: f32[2,35,9], %r: f32[2,37,35]) {\n"
     "  %w = constant f32[37,9] {#333}\n"
     "  %y = contract %x, %w axes(b: 2, m: 35, n: 37 | k: 9) a[b, m, k] b[n, k] out[b, n, m] acc f32 : "
     "f32[2,37,35]\n"
     "  %s = add %y, %r : f32[2,37,35]\n"
     "  return s = %s, y = %y\n}\n"},
    {"gemm_of_turned_bytes",
     "graph @g(%x: i8[35,9]) {\n"
     "  %w = constant i8[9,53] {#477}\n"
     "  %y = contract %x, %w axes(m: 35, n: 53 | k: 9) a[m, k] b[k, n] out[n, m] acc i32 : i32[53,35]\n"
     "  return y = %y\n}\n"},
    {"conv1x1_of_bytes",
     "graph @g(%x: u8[2,24,7,5]) {\n"
     "  %w = constant i8[53,24,1,1] {#1272}\n"
     "  %y = contract %x, %w axes(n: 2, o: 53, y: 7, x: 5 | c: 24) a[n, c, y, x] b[o, c, 0, 0] out[n, o, y, "
     "x] "
     "acc i32 : i32[2,53,7,5]\n"
     "  return y = %y\n}\n"},
    {"gemm_of_turned_operand_of_bytes",
     "graph @g(%x: i8[26,35]) {\n"
     "  %t = permute %x {1, 0} : i8[35,26]\n"
     "  %w = constant i8[26,53] {#1378}\n"
     "  %y = contract %t, %w axes(m: 35, n: 53 | k: 26) a[m, k] b[k, n] out[m, n] acc i32 : i32[35,53]\n"
     "  return y = %y\n}\n"},
    {"conv3x3_of_few_channels",
     "graph @g(%x: f32[2,3,17,45]) {\n"
     "  %p = pad %x [0:0, 0:0, 1:1, 1:1] fill 0 : f32[2,3,19,47]\n"
     "  %w = constant f32[11,3,3,3] {#297}\n"
     "  %y = contract %p, %w axes(n: 2, o: 11, y: 9, x: 23 | c: 3, i: 3, j: 3) a[n, c, 2*y + i, 2*x + j] "
     "b[o, c, i, j] out[n, o, y, x] acc f32 : f32[2,11,9,23]\n"
     "  return y = %y\n}\n"},
    {"winograd",
     "graph @g(%x: f32[1,11,12,6]) {\n"
     "  %w = constant f32[20,6,3,3] {#1080}\n"
     "  %y = contract %x, %w axes(n: 1, y: 9, x: 10, o: 20 | c: 6, i: 3, j: 3) a[n, y + i, x + j, c] b[o, c, "
     "i, j] out[n, y, x, o] acc f32 winograd 4 : f32[1,9,10,20]\n"
     "  return y = %y\n}\n"},
};

// The text with as many values in the place of "#360".
std::string text_of(const Case& c) {
  std::string text = c.text;
  size_t at = text.find('#');
  if (at == std::string::npos) return text;
  size_t end = text.find('}', at);
  std::string values;
  bool bytes = text.find("constant i8") != std::string::npos;
  for (int i = 0; i < std::stoi(text.substr(at + 1, end - at - 1)); ++i) {
    int value = i * 7919 % 23 - 11;
    values += (i ? ", " : "") + (bytes ? std::to_string(value * 11) : std::to_string(value / 10.0));
  }
  return text.replace(at, end - at, values);
}

class Tilings : public ::testing::TestWithParam<Case> {
 protected:
  Tilings() {
    int file = mkstemp(path_);
    if (file >= 0) close(file);
  }
  ~Tilings() override { unlink(path_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  char path_[64] = "/tmp/quernel-tilings-XXXXXX";
};

// All orders and splits, in turns.
std::vector<Tiling> all_tilings(const schedule::Group& group, const Target& target) {
  if (group.winograd.tile != 0) {
    std::vector<Tiling> result = schedule::tilings(group.winograd, target);
    for (size_t i = 0; i < result.size(); i += 2) result[i].block = result[i].rows;
    return result;
  }
  std::vector<Tiling> result = schedule::tilings(group.contraction, target);
  constexpr int64_t kWork[] = {Tiling::kGroupWork, 1, 3000};
  for (size_t i = 0; i < result.size(); ++i) {
    result[i].order = i % 2 == 1 ? schedule::TileOrder::kColumns : schedule::TileOrder::kRows;
    result[i].group_work = kWork[i % 3];
  }
  return result;
}

TEST_P(Tilings, equal_the_interpreter) {
  Expected<Graph> graph = parse_graph(text_of(GetParam()));
  ASSERT_TRUE(graph) << to_string(graph.errors());
  std::vector<Tensor> inputs = random_inputs(*graph, 5);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  int tried = 0;
  for (const std::string& name : host_targets()) {
    CompileOptions options;
    options.targets = {name};
    Target target = *find_target(name);
    Expected<Graph> ready = run_graph_passes(*graph, target, options);
    ASSERT_TRUE(ready) << to_string(ready.errors());
    schedule::Packings packings;
    Expected<schedule::Schedule> plan = make_schedule(std::move(*ready), target, packings);
    ASSERT_TRUE(plan) << to_string(plan.errors());
    const schedule::Group* group = nullptr;
    for (const schedule::Group& g : plan->groups)
      if (g.kind == schedule::GroupKind::kContract) group = &g;
    ASSERT_NE(group, nullptr);
    std::string name_of_class = GetParam().name;
    EXPECT_EQ(schedule::kernel_class(*group), name_of_class.substr(0, name_of_class.find("_of_")));
    for (const Tiling& tiling : all_tilings(*group, target)) {
      std::string choice = to_string(tiling);
      write(name + " " + group->key + " = " + choice + "\n");
      options.tuning_file = path_;
      Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1 + tried % 2);
      ASSERT_TRUE(got) << choice << ": " << to_string(got.errors());
      for (size_t i = 0; i < want->size(); ++i)
        EXPECT_EQ(difference((*got)[i], (*want)[i], 1e-4, 1e-4), "") << name << ": " << choice;
      ++tried;
    }
  }
  std::printf("%d tilings\n", tried);
  EXPECT_GT(tried, 10);
}

INSTANTIATE_TEST_SUITE_P(Classes, Tilings, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace quernel::testing
