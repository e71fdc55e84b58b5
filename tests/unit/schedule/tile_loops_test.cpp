// Which loops over a contraction's tiles are outermost, so that threads share its work.
#include "schedule/contraction/tile_loops.h"
#include "graph/text.h"
#include "pipeline/run_passes.h"
#include "schedule/choice_words.h"
#include "schedule/target_passes/target_passes.h"

#include <gtest/gtest.h>

namespace quernel::schedule {
namespace {

// "p1:8 p0:4 p1:3": the places of the loops and their extents, outermost first, those of one position left
// out.
std::string loops_of(const std::string& text, const char* target_name, const char* tiling) {
  Target target = *find_target(target_name);
  Expected<Graph> graph = parse_graph(text, "graph");
  if (!graph) return to_string(graph.errors());
  Expected<Graph> ready = materialize_operands(*std::move(graph), target);
  if (!ready) return to_string(ready.errors());
  Packings packings;
  Expected<Schedule> schedule = make_schedule(*std::move(ready), target, packings);
  if (!schedule) return to_string(schedule.errors());
  for (Group& group : schedule->groups) {
    if (group.kind != GroupKind::kContract) continue;
    ContractionPlan plan = group.contraction;
    set_tiling(plan, *parse_tiling(words_of(tiling)));
    std::string result;
    for (const TileLoop& loop : tile_loops(plan, target))
      if (!(loop.extent == Dim(1)))
        result += (result.empty() ? "p" : " p") + std::to_string(loop.place) + ":" + to_string(loop.extent);
    return result;
  }
  return "no contraction";
}

std::string gemm(int rows, int steps, int columns) {
  std::string m = std::to_string(rows), k = std::to_string(steps), n = std::to_string(columns);
  return "graph @g(%x: f32[" + m + "," + k + "]) {\n  %w = constant f32[" + k + "," + n +
         "] {0.5 ...}\n  %y = contract %x, %w axes(m: " + m + ", n: " + n + " | k: " + k +
         ") a[m, k] b[k, n] out[m, n] acc f32 : f32[" + m + "," + n + "]\n  return y = %y\n}\n";
}

// Places of a product: 0 its columns, 1 its rows.
TEST(TileLoops, blocks_of_rows_come_before_columns) {
  EXPECT_EQ(loops_of(gemm(640, 64, 128), "x86-64-v4", "tile 10x32"), "p1:8 p0:4 p1:8");
  EXPECT_EQ(loops_of(gemm(640, 64, 128), "aarch64", "tile 10x8"), "p1:8 p0:16 p1:8");
}

TEST(TileLoops, blocks_are_nearly_equal) {
  // 62 tiles: seven of eight blocks of 8, the last of 6.
  EXPECT_EQ(loops_of(gemm(620, 64, 128), "x86-64-v4", "tile 10x32"), "p1:8 p0:4 p1:8");
  // Of 9 tiles four blocks have 2 and one has 1, of which three of 3 differ less.
  EXPECT_EQ(loops_of(gemm(90, 64, 128), "x86-64-v4", "tile 10x32"), "p1:3 p0:4 p1:3");
  EXPECT_EQ(loops_of(gemm(50, 64, 128), "x86-64-v4", "tile 10x32"), "p0:4 p1:5");
}

TEST(TileLoops, weights_that_outgrow_the_cache_pass_once) {
  EXPECT_EQ(loops_of(gemm(640, 2048, 512), "x86-64-v4", "tile 10x32"), "p0:16 p1:64");
}

TEST(TileLoops, rows_are_outermost_already) {
  EXPECT_EQ(loops_of(gemm(640, 64, 128), "x86-64-v4", "tile 10x32 order columns"), "p1:64 p0:4");
}

TEST(TileLoops, where_no_threads_share_them_tiles_have_the_order_of_the_plan) {
  EXPECT_EQ(loops_of(gemm(640, 64, 128), "cortex-m7", "tile 4x2"), "p0:64 p1:160");
}

// Places of a depthwise convolution: 0 rows of results, 1 channels, 2 tiles along a row. Of groups: 0 groups,
// 1 columns, 2 rows.
TEST(TileLoops, rows_of_an_image_come_before_its_channels_and_groups) {
  const std::string depthwise =
      "graph @g(%x: f32[1,42,42,64]) {\n"
      "  %w = constant f32[64,3,3] {0.5 ...}\n"
      "  %y = contract %x, %w axes(n: 1, y: 40, x: 40, c: 64 | i: 3, j: 3) a[n, y + i, x + j, c] b[c, i, j] "
      "out[n, y, x, c] acc f32 : f32[1,40,40,64]\n"
      "  return y = %y\n}\n";
  EXPECT_EQ(loops_of(depthwise, "x86-64-v4", "tile 10x32"), "p0:8 p1:2 p0:5 p2:4");
  const std::string grouped =
      "graph @g(%x: f32[400,4,24]) {\n"
      "  %w = constant f32[4,24,48] {0.5 ...}\n"
      "  %y = contract %x, %w axes(m: 400, g: 4, n: 48 | k: 24) a[m, g, k] b[g, k, n] out[m, g, n] acc f32 : "
      "f32[400,4,48]\n"
      "  return y = %y\n}\n";
  EXPECT_EQ(loops_of(grouped, "x86-64-v4", "tile 10x48"), "p2:8 p0:4 p2:5");
}

}  // namespace
}  // namespace quernel::schedule
