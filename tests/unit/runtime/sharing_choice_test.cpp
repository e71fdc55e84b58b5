// What threads share is found by trying, on made-up machines where sharing gains or costs.
#include "cpu/sharing_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace quernel::runtime {
namespace {

constexpr uint64_t kSmall = 15000, kLarge = 100000;  // nanoseconds of kernels, by estimate

// A network on a machine: what a run takes at each level.
struct Machine {
  std::vector<uint64_t> kernels;
  std::array<uint64_t, SharingChoice::kLevels> nanoseconds;
};

// Runs it so often; how many runs each level had, and what all took.
struct Outcome {
  std::array<int, SharingChoice::kLevels> runs = {};
  uint64_t nanoseconds = 0;
};
Outcome run(SharingChoice& choice, const Machine& machine, int times) {
  Outcome outcome;
  for (int i = 0; i < times; ++i) {
    uint32_t level = choice.level();
    SharingChoice::Run run;
    for (uint64_t kernel : machine.kernels) run.add(kernel, level);
    ++outcome.runs[level];
    outcome.nanoseconds += machine.nanoseconds[level];
    choice.ran(run, machine.nanoseconds[level]);
  }
  return outcome;
}

const std::vector<uint64_t> kNetwork = {kSmall, kLarge, kSmall, 100};

TEST(SharingChoice, levels_share_by_estimate) {
  SharingChoice::Run run;
  EXPECT_TRUE(run.add(kSmall, 0));
  EXPECT_FALSE(run.add(kSmall, 1));
  EXPECT_TRUE(run.add(kLarge, 1));
  EXPECT_FALSE(run.add(~uint64_t{0}, 2));
  EXPECT_FALSE(run.add(100, 0));
}

TEST(SharingChoice, takes_the_fastest_level_and_tries_others_seldom) {
  for (uint32_t fastest = 0; fastest < SharingChoice::kLevels; ++fastest) {
    Machine machine{kNetwork, {2000, 2000, 2000}};
    machine.nanoseconds[fastest] = 1000;
    SharingChoice choice;
    Outcome first = run(choice, machine, 20);
    EXPECT_EQ(choice.level(), fastest);
    EXPECT_LE(first.runs[0] + first.runs[1] + first.runs[2] - first.runs[fastest], 11) << fastest;
    Outcome later = run(choice, machine, 20000);
    EXPECT_GE(later.runs[fastest], 19800) << fastest;
    EXPECT_LE(later.nanoseconds, 20000 * 1010) << fastest << ": at most one percent is spent on trials";
  }
}

TEST(SharingChoice, notices_that_sharing_has_become_slow_and_fast_again) {
  const Machine near{kNetwork, {500, 700, 1000}}, far{kNetwork, {1700, 1300, 1000}};
  SharingChoice choice;
  run(choice, near, 10000);
  EXPECT_EQ(choice.level(), 0u);
  run(choice, far, 150);
  EXPECT_EQ(choice.level(), 2u);
  run(choice, near, 600);
  EXPECT_EQ(choice.level(), 0u);
}

TEST(SharingChoice, single_slow_runs_do_not_change_it) {
  const Machine machine{kNetwork, {500, 700, 1000}}, disturbed{kNetwork, {5000, 7000, 10000}};
  SharingChoice choice;
  run(choice, machine, 100);
  for (int i = 0; i < 200; ++i) {
    run(choice, machine, 7);
    run(choice, disturbed, 1);
  }
  run(choice, machine, 50);
  EXPECT_EQ(choice.level(), 0u);
}

TEST(SharingChoice, another_shape_is_another_network) {
  const Machine small{{kSmall, kSmall}, {900, 500, 500}}, large{{kLarge, kLarge}, {5000, 5000, 9000}};
  SharingChoice choice;
  run(choice, small, 100);
  EXPECT_NE(choice.level(), 0u);
  Outcome outcome = run(choice, large, 100);
  EXPECT_EQ(choice.level(), 0u);
  EXPECT_EQ(outcome.runs[1], 1) << "what is left of the other network: its large kernels are all it has";
  EXPECT_EQ(outcome.runs[2], 2) << "much slower: not tried further";
}

TEST(SharingChoice, nothing_to_share_is_not_tried) {
  const Machine machine{{100, 200}, {1000, 900, 800}};
  SharingChoice choice;
  Outcome outcome = run(choice, machine, 1000);
  EXPECT_EQ(outcome.runs[0], 1000);
}

}  // namespace
}  // namespace quernel::runtime
