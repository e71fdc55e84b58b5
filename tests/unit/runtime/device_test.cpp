// The device interface, checked on every device of this machine: transfers, ranges, events, memory
// accounting, launches, recordings, copies between devices.
#include "core/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "cpu/cpu_features.h"
#include "null/null_device.h"
#include "platform/platform.h"
#include "test_bundle.h"
#include "test_device.h"

namespace quernel::runtime {
namespace {

// "vulkan copies": as if the device had memory of its own.
class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string reason = test::why_not(name()); !reason.empty()) GTEST_SKIP() << reason;
    opened_.emplace(name());
    device_ = opened_->get();
    ASSERT_NE(device_, nullptr);
    table_ = device_->table;
    code_ = test::test_image();
#ifdef TEST_VULKAN
    if (is_vulkan()) code_ = test::test_spirv();
#endif
  }

  static std::string name() { return GetParam(); }
  static bool is_vulkan() { return test::is_vulkan(name()); }
  static bool copies() { return name() == "vulkan copies"; }
  KernelCode code() const {
    uint32_t arch = is_vulkan() ? static_cast<uint32_t>(QNL_ARCH_SPIRV) : host_arch();
    return {code_.data(), code_.size(), arch, test::kKernelCount};
  }

  std::optional<test::OpenDevice> opened_;
  qnl_device* device_ = nullptr;
  const DeviceTable* table_ = nullptr;
  std::vector<std::byte> code_;
};

TEST_P(DeviceTest, has_a_name) {
  qnl_device_info info;
  qnl_device_get_info(device_, &info);
  if (is_vulkan()) {
    EXPECT_EQ(std::string(info.name).substr(0, 7), "vulkan:");
  } else {
    EXPECT_EQ(info.name, name().substr(0, name().find(' ')));
  }
  DeviceProperties properties;
  table_->properties(device_, &properties);
  EXPECT_EQ(properties.threads, name() == "cpu pool" ? 3u : 1u);
  EXPECT_EQ(properties.has_queue, is_vulkan());
  EXPECT_GE(properties.arena_alignment, QNL_DEFAULT_ALIGNMENT);
  EXPECT_EQ(properties.code_format, is_vulkan() ? CodeFormat::kSpirv : CodeFormat::kElfImage);
  EXPECT_EQ(info.memory_used, 0u);
}

TEST_P(DeviceTest, transfers_with_offsets_on_both_sides) {
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

TEST_P(DeviceTest, ranges_outside_an_arena_are_refused) {
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

TEST_P(DeviceTest, read_only_memory_is_never_written) {
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

TEST_P(DeviceTest, huge_arenas_fail_cleanly) {
  DeviceArena a;
  EXPECT_EQ(table_->allocate_arena(device_, uint64_t{1} << 62, false, &a), QNL_OUT_OF_MEMORY);
  EXPECT_EQ(table_->memory_used(device_), 0u);
}

TEST_P(DeviceTest, launch_checks_kernel_and_bindings) {
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

TEST_P(DeviceTest, events_signal_and_time_out) {
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
TEST_P(DeviceTest, wrapped_memory_is_the_callers) {
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

using Floats = std::vector<float>;

// What a device that computes has in an arena; the null device leaves zeros.
Floats floats(Device* device, const DeviceArena& arena, uint64_t offset, size_t count) {
  Floats found(count, -1.0f);
  EXPECT_EQ(device->table->read(device, {&arena, offset}, found.data(), count * sizeof(float)), QNL_OK);
  return found;
}

TEST_P(DeviceTest, launches_compute_with_bindings_grid_and_symbols) {
  KernelSet* kernels = nullptr;
  ASSERT_EQ(table_->load_kernels(device_, code(), &kernels, nullptr), QNL_OK);
  DeviceArena a;
  ASSERT_EQ(table_->allocate_arena(device_, 4096, false, &a), QNL_OK);
  Floats in(48, 1.5f);
  ASSERT_EQ(table_->write(device_, {&a, 0}, in.data(), 192), QNL_OK);
  // out = in + symbols[0] of the first symbols[1] elements, 16 per workgroup.
  DeviceRange bindings[] = {{&a, 0}, {&a, 1024}};
  int64_t symbols[] = {-3, 40};
  EXPECT_EQ(table_->launch(device_, kernels, test::kOffset, 2, bindings, 2, symbols), QNL_OK);
  Floats expected(48, 0.0f);
  if (name() != "null") std::fill(expected.begin(), expected.begin() + 32, -1.5f);
  EXPECT_EQ(floats(device_, a, 1024, 48), expected) << "two workgroups";
  EXPECT_EQ(table_->launch(device_, kernels, test::kOffset, 3, bindings, 2, symbols), QNL_OK);
  if (name() != "null") std::fill(expected.begin() + 32, expected.begin() + 40, -1.5f);
  EXPECT_EQ(floats(device_, a, 1024, 48), expected) << "cut at the second symbol";
  table_->free_arena(device_, &a);
  table_->unload_kernels(device_, kernels);
}

// A recorded list of sum = a + b, scaled = sum * 2 + 1, and a copy of that, with what it needs.
struct RecordedList {
  RecordedList(Device* device, const KernelCode& code) : device(device) {
    EXPECT_EQ(table().load_kernels(device, code, &kernels, nullptr), QNL_OK);
    EXPECT_EQ(table().allocate_arena(device, 4096, false, &arena), QNL_OK);
    commands[0].kernel = test::kAdd;
    commands[1].kernel = test::kScale;
    for (uint32_t c = 0; c < 2; ++c) {
      commands[c].kind = QNL_ITEM_DISPATCH;
      commands[c].workgroups = 2;
      commands[c].first_binding = 3 * c;
      commands[c].binding_count = 3;
    }
    commands[2].kind = QNL_ITEM_COPY;
    commands[2].first_binding = 6;
    commands[2].binding_count = 2;
    commands[2].copy_bytes = 128;
    uint64_t offsets[] = {0, 256, 512, 512, 768, 1024, 1024, 1280};
    for (uint32_t b = 0; b < 8; ++b) {
      bindings[b] = {&arena, offsets[b]};
      binding_bytes[b] = 128;
    }
    list = {commands, 3, bindings, binding_bytes, 8, 0, nullptr};
    memory.resize(table().record_bytes(device, list) + 64);
    auto address = (reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63};
    EXPECT_EQ(table().record(device, list, kernels, reinterpret_cast<void*>(address), &recording, nullptr),
              QNL_OK);
    EXPECT_EQ(table().prepare(device, recording, nullptr), QNL_OK);
    Floats constants = {2, 1};
    EXPECT_EQ(table().write(device, {&arena, 768}, constants.data(), 8), QNL_OK);
  }
  ~RecordedList() {
    table().release(device, recording);
    table().free_arena(device, &arena);
    table().unload_kernels(device, kernels);
  }
  const DeviceTable& table() const { return *device->table; }
  void write_inputs(float value) {
    Floats values(32, value);
    for (uint64_t offset : {0, 256})
      EXPECT_EQ(table().write(device, {&arena, offset}, values.data(), 128), QNL_OK);
  }
  qnl_status submit(Event* event) {
    CommandFailure failure;
    return table().submit(device, recording, 0, 3, event, &failure);
  }

  Device* device;
  KernelSet* kernels = nullptr;
  DeviceArena arena;
  Command commands[3];
  DeviceRange bindings[8];
  uint64_t binding_bytes[8] = {};
  CommandList list;
  std::vector<char> memory;
  Recording* recording = nullptr;
};

TEST_P(DeviceTest, recorded_commands_run_in_order_again_and_again) {
  RecordedList list(device_, code());
  for (float value : {1.0f, 2.0f, 5.0f}) {
    list.write_inputs(value);
    Event event;
    ASSERT_EQ(list.submit(&event), QNL_OK);
    EXPECT_EQ(table_->event_wait(device_, &event, platform::kForever), QNL_OK);
    EXPECT_TRUE(table_->event_done(device_, &event));
    EXPECT_EQ(table_->event_wait(device_, &event, 0), QNL_OK) << "it stays done";
    EXPECT_EQ(floats(device_, list.arena, 1280, 32), Floats(32, name() == "null" ? 0.0f : 4 * value + 1));
  }
}

TEST_P(DeviceTest, idle_means_that_all_work_is_done) {
  RecordedList first(device_, code()), second(device_, code());
  first.write_inputs(1);
  second.write_inputs(3);
  Event events[2];
  ASSERT_EQ(first.submit(&events[0]), QNL_OK);
  ASSERT_EQ(second.submit(&events[1]), QNL_OK);
  EXPECT_EQ(table_->wait_idle(device_), QNL_OK);
  for (const Event& event : events) EXPECT_TRUE(table_->event_done(device_, &event));
  EXPECT_EQ(floats(device_, first.arena, 1280, 32), Floats(32, name() == "null" ? 0.0f : 5.0f));
  EXPECT_EQ(floats(device_, second.arena, 1280, 32), Floats(32, name() == "null" ? 0.0f : 13.0f));
}

TEST_P(DeviceTest, cancelled_commands_do_not_begin) {
  RecordedList list(device_, code());
  list.write_inputs(1);
  uint32_t cancelled = 1;
  list.list.cancelled = &cancelled;
  Event event;
  EXPECT_EQ(list.submit(&event), QNL_CANCELLED);
  EXPECT_EQ(floats(device_, list.arena, 1280, 32), Floats(32, 0.0f));
  cancelled = 0;
  Event again;
  ASSERT_EQ(list.submit(&again), QNL_OK);
  EXPECT_EQ(table_->event_wait(device_, &again, platform::kForever), QNL_OK);
  list.list.cancelled = nullptr;
}

// From one device to another data goes through memory that both reach: the host's.
TEST_P(DeviceTest, memory_of_the_host_connects_devices) {
  qnl_device* other = nullptr;
  ASSERT_EQ(qnl_device_open_cpu(nullptr, &other, nullptr), QNL_OK);
  DeviceArena here, there, shared;
  ASSERT_EQ(table_->allocate_arena(device_, 256, false, &here), QNL_OK);
  ASSERT_EQ(other->table->allocate_arena(other, 256, true, &there), QNL_OK);
  ASSERT_EQ(table_->wrap_arena(device_, there.host, 256, false, &shared), QNL_OK);
  ASSERT_EQ(other->table->write(other, {&there, 8}, "across", 7), QNL_OK);
  ASSERT_EQ(table_->copy(device_, {&shared, 8}, {&here, 100}, 7), QNL_OK);
  ASSERT_EQ(table_->fill(device_, {&here, 100}, 1, 'A'), QNL_OK);
  ASSERT_EQ(table_->copy(device_, {&here, 100}, {&shared, 64}, 7), QNL_OK);
  char found[8] = {};
  ASSERT_EQ(other->table->read(other, {&there, 64}, found, 7), QNL_OK);
  EXPECT_STREQ(found, "Across");
  table_->free_arena(device_, &shared);
  table_->free_arena(device_, &here);
  other->table->free_arena(other, &there);
  qnl_device_close(other);
}

// What a device does for its callers, by kind.
struct TracedKinds {
  explicit TracedKinds(qnl_device* device) : device(device) {
    qnl_device_set_trace(
        device,
        [](void* user, const qnl_trace_event* event) {
          static_cast<TracedKinds*>(user)->kinds.push_back(event->kind);
        },
        this);
  }
  ~TracedKinds() { qnl_device_set_trace(device, nullptr, nullptr); }
  qnl_device* device;
  std::vector<qnl_trace_kind> kinds;
};

// Memory that only the device reaches is copied there, in one piece of work; nothing is up- or downloaded.
TEST_P(DeviceTest, copies_within_a_device_stay_there) {
  const uint64_t bytes = (uint64_t{20} << 20) + 3;  // more than any staging memory
  DeviceArena a, b;
  ASSERT_EQ(table_->allocate_arena(device_, bytes + 8, false, &a), QNL_OK);
  ASSERT_EQ(table_->allocate_arena(device_, bytes + 8, false, &b), QNL_OK);
  EXPECT_EQ(a.host == nullptr, copies()) << "a device with memory of its own";
  ASSERT_EQ(table_->write(device_, {&a, 5}, "begin", 5), QNL_OK);
  ASSERT_EQ(table_->write(device_, {&a, bytes}, "end", 3), QNL_OK);
  {
    TracedKinds traced(device_);
    ASSERT_EQ(copy_between(device_, {&a, 5}, device_, {&b, 7}, bytes - 2), QNL_OK);
    for (qnl_trace_kind kind : traced.kinds) EXPECT_EQ(kind, QNL_TRACE_COPY);
    EXPECT_EQ(traced.kinds.size(), 1u);
  }
  char found[6] = {};
  ASSERT_EQ(table_->read(device_, {&b, 7}, found, 5), QNL_OK);
  EXPECT_STREQ(found, "begin");
  ASSERT_EQ(table_->read(device_, {&b, bytes + 2}, found, 3), QNL_OK);
  EXPECT_EQ(std::string(found, 3), "end");
  table_->free_arena(device_, &a);
  table_->free_arena(device_, &b);
}

// Between two devices of any kinds, in more than one piece.
TEST_P(DeviceTest, copies_across_devices) {
  const uint64_t bytes = (uint64_t{5} << 20) / 2;
  std::vector<char> data(bytes);
  for (uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 31 % 127);
  for (const char* other_name : {"cpu", "same kind"}) {
    test::OpenDevice other_owner(strcmp(other_name, "cpu") == 0 ? other_name : GetParam());
    qnl_device* other = other_owner.get();
    ASSERT_NE(other, nullptr);
    DeviceArena here, there;
    ASSERT_EQ(table_->allocate_arena(device_, bytes, false, &here), QNL_OK);
    ASSERT_EQ(other->table->allocate_arena(other, bytes + 3, false, &there), QNL_OK);
    ASSERT_EQ(table_->write(device_, {&here, 0}, data.data(), bytes), QNL_OK);
    ASSERT_EQ(copy_between(device_, {&here, 0}, other, {&there, 3}, bytes), QNL_OK);
    ASSERT_EQ(table_->fill(device_, {&here, 0}, bytes, 0), QNL_OK);
    ASSERT_EQ(copy_between(other, {&there, 4}, device_, {&here, 0}, bytes - 1), QNL_OK);
    std::vector<char> found(bytes);
    ASSERT_EQ(table_->read(device_, {&here, 0}, found.data(), bytes), QNL_OK);
    EXPECT_TRUE(std::equal(found.begin(), found.end() - 1, data.begin() + 1)) << other_name;
    EXPECT_EQ(copy_between(device_, {&here, 1}, other, {&there, 0}, bytes), QNL_INVALID_ARGUMENT);
    EXPECT_EQ(copy_between(other, {&there, 0}, device_, {&here, 1}, bytes), QNL_INVALID_ARGUMENT);
    table_->free_arena(device_, &here);
    other->table->free_arena(other, &there);
  }
}

TEST_P(DeviceTest, threads_may_allocate_and_copy_at_once) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int r = 0; r < 20; ++r) {
        DeviceArena a;
        char found[64] = {};
        bool ok = table_->allocate_arena(device_, 64, false, &a) == QNL_OK &&
                  table_->fill(device_, {&a, 0}, 64, static_cast<uint8_t>(t + 1)) == QNL_OK &&
                  table_->read(device_, {&a, 0}, found, 64) == QNL_OK;
        for (char c : found) ok = ok && c == t + 1;
        table_->free_arena(device_, &a);
        wrong += ok ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(table_->memory_used(device_), 0u);
}

TEST(NullDevice, a_fault_stays) {
  qnl_device* device = nullptr;
  ASSERT_EQ(qnl_device_open_null(&device, nullptr), QNL_OK);
  {
    std::vector<std::byte> image = test::test_image();
    RecordedList list(device, {image.data(), image.size(), host_arch(), test::kKernelCount});
    null::inject_fault(device);
    for (int i = 0; i < 2; ++i) {
      Event event;
      EXPECT_EQ(list.submit(&event), QNL_DEVICE_FAULT);
      EXPECT_EQ(device->table->launch(device, list.kernels, test::kAdd, 1, list.bindings, 3, nullptr),
                QNL_DEVICE_FAULT);
      EXPECT_EQ(device->table->wait_idle(device), QNL_DEVICE_FAULT);
    }
  }
  qnl_device_close(device);
}

#ifdef TEST_VULKAN
INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest,
                         testing::Values("cpu", "cpu pool", "null", "vulkan", "vulkan copies"));
#else
INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::Values("cpu", "cpu pool", "null"));
#endif

TEST(Devices, need_a_place_for_the_result) {
  qnl_error error = {};
  EXPECT_EQ(qnl_device_open_cpu(nullptr, nullptr, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "device: expected a place for the result");
  error = {};
  EXPECT_EQ(qnl_device_open_null(nullptr, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "device: expected a place for the result");
}

TEST(CpuDevice, thread_count_is_checked) {
  qnl_cpu_options options = {};
  options.threads = 257;
  qnl_device* device = nullptr;
  qnl_error error = {};
  EXPECT_EQ(qnl_device_open_cpu(&options, &device, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "threads: expected 1 to 256, found 257");
}

}  // namespace
}  // namespace quernel::runtime
