// What a Vulkan device reports while it is traced: steady state seen from outside, times of items by the
// device's clock and without one.
#include <map>
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
    open(test_contents());
    record();
    session_ = session("main");
  }
  void TearDown() override {
    session_ = Session();
    if (device_.has_value()) qnl_device_set_trace(device(), nullptr, nullptr);
  }
  void record() {
    qnl_device_set_trace(
        device(),
        [](void* user, const qnl_trace_event* event) {
          static_cast<std::vector<qnl_trace_event>*>(user)->push_back(*event);
        },
        &events_);
  }
  void set_inputs() { set_main(session_, 1.5f); }
  void run() { ASSERT_EQ(session_.run(&error_), QNL_OK) << error_.text; }
  std::map<qnl_trace_kind, int> kinds() const {
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

  std::vector<qnl_trace_event> events_;
  Session session_;
};

TEST_P(VulkanTrace, steady_state_is_one_submission_and_no_transfer_beyond_inputs_and_outputs) {
  std::map<qnl_trace_kind, int> creation = kinds();
  EXPECT_EQ(creation[QNL_TRACE_PIPELINE], 2);
  EXPECT_EQ(creation[QNL_TRACE_DESCRIPTORS], 2);
  EXPECT_EQ(creation[QNL_TRACE_SUBMIT], 0);
  if (GetParam()) {
    EXPECT_EQ(bytes(QNL_TRACE_UPLOAD, false), bundle_.info().constants_bytes);
  }
  set_inputs();
  run();
  EXPECT_EQ(kinds()[QNL_TRACE_RECORD], 1);
  for (int r = 0; r < 3; ++r) {
    events_.clear();
    set_inputs();
    EXPECT_EQ(kinds(), (std::map<qnl_trace_kind, int>{{QNL_TRACE_UPLOAD, 2}}));
    EXPECT_EQ(bytes(QNL_TRACE_UPLOAD, false), 2 * kElements * sizeof(float));
    events_.clear();
    run();
    std::map<qnl_trace_kind, int> expected = {
        {QNL_TRACE_RUN, 1}, {QNL_TRACE_SUBMIT, 1}, {QNL_TRACE_WAIT, 1}, {QNL_TRACE_ITEM, 2}};
    if (GetParam()) expected[QNL_TRACE_UPLOAD] = expected[QNL_TRACE_DOWNLOAD] = 1;
    EXPECT_EQ(kinds(), expected);
    EXPECT_EQ(bytes(QNL_TRACE_UPLOAD, true), GetParam() ? 2 * kElements * sizeof(float) : 0u);
    EXPECT_EQ(bytes(QNL_TRACE_DOWNLOAD, true), GetParam() ? kElements * sizeof(float) : 0u);
  }
}

TEST_P(VulkanTrace, items_lie_in_order_on_the_queue_and_inside_their_run) {
  set_inputs();
  for (bool clock : {true, false}) {
    if (!clock) runtime::vulkan::hide_clock(device());
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
    EXPECT_EQ(kinds()[QNL_TRACE_SUBMIT], clock ? 1 : 2);
  }
}

TEST_P(VulkanTrace, profile_and_trace_give_the_same_times) {
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
  qnl_device_set_trace(device(), nullptr, nullptr);
  events_.clear();
  profiled.clear();
  run();
  EXPECT_TRUE(events_.empty());
  EXPECT_TRUE(profiled.empty());
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanTrace, testing::Bool(), memory_name);

}  // namespace
}  // namespace quernel::test
