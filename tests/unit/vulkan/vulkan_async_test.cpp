// Runs in flight on a Vulkan queue; tests/unit/runtime/async_test.cpp has what all devices do.
#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

class VulkanQueue : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (!IsSkipped()) open(test_contents());
  }
  // With inputs that make every output 4 * value + 1.
  Session main(float value) {
    Session s = session("main");
    set_main(s, value);
    return s;
  }
};

TEST_P(VulkanQueue, holds_runs_of_several_sessions) {
  Session a = main(1), b = main(2), c = main(3);
  auto before = counts();
  qnl_event *first = submit(a), *second = submit(b), *third = submit(c, {first, second});
  auto after = counts();
  EXPECT_EQ(after.submissions, before.submissions + 3) << "and nothing has been waited for";
  EXPECT_EQ(a.run(&error_), QNL_RUN_IN_FLIGHT);
  EXPECT_EQ(wait(third), QNL_OK);
  EXPECT_EQ(wait(first), QNL_OK);
  EXPECT_EQ(wait(second), QNL_OK);
  EXPECT_EQ(result(a, "sum"), 5);
  EXPECT_EQ(result(b, "sum"), 9);
  EXPECT_EQ(result(c, "sum"), 13);
}

TEST_P(VulkanQueue, inputs_of_one_session_are_set_while_another_runs) {
  Session a = main(1), b = main(2);
  qnl_event* first = submit(a);
  auto before = counts();
  set_main(b, 7);
  qnl_event* second = submit(b);
  EXPECT_EQ(counts().transfers, before.transfers);
  EXPECT_EQ(wait(second), QNL_OK);
  EXPECT_EQ(wait(first), QNL_OK);
  EXPECT_EQ(result(a, "sum"), 5);
  EXPECT_EQ(result(b, "sum"), 29);
}

TEST_P(VulkanQueue, runs_in_flight_end_with_the_device) {
  Session a = main(1), b = main(2);
  qnl_event *first = submit(a), *second = submit(b);
  runtime::vulkan::inject_fault(device());
  EXPECT_NE(qnl_event_done(first), 0);
  EXPECT_EQ(wait(first), QNL_DEVICE_FAULT);
  EXPECT_EQ(wait(second), QNL_DEVICE_FAULT);
  qnl_event* event = nullptr;
  ASSERT_EQ(a.submit(&event, nullptr, &error_), QNL_OK) << error_.text;
  EXPECT_EQ(wait(event), QNL_DEVICE_FAULT);
}

TEST_P(VulkanQueue, a_session_is_destroyed_with_its_run_in_flight) {
  qnl_status ended = QNL_TIMEOUT;
  {
    Session a = main(1), b = main(2);
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
