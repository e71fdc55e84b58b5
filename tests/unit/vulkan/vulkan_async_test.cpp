// Runs in flight on a Vulkan queue; tests/unit/runtime/async_test.cpp has what all devices do.
#include <optional>
#include <vector>

#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

constexpr uint64_t kForever = ~uint64_t{0};

class VulkanQueue : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped()) return;
    device_.emplace(GetParam());
    bytes_.emplace(bundle_bytes(with_vulkan(test_contents())));
    ASSERT_EQ(bundle_.open(bytes_->data(), bytes_->size(), nullptr, &error_), QNL_OK) << error_.text;
  }
  // With inputs that make every output 4 * value + 1.
  Session session(float value) {
    Session session;
    qnl_session_options options = {};
    options.entry_point = "main";
    EXPECT_EQ(session.create(bundle_, device_->owner, &options, &error_), QNL_OK) << error_.text;
    std::vector<float> values(kElements, value);
    for (const char* name : {"a", "b"})
      EXPECT_EQ(session.set_input(tensor(name, QNL_F32, {64, 64}, values), &error_), QNL_OK) << error_.text;
    return session;
  }
  qnl_event* submit(Session& session, std::vector<qnl_event*> wait_for = {}) {
    qnl_submit_options options = {};
    options.wait_for = wait_for.data();
    options.wait_for_count = static_cast<uint32_t>(wait_for.size());
    qnl_event* event = nullptr;
    EXPECT_EQ(session.submit(&event, &options, &error_), QNL_OK) << error_.text;
    return event;
  }
  qnl_status wait(qnl_event* event) { return qnl_event_wait(event, kForever, &error_); }
  float result(Session& session) {
    qnl_tensor found = {};
    EXPECT_EQ(session.tensor(QNL_OUTPUT, "sum", &found, &error_), QNL_OK) << error_.text;
    return static_cast<float*>(found.data)[kElements - 1];
  }

  std::optional<VulkanDevice> device_;
  std::optional<AlignedBytes> bytes_;
  Bundle bundle_;
  qnl_error error_ = {};
};

TEST_P(VulkanQueue, HoldsRunsOfSeveralSessions) {
  Session a = session(1), b = session(2), c = session(3);
  auto before = device_->counts();
  qnl_event *first = submit(a), *second = submit(b), *third = submit(c, {first, second});
  auto after = device_->counts();
  EXPECT_EQ(after.submissions, before.submissions + 3) << "and nothing has been waited for";
  EXPECT_EQ(a.run(&error_), QNL_RUN_IN_FLIGHT);
  EXPECT_EQ(wait(third), QNL_OK);
  EXPECT_EQ(wait(first), QNL_OK);
  EXPECT_EQ(wait(second), QNL_OK);
  EXPECT_EQ(result(a), 5);
  EXPECT_EQ(result(b), 9);
  EXPECT_EQ(result(c), 13);
}

TEST_P(VulkanQueue, InputsOfOneSessionAreSetWhileAnotherRuns) {
  Session a = session(1), b = session(2);
  qnl_event* first = submit(a);
  auto before = device_->counts();
  std::vector<float> values(kElements, 7.0f);
  for (const char* name : {"a", "b"})
    ASSERT_EQ(b.set_input(tensor(name, QNL_F32, {64, 64}, values), &error_), QNL_OK);
  qnl_event* second = submit(b);
  EXPECT_EQ(device_->counts().transfers, before.transfers);
  EXPECT_EQ(wait(second), QNL_OK);
  EXPECT_EQ(wait(first), QNL_OK);
  EXPECT_EQ(result(a), 5);
  EXPECT_EQ(result(b), 29);
}

TEST_P(VulkanQueue, RunsInFlightEndWithTheDevice) {
  Session a = session(1), b = session(2);
  qnl_event *first = submit(a), *second = submit(b);
  runtime::vulkan::inject_fault(device_->device);
  EXPECT_NE(qnl_event_done(first), 0);
  EXPECT_EQ(wait(first), QNL_DEVICE_FAULT);
  EXPECT_EQ(wait(second), QNL_DEVICE_FAULT);
  qnl_event* event = nullptr;
  ASSERT_EQ(a.submit(&event, nullptr, &error_), QNL_OK) << error_.text;
  EXPECT_EQ(wait(event), QNL_DEVICE_FAULT);
}

TEST_P(VulkanQueue, ASessionIsDestroyedWithItsRunInFlight) {
  qnl_status ended = QNL_TIMEOUT;
  {
    Session a = session(1), b = session(2);
    qnl_submit_options options = {};
    options.callback = [](void* user, qnl_status status) { *static_cast<qnl_status*>(user) = status; };
    options.user = &ended;
    ASSERT_EQ(a.submit(nullptr, &options, &error_), QNL_OK);
    (void)submit(b);
  }
  EXPECT_EQ(ended, QNL_OK) << "what is on the queue runs to its end";
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanQueue, testing::Bool(), memory_name);

}  // namespace
}  // namespace quernel::test
