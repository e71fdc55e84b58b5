// The thread pool runs every workgroup exactly once, under any number of threads and any timing.
#include "cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <memory>
#include <vector>

namespace quernel::runtime {
namespace {

int32_t count_workgroups(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  auto* counts = static_cast<std::atomic<uint32_t>*>(args->bindings[0]);
  for (uint64_t w = begin; w < end; ++w) counts[w].fetch_add(1, std::memory_order_relaxed);
  return 0;
}

int32_t fail_on_77(const qnl_kernel_args*, uint64_t begin, uint64_t end) {
  return begin <= 77 && 77 < end ? 5 : 0;
}

// Each thread owns its scratch while it runs a range.
int32_t use_scratch(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  auto* owner = static_cast<std::atomic<uint32_t>*>(args->scratch);
  if (owner->exchange(1) != 0) return 1;
  for (uint64_t w = begin; w < end; ++w) owner->load();
  return owner->exchange(0) == 1 ? 0 : 2;
}

Dispatch make(qnl_kernel_fn kernel, void* const* bindings, uint64_t workgroups) {
  Dispatch dispatch;
  dispatch.kernel = kernel;
  dispatch.bindings = bindings;
  dispatch.workgroups = workgroups;
  return dispatch;
}

class ThreadPoolTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ThreadPoolTest, every_workgroup_once) {
  auto pool = std::make_unique<ThreadPool>();
  ASSERT_TRUE(pool->start(GetParam()));
  for (uint64_t workgroups : {0, 1, 2, 3, 7, 16, 31, 257, 1000}) {
    std::vector<std::atomic<uint32_t>> counts(workgroups);
    void* bindings[] = {counts.data()};
    const uint32_t rounds = 200;
    for (uint32_t r = 0; r < rounds; ++r)
      ASSERT_EQ(pool->run(make(count_workgroups, bindings, workgroups)), 0);
    for (uint64_t w = 0; w < workgroups; ++w) ASSERT_EQ(counts[w], rounds) << w << " of " << workgroups;
  }
  pool->stop();
}

TEST_P(ThreadPoolTest, wakes_up_after_sleeping) {
  auto pool = std::make_unique<ThreadPool>();
  ASSERT_TRUE(pool->start(GetParam()));
  std::vector<std::atomic<uint32_t>> counts(100);
  void* bindings[] = {counts.data()};
  for (uint32_t r = 0; r < 20; ++r) {
    timespec pause = {0, r % 2 == 0 ? 1000000 : 60000};  // longer than, and about as long as the workers spin
    nanosleep(&pause, nullptr);
    ASSERT_EQ(pool->run(make(count_workgroups, bindings, counts.size())), 0);
  }
  for (auto& count : counts) ASSERT_EQ(count, 20u);
  pool->stop();
}

TEST_P(ThreadPoolTest, reports_the_failure_of_any_range) {
  auto pool = std::make_unique<ThreadPool>();
  ASSERT_TRUE(pool->start(GetParam()));
  for (int r = 0; r < 100; ++r) {
    ASSERT_EQ(pool->run(make(fail_on_77, nullptr, 100)), 5);
    ASSERT_EQ(pool->run(make(fail_on_77, nullptr, 50)), 0) << "a failure does not stick";
  }
  pool->stop();
}

TEST_P(ThreadPoolTest, scratch_is_private) {
  auto pool = std::make_unique<ThreadPool>();
  ASSERT_TRUE(pool->start(GetParam()));
  std::vector<char> scratch(64 * (GetParam() + 1));
  Dispatch dispatch = make(use_scratch, nullptr, 500);
  dispatch.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  dispatch.scratch_stride = 64;
  for (int r = 0; r < 200; ++r) ASSERT_EQ(pool->run(dispatch), 0);
  pool->stop();
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 4, 16));

TEST(ThreadPoolIdle, uses_no_processor_time) {
  auto pool = std::make_unique<ThreadPool>();
  ASSERT_TRUE(pool->start(4));
  std::vector<std::atomic<uint32_t>> counts(100);
  void* bindings[] = {counts.data()};
  ASSERT_EQ(pool->run(make(count_workgroups, bindings, counts.size())), 0);
  timespec pause = {0, 20000000};
  nanosleep(&pause, nullptr);
  auto used_microseconds = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  long before = used_microseconds();
  pause.tv_nsec = 200000000;
  nanosleep(&pause, nullptr);
  EXPECT_LT(used_microseconds() - before, 20000) << "of 200 ms with three idle workers";
  pool->stop();
}

}  // namespace
}  // namespace quernel::runtime
