// What threads share is found by trying, on made-up machines where sharing gains or costs.
#include "cpu/sharing_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace quernel::runtime {
namespace {

constexpr uint32_t kSmall = 15000, kLarge = 100000;  // nanoseconds of kernels, by estimate

// A network on a machine: what a run takes at each level, in units of time.
struct Machine {
  std::vector<uint32_t> kernels;
  std::array<uint32_t, SharingChoice::kLevels> times;
};

// How many runs each level had, and what all took.
struct Outcome {
  std::array<int, SharingChoice::kLevels> runs = {};
  uint64_t time = 0;
};

struct Session {
  SharingChoice choice;
  uint32_t now = ~uint32_t{0} - 5000;  // wraps

  Outcome run(const Machine& machine, int times) {
    Outcome outcome;
    for (int i = 0; i < times; ++i) {
      uint32_t level = choice.level();
      choice.begin_run(now);
      for (uint32_t kernel : machine.kernels) choice.shares(kernel);
      ++outcome.runs[level];
      outcome.time += machine.times[level];
      choice.end_run(now += machine.times[level]);
    }
    return outcome;
  }
};

const std::vector<uint32_t> kNetwork = {kSmall, kLarge, kSmall, 100};

TEST(SharingChoice, levels_share_by_estimate) {
  const bool small_is_shared[] = {true, false, false}, large_is_shared[] = {true, true, false};
  for (uint32_t fastest = 0; fastest < SharingChoice::kLevels; ++fastest) {
    Machine machine{kNetwork, {20000, 20000, 20000}};
    machine.times[fastest] = 10000;
    Session session;
    session.run(machine, 30);
    SharingChoice& choice = session.choice;
    ASSERT_EQ(choice.level(), fastest);
    EXPECT_EQ(choice.shares(kSmall), small_is_shared[fastest]);
    EXPECT_EQ(choice.shares(kLarge), large_is_shared[fastest]);
    EXPECT_EQ(choice.shares(~uint32_t{0}), large_is_shared[fastest]);
    EXPECT_FALSE(choice.shares(100));
  }
}

TEST(SharingChoice, takes_the_fastest_level_and_tries_others_seldom) {
  for (uint32_t fastest = 0; fastest < SharingChoice::kLevels; ++fastest) {
    Machine machine{kNetwork, {20000, 20000, 20000}};
    machine.times[fastest] = 10000;
    Session session;
    Outcome first = session.run(machine, 30);
    EXPECT_EQ(session.choice.level(), fastest);
    EXPECT_LE(first.runs[0] + first.runs[1] + first.runs[2] - first.runs[fastest], 15) << fastest;
    Outcome later = session.run(machine, 20000);
    EXPECT_GE(later.runs[fastest], 19800) << fastest;
    EXPECT_LE(later.time, 20000 * 10100) << fastest << ": at most one percent is spent on trials";
  }
}

TEST(SharingChoice, notices_that_sharing_has_become_slow_and_fast_again) {
  const Machine near{kNetwork, {5000, 7000, 10000}}, far{kNetwork, {17000, 13000, 10000}};
  Session session;
  session.run(near, 10000);
  EXPECT_EQ(session.choice.level(), 0u);
  session.run(far, 150);
  EXPECT_EQ(session.choice.level(), 2u);
  session.run(near, 600);
  EXPECT_EQ(session.choice.level(), 0u);
}

TEST(SharingChoice, single_slow_runs_do_not_change_it) {
  const Machine machine{kNetwork, {5000, 7000, 10000}}, disturbed{kNetwork, {50000, 70000, 100000}};
  Session session;
  session.run(machine, 100);
  for (int i = 0; i < 200; ++i) {
    session.run(machine, 7);
    session.run(disturbed, 1);
  }
  session.run(machine, 50);
  EXPECT_EQ(session.choice.level(), 0u);
}

TEST(SharingChoice, another_shape_is_another_network) {
  const Machine small{{kSmall, kSmall}, {9000, 5000, 5000}}, large{{kLarge, kLarge}, {50000, 50000, 90000}};
  Session session;
  session.run(small, 100);
  EXPECT_NE(session.choice.level(), 0u);
  Outcome outcome = session.run(large, 100);
  EXPECT_EQ(session.choice.level(), 0u);
  EXPECT_EQ(outcome.runs[1], 1) << "the first of another shape still has the level of the one before";
  EXPECT_EQ(outcome.runs[2], 2) << "much slower: not tried further";
}

TEST(SharingChoice, nothing_to_share_is_not_tried) {
  const Machine machine{{100, 200}, {10000, 9000, 8000}};
  Session session;
  Outcome outcome = session.run(machine, 1000);
  EXPECT_EQ(outcome.runs[0], 1000);
}

}  // namespace
}  // namespace quernel::runtime
