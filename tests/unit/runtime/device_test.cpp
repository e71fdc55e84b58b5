// The device interface, checked on every device of this machine: transfers, ranges, events, memory
// accounting.
#include "core/device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cpu/cpu_features.h"
#include "platform/platform.h"
#include "test_bundle.h"

namespace quernel::runtime {
namespace {

class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    bool null = std::string(GetParam()) == "null";
    ASSERT_EQ(
        null ? qnl_device_open_null(&device_, nullptr) : qnl_device_open_cpu(nullptr, &device_, nullptr),
        QNL_OK);
    table_ = device_->table;
  }
  void TearDown() override { qnl_device_close(device_); }

  qnl_device* device_ = nullptr;
  const DeviceTable* table_ = nullptr;
};

TEST_P(DeviceTest, HasAName) {
  qnl_device_info info;
  qnl_device_get_info(device_, &info);
  EXPECT_STREQ(info.name, GetParam());
  EXPECT_EQ(info.memory_used, 0u);
}

TEST_P(DeviceTest, TransfersWithOffsetsOnBothSides) {
  DeviceArena a, b;
  ASSERT_EQ(table_->allocate_arena(device_, 100, &a), QNL_OK);
  ASSERT_EQ(table_->allocate_arena(device_, 100, &b), QNL_OK);
  EXPECT_EQ(table_->memory_used(device_), 200u);
  ASSERT_EQ(table_->fill(device_, {&a, 10}, 20, 0xAB), QNL_OK);
  const char text[] = "quernel";
  ASSERT_EQ(table_->write(device_, {&a, 12}, text, 7), QNL_OK);
  ASSERT_EQ(table_->copy(device_, {&a, 11}, {&b, 93}, 7), QNL_OK);
  char read[8] = {};
  ASSERT_EQ(table_->read(device_, {&b, 94}, read, 6), QNL_OK);
  EXPECT_STREQ(read, "querne");
  ASSERT_EQ(table_->read(device_, {&b, 92}, read, 2), QNL_OK);
  EXPECT_EQ(read[0], 0) << "fresh arenas are zero";
  EXPECT_EQ(static_cast<unsigned char>(read[1]), 0xABu);
  table_->free_arena(device_, &a);
  table_->free_arena(device_, &b);
  table_->free_arena(device_, &b);
  EXPECT_EQ(table_->memory_used(device_), 0u);
}

TEST_P(DeviceTest, RangesOutsideAnArenaAreRefused) {
  DeviceArena a;
  ASSERT_EQ(table_->allocate_arena(device_, 100, &a), QNL_OK);
  char buffer[200] = {};
  for (uint64_t offset : {uint64_t{1}, uint64_t{101}, ~uint64_t{0}}) {
    EXPECT_EQ(table_->fill(device_, {&a, offset}, 100, 1), QNL_INVALID_ARGUMENT);
    EXPECT_EQ(table_->write(device_, {&a, offset}, buffer, 100), QNL_INVALID_ARGUMENT);
    EXPECT_EQ(table_->read(device_, {&a, offset}, buffer, 100), QNL_INVALID_ARGUMENT);
    EXPECT_EQ(table_->copy(device_, {&a, offset}, {&a, 0}, 100), QNL_INVALID_ARGUMENT);
    EXPECT_EQ(table_->copy(device_, {&a, 0}, {&a, offset}, 100), QNL_INVALID_ARGUMENT);
  }
  EXPECT_EQ(table_->read(device_, {&a, 0}, buffer, ~uint64_t{0}), QNL_INVALID_ARGUMENT);
  EXPECT_EQ(table_->read(device_, {nullptr, 0}, buffer, 0), QNL_INVALID_ARGUMENT);
  table_->free_arena(device_, &a);
}

TEST_P(DeviceTest, ReadOnlyMemoryIsNeverWritten) {
  static const char constants[64] = "constants";
  DeviceArena a;
  ASSERT_EQ(table_->wrap_arena(device_, constants, sizeof constants, true, &a), QNL_OK);
  EXPECT_EQ(table_->fill(device_, {&a, 0}, 4, 1), QNL_INVALID_ARGUMENT);
  EXPECT_EQ(table_->write(device_, {&a, 0}, "xx", 2), QNL_INVALID_ARGUMENT);
  char read[10] = {};
  ASSERT_EQ(table_->read(device_, {&a, 0}, read, 9), QNL_OK);
  EXPECT_STREQ(read, "constants");
  EXPECT_EQ(table_->memory_used(device_), 0u) << "wrapped memory is the caller's";
  table_->free_arena(device_, &a);
}

TEST_P(DeviceTest, HugeArenasFailCleanly) {
  DeviceArena a;
  EXPECT_EQ(table_->allocate_arena(device_, uint64_t{1} << 62, &a), QNL_OUT_OF_MEMORY);
  EXPECT_EQ(table_->memory_used(device_), 0u);
}

TEST_P(DeviceTest, LaunchChecksKernelAndBindings) {
  std::vector<std::byte> image = test::test_image();
  KernelSet* kernels = nullptr;
  KernelCode code = {image.data(), image.size(), host_arch(), test::kKernelCount};
  ASSERT_EQ(table_->load_kernels(device_, code, &kernels, nullptr), QNL_OK);
  DeviceArena a;
  ASSERT_EQ(table_->allocate_arena(device_, 192, &a), QNL_OK);
  DeviceRange bindings[] = {{&a, 0}, {&a, 64}, {&a, 128}};
  EXPECT_EQ(table_->launch(device_, kernels, test::kAdd, 1, bindings, 3, nullptr), QNL_OK);
  EXPECT_EQ(table_->launch(device_, kernels, test::kKernelCount, 1, bindings, 3, nullptr),
            QNL_INVALID_ARGUMENT);
  bindings[1].offset = 1000;
  EXPECT_EQ(table_->launch(device_, kernels, test::kAdd, 1, bindings, 3, nullptr), QNL_INVALID_ARGUMENT);
  table_->free_arena(device_, &a);
  table_->unload_kernels(device_, kernels);
  EXPECT_EQ(table_->wait_idle(device_), QNL_OK);
}

TEST_P(DeviceTest, EventsSignalAndTimeOut) {
  Event event;
  EXPECT_FALSE(table_->event_done(device_, &event));
  uint64_t begin = platform::now_nanoseconds();
  EXPECT_EQ(table_->event_wait(device_, &event, 5000000), QNL_TIMEOUT);
  EXPECT_GE(platform::now_nanoseconds() - begin, 5000000u);
  struct Signal {
    Device* device;
    Event* event;
  } signal = {device_, &event};
  platform::Thread thread;
  ASSERT_TRUE(platform::start_thread(
      &thread,
      [](void* raw) {
        auto* s = static_cast<Signal*>(raw);
        s->device->table->event_signal(s->device, s->event);
      },
      &signal));
  EXPECT_EQ(table_->event_wait(device_, &event, platform::kForever), QNL_OK);
  EXPECT_TRUE(table_->event_done(device_, &event));
  platform::join_thread(thread);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::Values("cpu", "null"));

TEST(Devices, NeedAPlaceForTheResult) {
  qnl_error error = {};
  EXPECT_EQ(qnl_device_open_cpu(nullptr, nullptr, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "device: expected a place for the result");
  error = {};
  EXPECT_EQ(qnl_device_open_null(nullptr, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "device: expected a place for the result");
}

TEST(CpuDevice, ThreadCountIsChecked) {
  qnl_cpu_options options = {};
  options.threads = 257;
  qnl_device* device = nullptr;
  qnl_error error = {};
  EXPECT_EQ(qnl_device_open_cpu(&options, &device, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "threads: expected 1 to 256, found 257");
}

}  // namespace
}  // namespace quernel::runtime
