// Parent and child sessions on every device that computes: what a child shares, and how long that stays.
#include <gtest/gtest.h>

#include <optional>

#include "test_device.h"

namespace quernel::test {
namespace {

class ChildSession : public testing::TestWithParam<const char*>, protected SessionsOnDevice {
 protected:
  void SetUp() override {
    if (std::string reason = why_not(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    device_.emplace(GetParam());
    open(test_contents());
  }
  qnl_session_options options(const char* entry, const Session* parent, bool share_state) const {
    qnl_session_options options = {};
    options.entry_point = entry;
    options.parent = parent == nullptr ? nullptr : parent->get();
    options.share_state = share_state ? 1 : 0;
    return options;
  }
  Session session(const char* entry, const Session* parent = nullptr, bool share_state = false) {
    return SessionsOnDevice::session(entry, options(entry, parent, share_state));
  }
  uint64_t memory_used() const {
    qnl_device_info info;
    qnl_device_get_info(device_->get(), &info);
    return info.memory_used;
  }
  // Runs entry point "main", which reads constants.
  float sum(Session& session, float value) {
    set_main(session, value);
    EXPECT_EQ(session.run(&error_), QNL_OK) << error_.text;
    return result(session, "sum");
  }
};

TEST_P(ChildSession, shares_states_only_where_it_is_asked_to) {
  Session parent = session("accumulate");
  EXPECT_EQ(add(parent, 1), 1);
  Session shares = session("accumulate", &parent, true), own = session("accumulate", &parent);
  EXPECT_EQ(add(shares, 2), 3);
  EXPECT_EQ(add(own, 5), 5) << "a state of its own, with its initial value";
  EXPECT_EQ(add(parent, 1), 4);
  Session of_own = session("accumulate", &own, true), of_shares = session("accumulate", &shares, true);
  EXPECT_EQ(add(of_own, 5), 10);
  EXPECT_EQ(add(of_shares, 1), 5);
  ASSERT_EQ(qnl_session_reset_state(of_shares.get(), &error_), QNL_OK) << error_.text;
  EXPECT_EQ(add(parent, 1), 1);
  EXPECT_EQ(add(own, 1), 11);
}

TEST_P(ChildSession, loads_neither_code_nor_weights_once_more) {
  Session parent = session("main");
  for (const char* entry : {"main", "accumulate"}) {
    qnl_requirements needs;
    qnl_session_options o = options(entry, &parent, false);
    ASSERT_EQ(qnl_session_query(bundle_.get(), device_->get(), &o, &needs, &error_), QNL_OK);
    uint64_t before = memory_used();
    Session child = session(entry, &parent), grandchild = session(entry, &child);
    EXPECT_EQ(memory_used() - before, 2 * (needs.workspace_bytes + needs.state_bytes + needs.io_bytes));
  }
  EXPECT_EQ(sum(parent, 1), 5.0f);
}

TEST_P(ChildSession, needs_no_state_of_its_own_where_it_shares) {
  Session parent = session("accumulate");
  for (bool share : {false, true}) {
    qnl_requirements needs;
    qnl_session_options o = options("accumulate", &parent, share);
    ASSERT_EQ(qnl_session_query(bundle_.get(), device_->get(), &o, &needs, &error_), QNL_OK);
    EXPECT_EQ(needs.state_bytes, share ? 0u : 64u);
  }
}

TEST_P(ChildSession, may_outlive_its_parent) {
  std::optional<Session> parent = session("accumulate");
  EXPECT_EQ(add(*parent, 1), 1);
  std::optional<Session> child = session("accumulate", &*parent, true);
  Session other = session("main", &*parent), grandchild = session("accumulate", &*child, true);
  parent.reset();
  EXPECT_EQ(add(*child, 1), 2);
  EXPECT_EQ(sum(other, 2), 9) << "(2 + 2) * 2 + 1, by constants of its parent";
  child.reset();
  EXPECT_EQ(add(grandchild, 1), 3);
  EXPECT_GT(memory_used(), 0u);
  other = Session();
  EXPECT_EQ(add(grandchild, 1), 4);
  grandchild = Session();
  EXPECT_EQ(memory_used(), 0u) << "all of it goes with the last child";
}

TEST_P(ChildSession, is_of_its_parents_bundle_and_device) {
  Session parent = session("accumulate"), child;
  OpenDevice other(GetParam());
  Bundle again;
  ASSERT_EQ(again.open(bytes_->data(), bytes_->size(), nullptr, &error_), QNL_OK);
  qnl_session_options o = options("accumulate", &parent, false);
  EXPECT_EQ(child.create(bundle_, other.device, &o, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "parent: has another bundle or device");
  EXPECT_EQ(child.create(again, device_->device, &o, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "parent: has another bundle or device");
  o = options("accumulate", nullptr, true);
  EXPECT_EQ(child.create(bundle_, device_->device, &o, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "state: expected a parent, found none");
  uint64_t before = memory_used();
  std::vector<char> little(64);
  o = options("main", &parent, false);
  o.io_memory = little.data();
  o.io_memory_bytes = little.size();
  EXPECT_EQ(child.create(bundle_, device_->device, &o, &error_), QNL_MEMORY_TOO_SMALL);
  EXPECT_EQ(memory_used(), before) << "a child that cannot be made lets its parent go";
  EXPECT_EQ(add(parent, 1), 1);
  parent = Session();
  EXPECT_EQ(memory_used(), 0u);
}

#ifdef TEST_VULKAN
INSTANTIATE_TEST_SUITE_P(Devices, ChildSession,
                         testing::Values("cpu", "cpu pool", "vulkan", "vulkan copies"));
#else
INSTANTIATE_TEST_SUITE_P(Devices, ChildSession, testing::Values("cpu", "cpu pool"));
#endif

}  // namespace
}  // namespace quernel::test
