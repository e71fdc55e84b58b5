// Presets are found by name; mistakes are answered with the nearest name and all names.
#include <gtest/gtest.h>

#include <algorithm>

#include "targets/target.h"

namespace quernel {
namespace {

TEST(Target, EveryNameIsFound) {
  for (std::string_view name : target_names()) {
    auto target = find_target(name);
    ASSERT_TRUE(target);
    EXPECT_EQ(target->name, name);
    EXPECT_FALSE(target->description.empty());
    EXPECT_TRUE(target->firmware || target->required_features != 0);
    EXPECT_GE(target->lanes(8), 1);
    EXPECT_EQ(target->triple.empty(), target->is_gpu());
  }
}

TEST(Target, NativeIsAPreset) {
  auto target = find_target("native");
  ASSERT_TRUE(target);
  auto names = target_names();
  EXPECT_NE(std::find(names.begin(), names.end(), target->name), names.end());
}

TEST(Target, MistakesGetSuggestions) {
  auto target = find_target("x86_64-v3");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].kind, DiagnosticKind::kInvalidInput);
  EXPECT_NE(target.errors()[0].hint.find("'x86-64-v3'"), std::string::npos);
  for (std::string_view name : target_names())
    EXPECT_NE(target.errors()[0].message.find(name), std::string::npos);
}

TEST(Target, HigherLevelsRunCodeOfLowerOnes) {
  std::vector<std::string> levels = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"};
  for (size_t a = 0; a < levels.size(); ++a)
    for (size_t b = 0; b < levels.size(); ++b)
      EXPECT_EQ(runs_code_of(*find_target(levels[a]), *find_target(levels[b])), a >= b)
          << levels[a] << levels[b];
  Target other = *find_target("x86-64");
  other.arch = Arch::kAArch64;
  EXPECT_FALSE(runs_code_of(*find_target("x86-64-v4"), other));
}

TEST(Target, FeaturesAreAdded) {
  auto target = find_target("cortex-a53+i8mm");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->name, "cortex-a53+i8mm");
  EXPECT_TRUE(target->has_dot_u8_s8 && target->has_dot_s8_s8 && target->has_dot_u8_u8);
  EXPECT_TRUE(runs_code_of(*target, *find_target("cortex-a53+dotprod")));
  EXPECT_FALSE(runs_code_of(*find_target("cortex-a53"), *target));
  EXPECT_EQ(find_target("cortex-a76+dotprod")->name, "cortex-a76");  // it has them already
  auto wide = find_target("riscv64-v+vlen512");
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->vector_bytes, 64);
  EXPECT_TRUE(runs_code_of(*wide, *find_target("riscv64-v+vlen256")));
}

TEST(Target, MistakenFeaturesGetSuggestions) {
  auto target = find_target("cortex-a76+i8m");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].message,
            "target 'cortex-a76+i8m': expected a feature of dotprod, i8mm, found 'i8m'");
  EXPECT_NE(target.errors()[0].hint.find("did you mean 'i8mm'?"), std::string::npos);
  target = find_target("riscv64+vlen256");  // only V has registers of a length
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].message,
            "target 'riscv64+vlen256': 'riscv64' takes no features, found 'vlen256'");
  EXPECT_FALSE(find_target("cortex-a76+"));
  EXPECT_FALSE(find_target("+i8mm"));
}

TEST(Target, NonsenseGetsNoSuggestion) {
  auto target = find_target("quantum");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].hint.find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace quernel
