// Runs that are submitted: events, callbacks, dependencies within and across devices, cancellation, what is
// refused while a run is in flight, shared state; on every device, with and without a thread of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "core/device.h"
#include "platform/platform.h"
#include "quernel/runtime.hpp"
#include "test_bundle.h"
#include "test_device.h"

namespace quernel::test {
namespace {

using Floats = std::vector<float>;
constexpr uint64_t kForever = ~uint64_t{0};

// Something that a run waits at.
class Gate {
 public:
  ~Gate() { open(); }
  void open() {
    __atomic_store_n(&open_, 1u, __ATOMIC_RELEASE);
    platform::wake(&open_, 1000);
  }
  void pass() {
    arrived.store(true);
    while (__atomic_load_n(&open_, __ATOMIC_ACQUIRE) == 0) platform::park(&open_, 0, platform::kForever);
  }
  std::atomic<bool> arrived{false};

 private:
  uint32_t open_ = 0;
};

class Async : public testing::TestWithParam<const char*>, protected SessionsOnDevice {
 protected:
  void SetUp() override {
    if (std::string reason = why_not(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    device_.emplace(GetParam());
    open(test_contents());
  }
  using SessionsOnDevice::session;
  Session session(const char* entry, const Device& device) {
    Session session;
    qnl_session_options options = {};
    options.entry_point = entry;
    EXPECT_EQ(session.create(bundle_, device, &options, &error_), QNL_OK) << error_.text;
    return session;
  }
  // That uses the other one's state.
  Session sharing(const char* entry, const Session& parent) {
    qnl_session_options options = {};
    options.parent = parent.get();
    options.share_state = 1;
    return session(entry, options);
  }
  // A session whose run waits at the gate.
  Session gated(Gate* gate, const Device& device) {
    Session s = session("extras", device);
    std::vector<int32_t> in(24, 1);
    EXPECT_EQ(s.set_input(tensor("in", QNL_I32, {4, 6}, in), &error_), QNL_OK) << error_.text;
    EXPECT_EQ(qnl_session_set_callback(
                  s.get(), "notify",
                  [](void* user, void* const*, const uint64_t*, uint32_t) {
                    static_cast<Gate*>(user)->pass();
                    return int32_t{0};
                  },
                  gate, &error_),
              QNL_OK);
    return s;
  }
};

TEST_P(Async, a_submitted_run_gives_what_a_run_gives) {
  Session s = session("main");
  for (float value : {1.0f, 2.0f, -3.0f}) {
    set_main(s, value);
    std::vector<qnl_status> called;
    qnl_submit_options options = {};
    options.callback = [](void* user, qnl_status status) {
      static_cast<std::vector<qnl_status>*>(user)->push_back(status);
    };
    options.user = &called;
    qnl_event* event = nullptr;
    ASSERT_EQ(s.submit(&event, &options, &error_), QNL_OK) << error_.text;
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(wait(event), QNL_OK);
    EXPECT_EQ(called, std::vector<qnl_status>{QNL_OK}) << "once";
    EXPECT_NE(qnl_event_done(event), 0);
    EXPECT_EQ(wait(event), QNL_OK) << "again";
    EXPECT_EQ(result(s, "sum"), 4 * value + 1);
    ASSERT_EQ(s.run(&error_), QNL_OK) << "and the ordinary way after it";
    EXPECT_EQ(called.size(), 1u);
  }
}

TEST_P(Async, events_can_be_polled) {
  Session s = session("main");
  set_main(s, 1);
  qnl_event* event = submit(s);
  while (qnl_event_done(event) == 0) platform::spin_pause();
  EXPECT_EQ(wait(event), QNL_OK);
  EXPECT_EQ(result(s, "sum"), 5);
}

TEST_P(Async, errors_before_a_run_are_the_submissions_and_those_in_it_the_events) {
  Session s = session("main");
  qnl_event* event = nullptr;
  EXPECT_EQ(s.submit(&event, nullptr, &error_), QNL_INPUT_NOT_SET);
  EXPECT_EQ(event, nullptr);
  qnl_submit_options options = {};
  options.wait_for_count = 9;
  set_main(s, 1);
  EXPECT_EQ(s.submit(&event, &options, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "wait_for: expected at most 8 events, found 9");
  qnl_event* none = nullptr;
  options.wait_for = &none;
  options.wait_for_count = 1;
  EXPECT_EQ(s.submit(&event, &options, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "wait_for: expected events of other sessions");
  // A callback that is missing is found in the run.
  Session extras = session("extras");
  std::vector<int32_t> in(24, 1);
  ASSERT_EQ(extras.set_input(tensor("in", QNL_I32, {4, 6}, in), &error_), QNL_OK);
  event = submit(extras);
  EXPECT_EQ(wait(event), QNL_CALLBACK_MISSING);
  EXPECT_EQ(std::string(error_.text).substr(0, 16), "item 2 'notify':") << error_.text;
  // What waits for it does not run.
  qnl_event* after = submit(s, {event});
  EXPECT_EQ(wait(after), QNL_CALLBACK_MISSING);
  EXPECT_EQ(std::string(error_.text).substr(0, 52), "run 0: it waits for one that failed, item 2 'notify'")
      << error_.text;
  EXPECT_EQ(wait(submit(s)), QNL_OK) << "by itself it does";
}

struct Attempts {
  qnl_session* session;
  std::vector<qnl_status> statuses;
  std::string text;
  int32_t make() {
    std::vector<int32_t> in(24, 2);
    qnl_tensor t = tensor("in", QNL_I32, {4, 6}, in), found;
    qnl_error error = {};
    char state[64];
    statuses = {qnl_session_set_input(session, &t, &error),
                qnl_session_bind(session, QNL_INPUT, &t, &error),
                qnl_session_get(session, QNL_OUTPUT, "out", &found, &error),
                qnl_session_set_shape(session, &t, &error),
                qnl_session_set_symbol(session, "n", 1, &error),
                qnl_session_reserve(session, nullptr, 0, &error),
                qnl_session_reset_state(session, &error),
                qnl_session_save_state(session, state, 0, &error),
                qnl_session_restore_state(session, state, 0, &error),
                qnl_session_set_callback(session, "notify", nullptr, nullptr, &error),
                qnl_session_submit(session, nullptr, nullptr, &error),
                qnl_session_run(session, &error)};
    text = error.text;
    return 0;
  }
};

TEST_P(Async, nothing_of_a_session_can_be_changed_while_it_runs) {
  Session s = session("extras");
  std::vector<int32_t> in(24, 1);
  ASSERT_EQ(s.set_input(tensor("in", QNL_I32, {4, 6}, in), &error_), QNL_OK);
  Attempts attempts = {s.get(), {}, {}};
  ASSERT_EQ(qnl_session_set_callback(
                s.get(), "notify",
                [](void* user, void* const*, const uint64_t*, uint32_t) {
                  return static_cast<Attempts*>(user)->make();
                },
                &attempts, &error_),
            QNL_OK);
  for (bool asynchronous : {true, false}) {
    attempts.statuses.clear();
    if (asynchronous) {
      EXPECT_EQ(wait(submit(s)), QNL_OK) << error_.text;
    } else {
      EXPECT_EQ(s.run(&error_), QNL_OK) << error_.text;
    }
    EXPECT_EQ(attempts.statuses, std::vector<qnl_status>(12, QNL_RUN_IN_FLIGHT));
    EXPECT_EQ(attempts.text, "session: its run is in flight; wait for that first");
  }
  EXPECT_EQ(s.set_input(tensor("in", QNL_I32, {4, 6}, in), &error_), QNL_OK) << "then it can";
}

TEST_P(Async, plans_that_need_the_host_are_submitted_as_well) {
  open(symbolic_contents());
  Session s = session("steps");
  std::vector<int64_t> rows(9), n = {3};
  ASSERT_EQ(s.set_input(tensor("rows", QNL_I64, {9}, rows), &error_), QNL_OK) << error_.text;
  ASSERT_EQ(s.set_input(tensor("n", QNL_I64, {}, n), &error_), QNL_OK) << error_.text;
  EXPECT_EQ(wait(submit(s)), QNL_OK) << error_.text;
  qnl_tensor found = {};
  ASSERT_EQ(s.tensor(QNL_OUTPUT, "steps", &found, &error_), QNL_OK);
  ASSERT_EQ(found.shape[0], 3);
  EXPECT_EQ(static_cast<int64_t*>(found.data)[2], 2 * 2 + 9);
}

TEST_P(Async, a_run_is_cancelled_between_items) {
  open(symbolic_contents());
  Session s = session("steps");
  std::vector<int64_t> rows(9), n = {9};
  ASSERT_EQ(s.set_input(tensor("rows", QNL_I64, {9}, rows), &error_), QNL_OK) << error_.text;
  ASSERT_EQ(s.set_input(tensor("n", QNL_I64, {}, n), &error_), QNL_OK) << error_.text;
  struct Count {
    qnl_session* session;
    int items;
  } count = {s.get(), 0};
  qnl_session_set_profile(
      s.get(),
      [](void* user, uint32_t, uint64_t) {
        auto* c = static_cast<Count*>(user);
        if (++c->items == 4) qnl_session_cancel(c->session);
      },
      &count);
  EXPECT_EQ(wait(submit(s)), QNL_CANCELLED);
  EXPECT_NE(std::string(error_.text).find("': cancelled"), std::string::npos) << error_.text;
  EXPECT_LE(count.items, 5) << "the rest of nine iterations did not begin";
  count.items = 0;
  EXPECT_EQ(s.run(&error_), QNL_CANCELLED);
  qnl_session_set_profile(s.get(), nullptr, nullptr);
  EXPECT_EQ(s.run(&error_), QNL_OK) << "one run was cancelled, not the session";
  qnl_session_cancel(s.get());
  EXPECT_EQ(wait(submit(s)), QNL_OK) << "there was no run to cancel";
}

TEST_P(Async, a_run_begins_when_those_that_it_waits_for_are_over) {
  OpenDevice other("cpu thread");
  Gate gate;
  Session slow = gated(&gate, other.device), s = session("main");
  set_main(s, 1);
  qnl_event* before = submit(slow);
  EXPECT_EQ(qnl_event_wait(before, 1000000, &error_), QNL_TIMEOUT);
  EXPECT_STREQ(error_.text, "run: not over after 1000000 nanoseconds");
  std::thread opener;
  qnl_event* after = nullptr;
  if (has_thread(GetParam())) {
    after = submit(s, {before});
    EXPECT_EQ(qnl_event_wait(after, 2000000, &error_), QNL_TIMEOUT);
    gate.open();
  } else {  // the submission waits
    opener = std::thread([&] {
      while (!gate.arrived.load()) platform::spin_pause();
      gate.open();
    });
    after = submit(s, {before});
    EXPECT_NE(qnl_event_done(before), 0);
  }
  EXPECT_EQ(wait(after), QNL_OK);
  EXPECT_NE(qnl_event_done(before), 0);
  EXPECT_EQ(wait(before), QNL_OK);
  EXPECT_EQ(result(s, "sum"), 5);
  if (opener.joinable()) opener.join();
}

TEST_P(Async, another_device_waits_for_this_one) {
  OpenDevice other("cpu thread");
  Session a = session("main"), b = session("main", other.device);
  for (int r = 0; r < 20; ++r) {
    set_main(a, static_cast<float>(r));
    set_main(b, static_cast<float>(r));
    qnl_event* first_event = submit(a);
    EXPECT_EQ(wait(submit(b, {first_event})), QNL_OK);
    EXPECT_NE(qnl_event_done(first_event), 0);
    EXPECT_EQ(wait(first_event), QNL_OK);
    EXPECT_EQ(result(a, "sum"), 4 * static_cast<float>(r) + 1);
  }
}

TEST_P(Async, sessions_that_share_a_state_run_in_the_order_of_submission) {
  Session a = session("accumulate"), b = sharing("accumulate", a);
  set_x(a, 1);
  set_x(b, 10);
  float expected = 0;
  for (int r = 0; r < 20; ++r) {
    qnl_event *first_event = submit(a), *second = submit(b, {first_event});
    EXPECT_EQ(wait(second), QNL_OK) << error_.text;
    EXPECT_EQ(wait(first_event), QNL_OK) << error_.text;
    EXPECT_EQ(result(a, "y"), expected + 1);
    EXPECT_EQ(result(b, "y"), expected += 11);
  }
}

TEST_P(Async, sessions_on_several_threads_share_a_bundle_and_a_device) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      Session s;
      qnl_session_options options = {};
      options.entry_point = "main";
      bool ok = s.create(bundle_, device_->device, &options) == QNL_OK;
      for (int r = 0; ok && r < 20; ++r) {
        auto value = static_cast<float>(t * 100 + r);
        Floats values(kElements, value);
        ok = s.set_input(tensor("a", QNL_F32, {64, 64}, values)) == QNL_OK &&
             s.set_input(tensor("b", QNL_F32, {64, 64}, values)) == QNL_OK;
        qnl_event* event = nullptr;
        if (r % 2 == 0) {
          ok = ok && s.run() == QNL_OK;
        } else {
          ok = ok && s.submit(&event) == QNL_OK && qnl_event_wait(event, kForever, nullptr) == QNL_OK;
        }
        qnl_tensor found = {};
        ok = ok && s.tensor(QNL_OUTPUT, "sum", &found) == QNL_OK;
        for (size_t i = 0; ok && i < kElements; ++i) ok = static_cast<float*>(found.data)[i] == 4 * value + 1;
      }
      wrong += ok ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

#ifdef TEST_VULKAN
INSTANTIATE_TEST_SUITE_P(Devices, Async,
                         testing::Values("cpu", "cpu thread", "cpu pool", "cpu pool thread", "vulkan",
                                         "vulkan copies", "vulkan thread"));
#else
INSTANTIATE_TEST_SUITE_P(Devices, Async, testing::Values("cpu", "cpu thread", "cpu pool", "cpu pool thread"));
#endif

// On the thread of a CPU device, where a gate can keep a run in flight.
class AsyncThread : public Async {};

TEST_P(AsyncThread, what_is_queued_behind_a_run_can_be_cancelled) {
  Gate gate;
  Session slow = gated(&gate, device_->device), s = session("main");
  set_main(s, 1);
  qnl_event *first_event = submit(slow), *second = submit(s);
  EXPECT_EQ(qnl_event_done(second), 0);
  s.cancel();
  gate.open();
  EXPECT_EQ(wait(second), QNL_CANCELLED);
  EXPECT_STREQ(error_.text, "item 0 'add' (node 'Add_0'): cancelled");
  EXPECT_EQ(wait(first_event), QNL_OK);
  EXPECT_EQ(result(s, "sum"), 0) << "nothing ran";
}

TEST_P(AsyncThread, a_session_in_flight_is_cancelled_and_waited_for_when_it_is_destroyed) {
  Gate gate;
  Session slow = gated(&gate, device_->device), s = session("main");
  set_main(s, 1);
  qnl_status ended = QNL_OK;
  qnl_submit_options options = {};
  options.callback = [](void* user, qnl_status status) { *static_cast<qnl_status*>(user) = status; };
  options.user = &ended;
  qnl_event* event = submit(slow);
  ASSERT_EQ(s.submit(nullptr, &options, &error_), QNL_OK);
  std::thread opener([&] {
    while (!gate.arrived.load()) platform::spin_pause();
    gate.open();
  });
  s = Session();
  EXPECT_TRUE(ended == QNL_CANCELLED || ended == QNL_OK) << ended << ", but over";
  opener.join();
  EXPECT_EQ(wait(event), QNL_OK);
  slow = Session();
}

TEST_P(AsyncThread, a_state_in_use_is_not_touched) {
  Session a = session("accumulate"), b = sharing("accumulate", a);
  set_x(a, 1);
  set_x(b, 10);
  Gate gate;
  qnl_session_set_profile(
      a.get(), [](void* user, uint32_t, uint64_t) { static_cast<Gate*>(user)->pass(); }, &gate);
  qnl_event* event = submit(a);
  while (!gate.arrived.load()) platform::spin_pause();
  EXPECT_EQ(b.run(&error_), QNL_RUN_IN_FLIGHT);
  EXPECT_STREQ(error_.text,
               "state: a session that shares it runs now; wait for it, or let this run wait for its event");
  Floats state(16);
  EXPECT_EQ(qnl_session_save_state(b.get(), state.data(), 64, &error_), QNL_RUN_IN_FLIGHT);
  EXPECT_EQ(qnl_session_restore_state(b.get(), state.data(), 64, &error_), QNL_RUN_IN_FLIGHT);
  EXPECT_EQ(qnl_session_reset_state(b.get(), &error_), QNL_RUN_IN_FLIGHT);
  Session other = session("accumulate");
  EXPECT_EQ(qnl_session_copy_state(b.get(), other.get(), &error_), QNL_RUN_IN_FLIGHT);
  EXPECT_EQ(qnl_session_copy_state(other.get(), b.get(), &error_), QNL_RUN_IN_FLIGHT);
  qnl_event* after = submit(b);
  EXPECT_EQ(qnl_event_done(after), 0);
  gate.open();
  EXPECT_EQ(wait(after), QNL_OK);
  EXPECT_EQ(wait(event), QNL_OK);
  EXPECT_EQ(result(b, "y"), 11);
  qnl_session_set_profile(a.get(), nullptr, nullptr);
  EXPECT_EQ(b.run(&error_), QNL_OK) << error_.text;
  b = Session();
  EXPECT_EQ(a.run(&error_), QNL_OK) << error_.text;
}

INSTANTIATE_TEST_SUITE_P(Devices, AsyncThread, testing::Values("cpu thread", "cpu pool thread"));

}  // namespace
}  // namespace quernel::test
