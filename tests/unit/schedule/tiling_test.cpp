// Choices about kernels: their text form, files of them, and the estimates that they override.
#include "graph/text.h"
#include "pipeline/run_passes.h"
#include "schedule/choices.h"
#include "schedule/contraction/tile_estimates.h"
#include "schedule/target_passes/target_passes.h"

#include <gtest/gtest.h>

namespace quernel::schedule {
namespace {

std::string message_of(std::string_view text) {
  Expected<Choice> choice = parse_choice(text);
  return choice ? "understood" : choice.errors()[0].message;
}

TEST(Tiling, reads_what_it_prints) {
  const Tiling tilings[] = {
      {.rows = 12, .columns = 32},
      {.rows = 1, .columns = 128, .order = TileOrder::kColumns},
      {.rows = 6, .columns = 64, .order = TileOrder::kColumns, .group_work = 4096},
      {.rows = 14, .columns = 16, .winograd = 4, .block = 28},
      {},
  };
  for (const Tiling& tiling : tilings) {
    Expected<Choice> read = parse_choice(to_string(tiling));
    ASSERT_TRUE(read) << to_string(tiling);
    EXPECT_EQ(*read, Choice(tiling)) << to_string(tiling);
  }
  EXPECT_EQ(to_string(tilings[2]), "tile 6x64 order columns group 4096");
  EXPECT_EQ(to_string(tilings[3]), "winograd 4 tile 14x16 block 28");
  EXPECT_EQ(to_string(tilings[4]), "direct");
}

TEST(Tiling, says_what_it_expected) {
  for (const char* text : {"",
                           "tile",
                           "tile 12",
                           "tile x32",
                           "tile 12x",
                           "tile 0x32",
                           "tile -1x32",
                           "tile 12x32 12x32",
                           "tile 12x32 tile 12x32",
                           "order rows",
                           "tile 12x32 order sideways",
                           "tile 12x32 group 0",
                           "winograd 3 tile 12x32 block 12",
                           "winograd 4 tile 12x32",
                           "tile 12x32 block 12",
                           "winograd 4 tile 12x32 block 12 order rows",
                           "direct tile 12x32",
                           "tile 12x99999999999999999999999",
                           "block 12 winograd 4",
                           "tile 12x32 along 1"})
    EXPECT_NE(message_of(text).find("expected 'direct', 'tile ROWSxCOLUMNS"), std::string::npos) << text;
}

TEST(Tiling, tiles_of_neighbouring_rows_print_together) {
  EXPECT_EQ(tiles_text({{.rows = 2, .columns = 16},
                        {.rows = 1, .columns = 32},
                        {.rows = 1, .columns = 16},
                        {.rows = 4, .columns = 16},
                        {.rows = 4, .columns = 16, .order = TileOrder::kColumns}}),
            "1..2x16, 4x16, 1x32");
}

TEST(Choices, are_found_by_target_and_key) {
  Expected<Choices> choices = Choices::parse(
      "# choices\n"
      "\n"
      "v4  gemm f32*f32   rows 4:1:0:1 = tile 4x16   # 12 us\r\n"
      "v3 gemm f32*f32 rows 4:1:0:1 = tile 4x8\n"
      "v4 map exp axes 8 writes f32:1 = along 0   group 64\n"
      "v4 gemm f32*f32 rows 5:1:0:1 = direct",
      "choices");
  ASSERT_TRUE(choices) << to_string(choices.errors());
  const Choice* found = choices->find("v4", "gemm f32*f32 rows 4:1:0:1");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(to_string(*found), "tile 4x16");
  found = choices->find("v4", "map exp axes 8 writes f32:1");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(to_string(*found), "along 0 group 64");
  EXPECT_EQ(choices->find("v4", "gemm f32*f32 rows 6:1:0:1"), nullptr);
  EXPECT_EQ(choices->find("v2", "gemm f32*f32 rows 4:1:0:1"), nullptr);
  EXPECT_EQ(choices->unused({"v4"}), "choices:6: no kernel is 'gemm f32*f32 rows 5:1:0:1' for v4");
  EXPECT_EQ(choices->unused({"v2"}), std::nullopt);
}

TEST(Choices, every_wrong_line_is_reported_with_its_number) {
  Expected<Choices> choices = Choices::parse(
      "v4 gemm = tile 4x16\n"
      "v4 gemm tile 4x16\n"
      "v4 = tile 4x16\n"
      "v4 conv = tile 4\n"
      "v4 gemm = tile 5x16\n",
      "choices");
  ASSERT_FALSE(choices);
  std::string text = to_string(choices.errors());
  EXPECT_EQ(choices.errors().size(), 4u) << text;
  EXPECT_NE(text.find("choices:2: expected TARGET KEY = CHOICE, found 'v4 gemm tile 4x16'"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("choices:3: expected TARGET KEY = CHOICE"), std::string::npos) << text;
  EXPECT_NE(text.find("choices:4: expected 'direct', 'tile"), std::string::npos) << text;
  EXPECT_NE(text.find("choices:5: expected one choice for each kernel, found another of line 1"),
            std::string::npos)
      << text;
}

TEST(Choices, a_file_that_cannot_be_read) {
  Expected<Choices> choices = Choices::read("/nonexistent/choices");
  ASSERT_FALSE(choices);
  EXPECT_NE(
      to_string(choices.errors()).find("/nonexistent/choices: cannot be read: expected a file of choices"),
      std::string::npos)
      << to_string(choices.errors());
}

// ---- what choices do to a schedule

constexpr const char* kGemm =
    "graph @g(%x: f32[20,8]) {\n"
    "  %w = constant f32[8,64] {0.5 ...}\n"
    "  %y = contract %x, %w axes(m: 20, n: 64 | k: 8) a[m, k] b[k, n] out[m, n] acc f32 : f32[20,64]\n"
    "  return y = %y\n"
    "}\n";
constexpr const char* kGemmText = "gemm f32*f32 packed rows 20:8:64 columns 64:0:1 reduce 8:1:0";

Expected<Schedule> schedule_of(const std::string& text, Choices* choices,
                               const Target& target = *find_target("x86-64-v4")) {
  QUERNEL_TRY(Graph graph, parse_graph(text));
  QUERNEL_TRY(graph, choose_winograd(graph, target, choices));
  QUERNEL_TRY(graph, materialize_operands(graph, target));
  Packings packings(choices);
  return make_schedule(std::move(graph), target, packings);
}

Expected<Schedule> scheduled_with(const std::string& text, const std::string& lines) {
  QUERNEL_TRY(Choices choices, Choices::parse(lines, "choices"));
  return schedule_of(text, &choices);
}

TEST(Tilings, a_choice_overrides_the_estimate) {
  Expected<Schedule> estimated = schedule_of(kGemm, nullptr);
  ASSERT_TRUE(estimated) << to_string(estimated.errors());
  EXPECT_EQ(estimated->groups[0].key, kGemmText);
  EXPECT_EQ(kernel_class(estimated->groups[0]), "gemm");
  Target target = *find_target("x86-64-v4");
  EXPECT_EQ(tilings(estimated->groups[0].contraction, target)[0],
            tiling_of(estimated->groups[0].contraction));
  Expected<Schedule> chosen =
      scheduled_with(kGemm, std::string("x86-64-v4 ") + kGemmText + " = tile 3x48 order columns group 4096");
  ASSERT_TRUE(chosen) << to_string(chosen.errors());
  const ContractionPlan& plan = chosen->groups[0].contraction;
  EXPECT_EQ(to_string(tiling_of(plan)), "tile 3x48 order columns group 4096");
  EXPECT_EQ(plan.panel_v, 3);
}

// Rows of floats by quantised weights: what int8 dot products of a target need takes no registers from their tiles.
TEST(Tilings, of_floats_do_not_depend_on_dot_products) {
  const std::string text =
      "graph @g(%x: f32[64,64]) {\n  %q = constant u4[96,64] {5 ...}\n  %s = constant f32[96,2] {0.5 ...}\n"
      "  %w = dequantize %q, %s {1, 32} : f32[96,64]\n"
      "  %y = contract %x, %w axes(m: 64, n: 96 | k: 64) a[m, k] b[n, k] out[m, n] acc f32 : f32[64,96]\n"
      "  return y = %y\n}\n";
  Target with = *find_target("cortex-a76"), without = with;
  without.has_dot_s8_s8 = without.has_dot_u8_u8 = without.has_dot_words = false;
  Expected<Schedule> a = schedule_of(text, nullptr, with), b = schedule_of(text, nullptr, without);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->groups[0].contraction.blocks);
  EXPECT_EQ(tiling_of(a->groups[0].contraction), tiling_of(b->groups[0].contraction));
}

// On a GPU the choice is the side of tiles; what has more to say is refused, and groups have no choice.
TEST(Tilings, a_gpu_takes_the_side_of_winograd_tiles) {
  auto nodes = [](const std::string& choice, int groups) -> std::string {
    std::string g = std::to_string(groups), c = std::to_string(32 * groups);
    Expected<Graph> graph = parse_graph(
        "graph @g(%x: f32[1,10,10," + c + "]) {\n  %w = constant f32[" + c + ",32,3,3] {0.5 ...}\n" +
        "  %y = contract %x, %w axes(h: 8, w: 8, g: " + g + ", o: 32 | c: 32, i: 3, j: 3) " +
        "a[0, h + i, w + j, 32*g + c] b[32*g + o, c, i, j] out[0, h, w, 32*g + o] acc f32 : f32[1,8,8," + c +
        "]\n  return y = %y\n}\n");
    EXPECT_TRUE(graph) << to_string(graph.errors());
    std::string key = "vulkan winograd f32 ";
    if (groups > 1) key += "groups " + g + " ";
    Expected<Choices> choices =
        Choices::parse(key + "image 8x8 channels 32 columns 32 = " + choice, "choices");
    if (!choices) return to_string(choices.errors());
    Expected<Graph> chosen = choose_winograd(*graph, *find_target("vulkan"), &*choices);
    if (!chosen) return to_string(chosen.errors());
    for (const Node& node : chosen->nodes)
      if (node.op == OpKind::k_winograd_input) return "tiles of " + std::to_string(node.attributes.ints[0]);
    return "direct";
  };
  EXPECT_EQ(nodes("winograd 2", 1), "tiles of 2");
  EXPECT_EQ(nodes("winograd 4", 1), "tiles of 4");
  EXPECT_EQ(nodes("direct", 1), "direct");
  EXPECT_EQ(nodes("winograd 4", 2), "direct");
  EXPECT_NE(nodes("winograd 4 tile 4x64 block 8", 1).find("expected 'direct' or 'winograd 2|4' for"),
            std::string::npos);
  EXPECT_EQ(to_string(*parse_choice("winograd 4")), "winograd 4");
}

TEST(Tilings, the_larger_operand_passes_once) {
  // Every other pixel of 64 channels, as a strided 1x1 convolution reads them.
  auto order = [](int pixels, int channels, const std::string& shape, const std::string& index) {
    std::string x = std::to_string(2 * pixels), m = std::to_string(pixels), n = std::to_string(channels);
    std::string dims = shape == "channels first" ? "64," + x : x + ",64";
    std::string text = "graph @g(%x: f32[" + dims + "]) {\n  %w = constant f32[64," + n +
                       "] {0.5 ...}\n  %y = contract %x, %w axes(m: " + m + ", n: " + n + " | k: 64) a[" +
                       index + "] b[k, n] out[n, m] acc f32 : f32[" + n + "," + m + "]\n  return y = %y\n}\n";
    Expected<Schedule> s = schedule_of(text, nullptr);
    EXPECT_TRUE(s) << to_string(s.errors());
    return s ? s->groups[0].contraction.order : TileOrder::kRows;
  };
  EXPECT_EQ(order(4000, 64, "channels first", "k, 2*m"), TileOrder::kColumns);
  EXPECT_EQ(order(4000, 9000, "channels first", "k, 2*m"), TileOrder::kRows) << "b is the larger one";
  EXPECT_EQ(order(400, 64, "channels first", "k, 2*m"), TileOrder::kRows) << "a stays in the cache";
  EXPECT_EQ(order(4000, 64, "channels last", "2*m, k"), TileOrder::kRows) << "rows are streams";
}

TEST(Tilings, columns_that_rows_of_windows_share_stay_near) {
  auto contraction = [](int size, int channels) {
    std::string x = std::to_string(size), padded = std::to_string(size + 2), c = std::to_string(channels);
    std::string text = "graph @g(%x: f32[1," + x + "," + x + "," + c + "]) {\n  %w = constant f32[" + c +
                       ",3,3] {0.5 ...}\n  %p = pad %x [0:0, 1:1, 1:1, 0:0] fill 0 : f32[1," + padded + "," +
                       padded + "," + c + "]\n  %y = contract %p, %w axes(n: 1, y: " + x + ", x: " + x +
                       ", c: " + c + " | i: 3, j: 3) a[n, y + i, x + j, c] b[c, i, j] out[n, y, x, c] acc " +
                       "f32 : f32[1," + x + "," + x + "," + c + "]\n  return y = %y\n}\n";
    Expected<Schedule> s = schedule_of(text, nullptr);
    EXPECT_TRUE(s) << to_string(s.errors());
    return s ? s->groups[0].contraction : ContractionPlan();
  };
  ContractionPlan plan = contraction(14, 576);
  EXPECT_EQ(plan.windows.size(), 2u) << "the padded image is read as it lies";
  EXPECT_EQ(plan.order, TileOrder::kRows);
  EXPECT_EQ(contraction(14, 512).order, TileOrder::kColumns) << "lines fall into few of the cache's sets";
  EXPECT_EQ(contraction(224, 96).order, TileOrder::kColumns) << "the image outgrows the cache";
}

TEST(Tilings, rows_that_fall_into_one_set_of_the_cache_are_few) {
  auto rows = [](int steps) {
    std::string k = std::to_string(steps);
    Expected<Schedule> s =
        schedule_of("graph @g(%x: f32[49," + k + "]) {\n  %w = constant f32[" + k +
                        ",1024] {0.5 ...}\n  %y = contract %x, %w axes(m: 49, n: 1024 | k: " + k +
                        ") a[m, k] b[k, n] out[m, n] acc f32 : f32[49,1024]\n  return y = %y\n}\n",
                    nullptr);
    EXPECT_TRUE(s) << to_string(s.errors());
    return s ? s->groups[0].contraction.tile_m : 0;
  };
  EXPECT_GT(rows(1000), 8);
  EXPECT_LE(rows(1024), 8) << "4096 bytes apart";
}

TEST(Tilings, a_choice_that_is_not_possible_is_refused) {
  for (const char* tiling : {"tile 15x16", "tile 4x24", "winograd 2 tile 4x16 block 4", "direct"}) {
    Expected<Schedule> chosen = scheduled_with(kGemm, std::string("x86-64-v4 ") + kGemmText + " = " + tiling);
    ASSERT_FALSE(chosen) << tiling;
    std::string text = to_string(chosen.errors());
    EXPECT_NE(text.find("choices:1: expected a tile among 1..14x16, 1..14x32, 1..9x48"), std::string::npos)
        << text;
    EXPECT_NE(text.find(std::string("found '") + tiling + "'"), std::string::npos) << text;
  }
}

std::string convolution(int size) {
  auto s = [](int v) { return std::to_string(v); };
  return "graph @g(%x: f32[1," + s(size + 2) + "," + s(size + 2) + ",64]) {\n" +
         "  %w = constant f32[64,64,3,3] {0.5 ...}\n" +
         "  %y = contract %x, %w axes(n: 1, o: 64, y: " + s(size) + ", x: " + s(size) +
         " | ky: 3, kx: 3, c: 64) a[n, y + ky, x + kx, c] b[o, c, ky, kx] out[n, y, x, o] acc f32 : f32[1," +
         s(size) + "," + s(size) + ",64]\n  return y = %y\n}\n";
}

TEST(Tilings, choose_the_algorithm_of_convolutions) {
  const std::string text = "winograd f32 image 28x28 channels 64 columns 64";
  Expected<Schedule> estimated = schedule_of(convolution(28), nullptr);
  ASSERT_TRUE(estimated) << to_string(estimated.errors());
  EXPECT_EQ(estimated->groups[0].key, text);
  EXPECT_NE(estimated->groups[0].winograd.tile, 0);
  EXPECT_EQ(kernel_class(estimated->groups[0]), "winograd");

  Expected<Schedule> direct = scheduled_with(convolution(28), "x86-64-v4 " + text + " = direct");
  ASSERT_TRUE(direct) << to_string(direct.errors());
  EXPECT_EQ(direct->groups[0].winograd.tile, 0);
  EXPECT_EQ(kernel_class(direct->groups[0]), "conv3x3");

  Expected<Schedule> chosen =
      scheduled_with(convolution(28), "x86-64-v4 " + text + " = winograd 2 tile 6x32 block 12");
  ASSERT_TRUE(chosen) << to_string(chosen.errors());
  EXPECT_EQ(to_string(tiling_of(chosen->groups[0].winograd)), "winograd 2 tile 6x32 block 12");

  const std::pair<const char*, const char*> wrong[] = {
      {"tile 6x32", "choices:1: expected 'direct' or 'winograd 2|4 …' for 'winograd f32"},
      {"winograd 2 tile 6x32 block 13", "choices:1: expected a tile among 1..14x16"},
      {"winograd 2 tile 6x32 block 6000",
       "and a block of a multiple of its rows that the image and 2 MB of scratch hold"},
      {"winograd 2 tile 15x16 block 15", "without the line the estimated choice holds"},
  };
  for (auto [choice, says] : wrong) {
    Expected<Schedule> refused = scheduled_with(convolution(28), "x86-64-v4 " + text + " = " + choice);
    ASSERT_FALSE(refused) << choice;
    EXPECT_NE(to_string(refused.errors()).find(says), std::string::npos) << to_string(refused.errors());
  }
}

}  // namespace
}  // namespace quernel::schedule
