// What a Vulkan device reports while it is traced: steady state seen from outside, times of items by the
// device's clock and without one.
#include <map>
#include <optional>
#include <vector>

#include "platform/platform.h"
#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

class VulkanTrace : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped()) return;
    device_.emplace(GetParam());
    bytes_.emplace(bundle_bytes(with_vulkan(test_contents())));
    ASSERT_EQ(bundle_.open(bytes_->data(), bytes_->size(), nullptr, &error_), QNL_OK) << error_.text;
    record();
    qnl_session_options options = {};
    options.entry_point = "main";
    ASSERT_EQ(session_.create(bundle_, device_->owner, &options, &error_), QNL_OK) << error_.text;
  }
  void record() {
    qnl_device_set_trace(
        device_->device,
        [](void* user, const qnl_trace_event* event) {
          static_cast<std::vector<qnl_trace_event>*>(user)->push_back(*event);
        },
        &events_);
  }
  void set_inputs() {
    for (const char* name : {"a", "b"})
      ASSERT_EQ(session_.set_input(tensor(name, QNL_F32, {64, 64}, values_), &error_), QNL_OK);
  }
  void run() { ASSERT_EQ(session_.run(&error_), QNL_OK) << error_.text; }
  std::map<qnl_trace_kind, int> counts() const {
    std::map<qnl_trace_kind, int> counts;
    for (const qnl_trace_event& event : events_) counts[event.kind] += 1;
    return counts;
  }
  uint64_t bytes(qnl_trace_kind kind, bool on_queue) const {
    uint64_t sum = 0;
    for (const qnl_trace_event& event : events_)
      if (event.kind == kind && (event.on_queue != 0) == on_queue) sum += event.bytes;
    return sum;
  }

  std::vector<float> values_ = std::vector<float>(kElements, 1.5f);
  std::vector<qnl_trace_event> events_;
  std::optional<VulkanDevice> device_;
  std::optional<AlignedBytes> bytes_;
  Bundle bundle_;
  Session session_;
  qnl_error error_ = {};
};

TEST_P(VulkanTrace, SteadyStateIsOneSubmissionAndNoTransferBeyondInputsAndOutputs) {
  std::map<qnl_trace_kind, int> creation = counts();
  EXPECT_EQ(creation[QNL_TRACE_PIPELINE], 2);
  EXPECT_EQ(creation[QNL_TRACE_DESCRIPTORS], 2);
  EXPECT_EQ(creation[QNL_TRACE_SUBMIT], 0);
  if (GetParam()) {
    EXPECT_EQ(bytes(QNL_TRACE_UPLOAD, false), bundle_.info().constants_bytes);
  }
  set_inputs();
  run();
  EXPECT_EQ(counts()[QNL_TRACE_RECORD], 1);
  for (int r = 0; r < 3; ++r) {
    events_.clear();
    set_inputs();
    EXPECT_EQ(counts(), (std::map<qnl_trace_kind, int>{{QNL_TRACE_UPLOAD, 2}}));
    EXPECT_EQ(bytes(QNL_TRACE_UPLOAD, false), 2 * kElements * sizeof(float));
    events_.clear();
    run();
    std::map<qnl_trace_kind, int> expected = {
        {QNL_TRACE_RUN, 1}, {QNL_TRACE_SUBMIT, 1}, {QNL_TRACE_WAIT, 1}, {QNL_TRACE_ITEM, 2}};
    if (GetParam()) expected[QNL_TRACE_UPLOAD] = expected[QNL_TRACE_DOWNLOAD] = 1;
    EXPECT_EQ(counts(), expected);
    EXPECT_EQ(bytes(QNL_TRACE_UPLOAD, true), GetParam() ? 2 * kElements * sizeof(float) : 0u);
    EXPECT_EQ(bytes(QNL_TRACE_DOWNLOAD, true), GetParam() ? kElements * sizeof(float) : 0u);
  }
}

TEST_P(VulkanTrace, ItemsLieInOrderOnTheQueueAndInsideTheirRun) {
  set_inputs();
  for (bool clock : {true, false}) {
    if (!clock) runtime::vulkan::hide_clock(device_->device);
    events_.clear();
    uint64_t begin = platform::now_nanoseconds();
    run();
    uint64_t end = platform::now_nanoseconds(), at = begin;
    uint32_t item = 0;
    for (const qnl_trace_event& event : events_) {
      EXPECT_LE(event.begin_nanoseconds, event.end_nanoseconds);
      EXPECT_GE(event.begin_nanoseconds, begin);
      EXPECT_LE(event.end_nanoseconds, end);
      if (event.kind != QNL_TRACE_ITEM) continue;
      EXPECT_EQ(event.item, item++);
      EXPECT_EQ(event.session, session_.get());
      EXPECT_NE(event.on_queue, 0);
      EXPECT_GE(event.begin_nanoseconds, at) << "one after another";
      EXPECT_LT(event.begin_nanoseconds, event.end_nanoseconds) << "4096 elements take time";
      at = event.end_nanoseconds;
    }
    EXPECT_EQ(item, 2u);
    EXPECT_EQ(counts()[QNL_TRACE_SUBMIT], clock ? 1 : 2);
  }
}

TEST_P(VulkanTrace, ProfileAndTraceGiveTheSameTimes) {
  set_inputs();
  std::vector<uint64_t> profiled;
  qnl_session_set_profile(
      session_.get(),
      [](void* user, uint32_t, uint64_t nanoseconds) {
        static_cast<std::vector<uint64_t>*>(user)->push_back(nanoseconds);
      },
      &profiled);
  events_.clear();
  run();
  std::vector<uint64_t> traced;
  for (const qnl_trace_event& event : events_)
    if (event.kind == QNL_TRACE_ITEM) traced.push_back(event.end_nanoseconds - event.begin_nanoseconds);
  EXPECT_EQ(profiled, traced);
  EXPECT_EQ(profiled.size(), 2u);
  qnl_session_set_profile(session_.get(), nullptr, nullptr);
  qnl_device_set_trace(device_->device, nullptr, nullptr);
  events_.clear();
  profiled.clear();
  run();
  EXPECT_TRUE(events_.empty());
  EXPECT_TRUE(profiled.empty());
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanTrace, testing::Bool(), memory_name);

}  // namespace
}  // namespace quernel::test
