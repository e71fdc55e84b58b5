// The device interface, checked on every device of this machine: transfers, ranges, events, memory
// accounting.
#include "core/device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cpu/cpu_features.h"
#include "platform/platform.h"
#include "test_bundle.h"
#ifdef TEST_VULKAN
#include "test_spirv.h"
#endif

namespace quernel::runtime {
namespace {

// "vulkan copies": as if the device had memory of its own.
class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    qnl_error error = {};
    if (name() == "null") {
      ASSERT_EQ(qnl_device_open_null(&device_, nullptr), QNL_OK);
    } else if (name() == "cpu") {
      ASSERT_EQ(qnl_device_open_cpu(nullptr, &device_, nullptr), QNL_OK);
    }
#ifdef TEST_VULKAN
    if (is_vulkan()) {
      static const std::string reason = test::why_no_vulkan();
      if (!reason.empty()) GTEST_SKIP() << reason;
      qnl_vulkan_options options = {};
      options.validation = 2;
      options.copy_always = copies() ? 1 : 0;
      options.message = [](void* user, const char* text) { *static_cast<std::string*>(user) += text; };
      options.message_user = &messages_;
      ASSERT_EQ(qnl_device_open_vulkan(&options, &device_, &error), QNL_OK) << error.text;
      code_ = test::test_spirv();
    } else {
      code_ = test::test_image();
    }
#else
    code_ = test::test_image();
#endif
    table_ = device_->table;
  }
  void TearDown() override {
    qnl_device_close(device_);
    EXPECT_EQ(messages_, "") << "of the validation layers";
  }

  static std::string name() { return GetParam(); }
  static bool is_vulkan() { return name() != "cpu" && name() != "null"; }
  static bool copies() { return name() == "vulkan copies"; }
  KernelCode code() const {
    uint32_t arch = is_vulkan() ? static_cast<uint32_t>(QNL_ARCH_SPIRV) : host_arch();
    return {code_.data(), code_.size(), arch, test::kKernelCount};
  }

  qnl_device* device_ = nullptr;
  const DeviceTable* table_ = nullptr;
  std::vector<std::byte> code_;
  std::string messages_;
};

TEST_P(DeviceTest, HasAName) {
  qnl_device_info info;
  qnl_device_get_info(device_, &info);
  if (is_vulkan()) {
    EXPECT_EQ(std::string(info.name).substr(0, 7), "vulkan:");
  } else {
    EXPECT_EQ(info.name, name());
  }
  EXPECT_EQ(info.memory_used, 0u);
}

TEST_P(DeviceTest, TransfersWithOffsetsOnBothSides) {
  DeviceArena a, b;
  ASSERT_EQ(table_->allocate_arena(device_, 100, false, &a), QNL_OK);
  ASSERT_EQ(table_->allocate_arena(device_, 100, true, &b), QNL_OK);
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
  ASSERT_EQ(table_->allocate_arena(device_, 100, false, &a), QNL_OK);
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
  EXPECT_EQ(table_->memory_used(device_), copies() ? sizeof constants : 0u)
      << "wrapped memory is the caller's";
  table_->free_arena(device_, &a);
}

TEST_P(DeviceTest, HugeArenasFailCleanly) {
  DeviceArena a;
  EXPECT_EQ(table_->allocate_arena(device_, uint64_t{1} << 62, false, &a), QNL_OUT_OF_MEMORY);
  EXPECT_EQ(table_->memory_used(device_), 0u);
}

TEST_P(DeviceTest, LaunchChecksKernelAndBindings) {
  KernelSet* kernels = nullptr;
  ASSERT_EQ(table_->load_kernels(device_, code(), &kernels, nullptr), QNL_OK);
  DeviceArena a;
  ASSERT_EQ(table_->allocate_arena(device_, 192, false, &a), QNL_OK);
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

// Memory of the caller, of any alignment: what is written there or through the device is one.
TEST_P(DeviceTest, WrappedMemoryIsTheCallers) {
  std::vector<char> memory(1000, 'a');
  DeviceArena wrapped, own;
  ASSERT_EQ(table_->wrap_arena(device_, memory.data() + 3, 900, false, &wrapped), QNL_OK);
  ASSERT_EQ(table_->allocate_arena(device_, 900, false, &own), QNL_OK);
  ASSERT_EQ(table_->fill(device_, {&wrapped, 1}, 2, 'b'), QNL_OK);
  EXPECT_EQ(std::string(memory.data() + 2, 6), "aabbaa");
  ASSERT_EQ(table_->copy(device_, {&wrapped, 0}, {&own, 5}, 100), QNL_OK);
  ASSERT_EQ(table_->copy(device_, {&own, 5}, {&wrapped, 800}, 100), QNL_OK);
  EXPECT_EQ(std::string(memory.data() + 802, 6), "aabbaa");
  ASSERT_EQ(table_->copy(device_, {&own, 5}, {&own, 6}, 100), QNL_OK) << "one over the other";
  char found[8] = {};
  ASSERT_EQ(table_->read(device_, {&own, 4}, found, 7), QNL_OK);
  EXPECT_EQ(std::string(found + 1, 6), "aabbaa");
  table_->free_arena(device_, &wrapped);
  table_->free_arena(device_, &own);
  EXPECT_EQ(table_->memory_used(device_), 0u);
}

#ifdef TEST_VULKAN
INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::Values("cpu", "null", "vulkan", "vulkan copies"));
#else
INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::Values("cpu", "null"));
#endif

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
