// Choices about loops: their text form, and what they do to the plans of maps, reductions and scans.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text.h"
#include "pipeline/run_passes.h"
#include "schedule/choices.h"

namespace quernel::schedule {
namespace {

TEST(LoopChoice, reads_what_it_prints) {
  const std::pair<LoopChoice, const char*> choices[] = {
      {{.along = 1, .group_work = 8192}, "along 1 group 8192"},
      {{.along = 0, .tiles = 16, .across = 2}, "along 0 tiles 16 across 2"},
      {{.along = 2, .windows = 4, .rows = 3}, "along 2 windows 4 rows 3"},
      {{.along = LoopChoice::kNone}, "along none"},
      {{.group_work = 64}, "group 64"},
  };
  for (const auto& [choice, text] : choices) {
    EXPECT_EQ(to_string(choice), text);
    Expected<Choice> read = parse_choice(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(*read, Choice(choice)) << text;
  }
}

TEST(LoopChoice, says_what_it_expected) {
  for (const char* text :
       {"along", "along -1", "along 64", "along x", "along 1 along 1", "group 0", "group none",
        "tiles 16 across 0", "along 1 tiles 16", "along 1 across 0", "along none tiles 8 across 0",
        "along 1 rows 2", "windows 1", "along 0 windows 1 tiles 4 across 1", "along 0 order rows"}) {
    Expected<Choice> choice = parse_choice(text);
    ASSERT_FALSE(choice) << text;
    EXPECT_NE(
        choice.errors()[0].message.find("for loops '[along AXIS|none] [tiles SIDE across AXIS] [windows"),
        std::string::npos)
        << choice.errors()[0].message;
  }
}

// ---- what choices do to a schedule

Expected<Schedule> schedule_of(const std::string& text, const std::string& target_name, Choices* choices) {
  QUERNEL_TRY(Target target, find_target(target_name));
  QUERNEL_TRY(Graph graph, parse_graph(text));
  Packings packings(choices);
  return make_schedule(std::move(graph), target, packings);
}

// The choice that the first kernel has without a file, with its key.
std::pair<std::string, std::string> estimated(const std::string& text,
                                              const std::string& target = "x86-64-v4") {
  Expected<Schedule> s = schedule_of(text, target, nullptr);
  EXPECT_TRUE(s) << to_string(s.errors());
  return {s->groups[0].key, choice_text(s->groups[0])};
}

Expected<Schedule> chosen(const std::string& text, const std::string& choice,
                          const std::string& target = "x86-64-v4") {
  QUERNEL_TRY(Choices choices,
              Choices::parse(target + " " + estimated(text, target).first + " = " + choice, "choices"));
  Expected<Schedule> s = schedule_of(text, target, &choices);
  EXPECT_EQ(choices.unused({target}), std::nullopt);
  return s;
}

constexpr const char* kTransposed =
    "graph @g(%x: f32[64,300]) {\n"
    "  %t = permute %x {1, 0} : f32[300,64]\n"
    "  %y = exp %t : f32[300,64]\n"
    "  return y = %y\n}\n";
constexpr const char* kPool =
    "graph @g(%x: f32[2,9,24]) {\n"
    "  %v = view %x [d0, 2*d1 + d3, 2*d2 + d4 + -1] if 0 <= 2*d2 + d4 + -1 < 24 fill -inf : f32[2,4,12,3,3]\n"
    "  %y = reduce_max %v {3, 4} : f32[2,4,12]\n"
    "  return y = %y\n}\n";
constexpr const char* kScan =
    "graph @g(%x: f32[40,9,30]) {\n"
    "  %y = scan_sum %x {1} acc f32 : f32[40,9,30]\n"
    "  return y = %y\n}\n";

TEST(LoopChoice, a_map_takes_another_axis_tiles_and_work) {
  auto [key, choice] = estimated(kTransposed);
  EXPECT_EQ(key, "map exp axes 300 64 reads f32:1:300 writes f32:64:1 tiles 16:1:0");
  EXPECT_EQ(choice, "along 1 tiles 16 across 0 group 8192");
  for (const char* other : {"along 0 group 64", "along 1 group 8192", "along 1 tiles 4 across 0 group 100",
                            "along 1 tiles 16 across 0 group 1"}) {
    Expected<Schedule> s = chosen(kTransposed, other);
    ASSERT_TRUE(s) << to_string(s.errors());
    EXPECT_EQ(s->groups[0].key, key);
    EXPECT_EQ(choice_text(s->groups[0]), other);
  }
  Expected<Schedule> part = chosen(kTransposed, "group 4096");
  ASSERT_TRUE(part) << to_string(part.errors());
  EXPECT_EQ(choice_text(part->groups[0]), "along 1 tiles 16 across 0 group 4096") << "the rest as estimated";
  Expected<Schedule> plain = chosen(kTransposed, "along 1");
  ASSERT_TRUE(plain) << to_string(plain.errors());
  EXPECT_EQ(choice_text(plain->groups[0]), "along 1 group 8192") << "no tiles, where it does not say them";
}

TEST(LoopChoice, numbers_of_values_do_not_change_a_key) {
  const std::string text =
      "graph @g(%x: f32[64,300]) {\n"
      "  %a = neg %x : f32[64,300]\n"
      "  %t = permute %x {1, 0} : f32[300,64]\n"
      "  %y = exp %t : f32[300,64]\n"
      "  return a = %a, y = %y\n}\n";
  Expected<Schedule> s = schedule_of(text, "x86-64-v4", nullptr);
  ASSERT_TRUE(s) << to_string(s.errors());
  const std::string key = estimated(kTransposed).first;
  EXPECT_TRUE(std::any_of(s->groups.begin(), s->groups.end(), [&](const Group& g) { return g.key == key; }));
}

TEST(LoopChoice, a_reduction_takes_another_axis_windows_and_rows) {
  auto [key, choice] = estimated(kPool);
  EXPECT_EQ(key,
            "reduce reduce_max acc f32 axes 2 4 12 reduce 3 3 reads f32:216:48:2:24:1 writes f32:48:12:1:0:0 "
            "windows 2:4");
  EXPECT_EQ(choice, "along 2 windows 4 rows 4 group 16384");
  for (const char* other : {"along 2 group 16384", "along 4 group 7", "along none group 16384",
                            "along 2 windows 4 rows 1 group 16384", "along 2 windows 4 rows 3 group 64"}) {
    Expected<Schedule> s = chosen(kPool, other);
    ASSERT_TRUE(s) << to_string(s.errors());
    EXPECT_EQ(s->groups[0].key, key);
    EXPECT_EQ(choice_text(s->groups[0]), other);
  }
}

TEST(LoopChoice, a_scan_takes_another_axis) {
  auto [key, choice] = estimated(kScan);
  EXPECT_EQ(key, "ordered scan_sum acc f32 axes 40 30 scan 9 reads f32:270:1:30 writes f32:270:1:30");
  EXPECT_EQ(choice, "along 1 group 16384");
  for (const char* other : {"along 0 group 300", "along none group 16384"}) {
    Expected<Schedule> s = chosen(kScan, other);
    ASSERT_TRUE(s) << to_string(s.errors());
    EXPECT_EQ(choice_text(s->groups[0]), other);
  }
}

TEST(LoopChoice, other_kernels_take_the_work_of_a_workgroup) {
  const std::pair<std::string, std::string> kernels[] = {
      {"  %y = argsort %x {1} : i64[8,30]\n", "ordered argsort reads f32:8:30 writes i64:8:30"},
      {"  %m = reduce_max %x {1} keepdims : f32[8,1]\n  %e = expand %m : f32[8,30]\n  %y = sub %x, %e : "
       "f32[8,30]\n",
       "rows reduce_max,sub reads f32:8:30 writes f32:8:30"},
      {"  %y = cat %x, %x {0} : f32[16,30]\n", "cat cat reads f32:8:30 writes f32:16:30"},
  };
  for (const auto& [nodes, key] : kernels) {
    const std::string text = "graph @g(%x: f32[8,30]) {\n" + nodes + "  return y = %y\n}\n";
    EXPECT_EQ(estimated(text).first, key);
    Expected<Schedule> s = chosen(text, "group 60");
    ASSERT_TRUE(s) << to_string(s.errors());
    EXPECT_EQ(choice_text(s->groups[0]), "group 60");
    s = chosen(text, "along 0");
    ASSERT_FALSE(s);
    EXPECT_NE(to_string(s.errors()).find("choices:1: expected 'group' up to 1073741824 for '" + key + "'"),
              std::string::npos)
        << to_string(s.errors());
  }
}

TEST(LoopChoice, kernels_of_bare_metal_have_one_workgroup) {
  const std::string cat =
      "graph @g(%x: f32[8,30]) {\n  %y = cat %x, %x {0} : f32[16,30]\n  return y = %y\n}\n";
  Expected<Schedule> s = chosen(cat, "group 60", "cortex-m4");
  ASSERT_FALSE(s);
  EXPECT_NE(to_string(s.errors()).find("choices:1: expected no choice for 'cat cat reads f32:8:30"),
            std::string::npos)
      << to_string(s.errors());
  EXPECT_EQ(estimated(kTransposed, "cortex-m4").second.find("group"), std::string::npos);
  s = chosen(kTransposed, "group 60", "cortex-m4");
  ASSERT_FALSE(s);
  EXPECT_NE(to_string(s.errors()).find("expected 'along 1', 'along 0' for 'map exp"), std::string::npos)
      << to_string(s.errors());
}

TEST(LoopChoice, what_is_not_possible_is_refused) {
  struct Case {
    const char *text, *choice, *says;
    const char* target = "x86-64-v4";
  };
  const Case cases[] = {
      {kTransposed, "along 2",
       "choices:1: expected 'along 1 tiles 16 across 0', 'along 1', 'along 1 tiles 8 across 0', "
       "'along 1 tiles 4 across 0', 'along 0', with 'group' up to 1073741824 for 'map exp axes"},
      {kTransposed, "along 1 tiles 32 across 0", "found 'along 1 tiles 32 across 0'"},
      {kTransposed, "along 0 tiles 16 across 1", "without the line the estimated choice holds"},
      {kTransposed, "tile 4x16", "found 'tile 4x16'"},
      {kTransposed, "group 1073741825", "up to 1073741824"},
      {kPool, "along 2 windows 4 rows 5", "with 'rows' up to 4, with 'group'"},
      {kPool, "along 2 windows 3", "'along 2 windows 4'"},
  };
  for (const Case& c : cases) {
    Expected<Schedule> s = chosen(c.text, c.choice, c.target);
    ASSERT_FALSE(s) << c.choice;
    EXPECT_EQ(s.errors().size(), 1u);
    EXPECT_NE(to_string(s.errors()).find(c.says), std::string::npos) << to_string(s.errors());
  }
}

// Whole vectors, and not so many that a driver would end the loop.
TEST(LoopChoice, on_a_gpu_the_work_is_whole_vectors) {
  const std::string text = "graph @g(%x: f32[300,7]) {\n  %y = exp %x : f32[300,7]\n  return y = %y\n}\n";
  EXPECT_EQ(estimated(text, "vulkan").second, "along 0 group 256");
  Expected<Schedule> s = chosen(text, "group 640", "vulkan");
  ASSERT_TRUE(s) << to_string(s.errors());
  EXPECT_EQ(s->groups[0].maps[0].loops.part, 640);
  for (const char* wrong : {"group 100", "group 65536"}) {
    s = chosen(text, wrong, "vulkan");
    ASSERT_FALSE(s);
    EXPECT_NE(to_string(s.errors()).find("with 'group' of a multiple of 64 up to 16384"), std::string::npos)
        << to_string(s.errors());
  }
}

TEST(LoopChoice, kernels_of_one_key_are_refused_once) {
  const std::string text =
      "graph @g(%x: f32[64,30], %z: f32[64,30]) {\n"
      "  %a = exp %x : f32[64,30]\n"
      "  %b = exp %z : f32[64,30]\n"
      "  return a = %a, b = %b\n}\n";
  Expected<Schedule> s = schedule_of(text, "x86-64-v4", nullptr);
  ASSERT_TRUE(s);
  ASSERT_EQ(s->groups.size(), 2u);
  EXPECT_EQ(s->groups[0].key, s->groups[1].key);
  s = chosen(text, "along 3");
  ASSERT_FALSE(s);
  EXPECT_EQ(s.errors().size(), 1u) << to_string(s.errors());
}

}  // namespace
}  // namespace quernel::schedule
