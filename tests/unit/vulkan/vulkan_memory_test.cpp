// Memory of a Vulkan device: many buffers in few allocations, nothing kept that is not needed, and what
// happens where there is no more of it.
#include <cstring>
#include <random>
#include <thread>

#include "core/device.h"
#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

using runtime::DeviceArena;
using runtime::vulkan::Counts;
using runtime::vulkan::limit_memory;

constexpr uint64_t kNoLimit = ~uint64_t{0};
constexpr uint64_t kMiB = uint64_t{1} << 20;

class VulkanMemory : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (!IsSkipped()) open(test_contents());
  }
  qnl_status allocate(uint64_t bytes, DeviceArena* arena) {
    return device()->table->allocate_arena(device(), bytes, false, arena);
  }
  void free(DeviceArena* arena) { device()->table->free_arena(device(), arena); }
  void fill(const DeviceArena& arena, uint8_t value) {
    ASSERT_EQ(device()->table->fill(device(), {&arena, 0}, arena.bytes, value), QNL_OK);
  }
  // Whether all bytes of the arena are this one.
  bool holds(const DeviceArena& arena, uint8_t value) {
    std::vector<uint8_t> found(arena.bytes);
    EXPECT_EQ(device()->table->read(device(), {&arena, 0}, found.data(), arena.bytes), QNL_OK);
    for (uint8_t byte : found)
      if (byte != value) return false;
    return true;
  }
  // No more of the driver than is held now.
  void exhaust_memory() { limit_memory(device(), ~0u, counts().allocated_bytes); }
  void exhaust_allocations() {
    limit_memory(device(), static_cast<uint32_t>(counts().allocations), kNoLimit);
  }
  void lift_limits() { limit_memory(device(), 4096, kNoLimit); }
};

TEST_P(VulkanMemory, a_thousand_sessions_take_few_allocations) {
  {
    Session once;
    ASSERT_EQ(create(&once, "accumulate"), QNL_OK) << error_.text;
  }
  const Counts before = counts();
  {
    std::vector<Session> sessions(1000);
    for (Session& session : sessions) ASSERT_EQ(create(&session, "accumulate"), QNL_OK) << error_.text;
    Counts now = counts();
    EXPECT_LE(now.allocations - before.allocations, 6u);
    EXPECT_LE(now.allocated_bytes - before.allocated_bytes, 8 * kMiB) << "they need some hundred bytes each";
    for (size_t i : {0, 1, 500, 999}) EXPECT_EQ(add(sessions[i], static_cast<float>(i)), i);
    for (size_t i : {0, 1, 500, 999}) EXPECT_EQ(add(sessions[i], 1), static_cast<float>(i + 1));
    for (size_t i = 0; i < 1000; i += 2) sessions[i] = Session();
    for (size_t i = 0; i < 1000; i += 2) ASSERT_EQ(create(&sessions[i], "accumulate"), QNL_OK) << error_.text;
    EXPECT_EQ(counts().allocations, now.allocations) << "the gaps are used again";
    EXPECT_EQ(add(sessions[500], 2), 2.0f) << "and are zero";
    EXPECT_EQ(add(sessions[999], 1), 1001.0f);
  }
  EXPECT_EQ(counts().allocations, before.allocations);
  EXPECT_EQ(counts().allocated_bytes, before.allocated_bytes);
}

TEST_P(VulkanMemory, nothing_grows_over_the_lives_of_sessions) {
  Counts before;
  for (int round = 0; round < 20; ++round) {
    Session main, accumulating;
    ASSERT_EQ(create(&main, "main"), QNL_OK) << error_.text;
    ASSERT_EQ(create(&accumulating, "accumulate"), QNL_OK) << error_.text;
    EXPECT_EQ(add(accumulating, 3), 3.0f);
    Counts now = counts();
    if (round > 0) {
      EXPECT_EQ(now.allocations, before.allocations);
      EXPECT_EQ(now.allocated_bytes, before.allocated_bytes);
    }
    before = now;
  }
}

// Arenas come and go in any order, of any size; each begins with zeros where it has to and keeps what is its
// own.
TEST_P(VulkanMemory, arenas_share_blocks_and_nothing_else) {
  const Counts before = counts();
  std::mt19937 random(7);
  std::vector<DeviceArena> arenas(40);
  std::vector<uint8_t> values(40);
  const uint64_t limits[] = {300, 5000, 100'000, 3 * kMiB};
  for (size_t step = 0; step < 600; ++step) {
    size_t i = step < arenas.size() ? step : random() % arenas.size();
    if (arenas[i].handle != nullptr) {
      ASSERT_TRUE(holds(arenas[i], values[i])) << "arena " << i << " in step " << step;
      free(&arenas[i]);
    }
    uint64_t bytes = 1 + random() % limits[random() % 4];
    if (step % 100 == 50) bytes = 17 * kMiB;  // by itself
    ASSERT_EQ(allocate(bytes, &arenas[i]), QNL_OK);
    ASSERT_TRUE(holds(arenas[i], 0)) << "fresh arenas are zero";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arenas[i].host) % (bytes >= 4096 ? 4096 : 64), 0u);
    values[i] = static_cast<uint8_t>(1 + random() % 255);
    fill(arenas[i], values[i]);
  }
  EXPECT_LE(counts().allocations - before.allocations, 8u + 6u);
  for (size_t i = 0; i < arenas.size(); ++i) {
    EXPECT_TRUE(holds(arenas[i], values[i]));
    free(&arenas[i]);
  }
  const Counts after = counts();
  EXPECT_LE(after.allocations, before.allocations + 1) << "an empty block of 1 MiB is kept";
  EXPECT_LE(after.allocated_bytes, before.allocated_bytes + kMiB);
}

TEST_P(VulkanMemory, threads_share_blocks) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t round = 1; round <= 30; ++round) {
        DeviceArena a;
        ASSERT_EQ(allocate(round * 1000, &a), QNL_OK);
        fill(a, static_cast<uint8_t>(t + 1));
        EXPECT_TRUE(holds(a, static_cast<uint8_t>(t + 1)));
        free(&a);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Without memory for a whole block there may be some for what is asked for.
TEST_P(VulkanMemory, a_block_is_as_small_as_it_has_to_be) {
  const uint64_t bytes = 700'000;
  DeviceArena first, second, third, fourth;
  ASSERT_EQ(allocate(bytes, &first), QNL_OK);
  ASSERT_EQ(allocate(bytes, &second), QNL_OK);
  limit_memory(device(), ~0u, counts().allocated_bytes + 750'000);
  ASSERT_EQ(allocate(bytes, &third), QNL_OK);
  EXPECT_EQ(allocate(bytes, &fourth), QNL_OUT_OF_MEMORY);
  EXPECT_EQ(fourth.handle, nullptr);
  fill(third, 3);
  free(&third);
  ASSERT_EQ(allocate(bytes, &fourth), QNL_OK) << "freed memory is there for others";
  EXPECT_TRUE(holds(fourth, 0));
  for (DeviceArena* arena : {&first, &second, &fourth}) free(arena);
  EXPECT_EQ(device()->table->memory_used(device()), 0u);
}

TEST_P(VulkanMemory, sessions_fail_cleanly_where_memory_ends) {
  Session first, more;
  ASSERT_EQ(create(&first, "accumulate"), QNL_OK) << error_.text;
  const uint64_t used = device()->table->memory_used(device());
  for (bool of_memory : {true, false}) {
    DeviceArena large;
    of_memory ? exhaust_memory() : exhaust_allocations();
    EXPECT_EQ(allocate(17 * kMiB, &large), QNL_OUT_OF_MEMORY);
    std::vector<Session> sessions;
    qnl_status status = QNL_OK;
    while (status == QNL_OK && sessions.size() < 5000)
      status = create(&sessions.emplace_back(), sessions.size() % 2 == 0 ? "main" : "accumulate");
    EXPECT_EQ(status, QNL_OUT_OF_MEMORY);
    EXPECT_NE(strstr(error_.text, ": no memory for "), nullptr) << error_.text;
    ASSERT_GT(sessions.size(), 5u) << "the block that there is has room";
    EXPECT_EQ(add(first, 1), of_memory ? 1.0f : 2.0f) << "others go on";
    sessions.clear();
    EXPECT_EQ(device()->table->memory_used(device()), used);
    ASSERT_EQ(create(&more, "main"), QNL_OK) << error_.text;
    more = Session();
    lift_limits();
    ASSERT_EQ(allocate(17 * kMiB, &large), QNL_OK);
    free(&large);
  }
}

// The last allocations of the driver are for what cannot be done without: memory of the caller is copied
// then.
TEST_P(VulkanMemory, memory_of_the_caller_needs_no_allocation) {
  Session session;
  ASSERT_EQ(create(&session, "accumulate"), QNL_OK) << error_.text;
  const uint64_t before = counts().allocations;
  limit_memory(device(), static_cast<uint32_t>(before) + 1, kNoLimit);
  std::vector<float> x(16, 2.0f), y(16, 0.0f);
  ASSERT_EQ(session.bind_input(tensor("x", QNL_F32, {16}, x), &error_), QNL_OK) << error_.text;
  ASSERT_EQ(session.bind_output(tensor("y", QNL_F32, {16}, y), &error_), QNL_OK) << error_.text;
  ASSERT_EQ(session.run(&error_), QNL_OK) << error_.text;
  EXPECT_EQ(y, std::vector<float>(16, 2.0f));
  ASSERT_EQ(session.run(&error_), QNL_OK) << error_.text;
  EXPECT_EQ(y, std::vector<float>(16, 4.0f));
  EXPECT_EQ(counts().allocations, before);
  DeviceArena large;
  ASSERT_EQ(allocate(17 * kMiB, &large), QNL_OK) << "the last one";
  free(&large);
}

TEST_P(VulkanMemory, the_description_counts_allocations) {
  Session session;
  ASSERT_EQ(create(&session, "main"), QNL_OK) << error_.text;
  std::string text(qnl_device_describe(device(), QNL_JSON, nullptr, 0), '\0');
  qnl_device_describe(device(), QNL_JSON, text.data(), text.size());
  Counts now = counts();
  EXPECT_GT(now.allocations, 0u);
  EXPECT_NE(text.find("\"allocations\": " + std::to_string(now.allocations)), std::string::npos) << text;
  EXPECT_NE(text.find("\"allocated_bytes\": " + std::to_string(now.allocated_bytes)), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanMemory, testing::Bool(), memory_name);

}  // namespace
}  // namespace quernel::test
