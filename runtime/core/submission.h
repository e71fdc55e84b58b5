// Runs of sessions: whether one is in flight, what it waits for, how it ended. A session has one at a time,
// its event is part of the session. submission.cpp has what only asynchronous runs need.
#pragma once

#include "core/device.h"

namespace quernel::runtime {

inline constexpr uint32_t kMaxDependencies = 8;

// How a run is executed.
enum class RunKind : uint32_t {
  kHost,    // by the thread that calls
  kThread,  // by the device's own thread
  kQueue,   // on the device's queue, in one submission
};

// The thread that a device may have, and what waits for it.
struct SubmissionThread {
  void (*stop)(SubmissionThread* thread) = nullptr;
  Lock lock;
  qnl_event* first = nullptr;
  qnl_event* last = nullptr;
  uint32_t wakeups = 0;
  bool stopping = false;
  platform::Thread thread;
};

}  // namespace quernel::runtime

struct qnl_event {
  qnl_session* session = nullptr;
  // Twice the number of the run, plus 1 when it is over: whoever sees that sees all of the run. Threads sleep
  // on it.
  uint32_t word = 1;
  uint32_t sleepers = 0;
  uint32_t cancelled = 0;
  quernel::runtime::RunKind kind = quernel::runtime::RunKind::kHost;  // atomic
  qnl_status status = QNL_OK;                                         // of the last run, with what went wrong
  qnl_error error = {};

  struct Dependency {
    qnl_event* event;
    uint32_t word;
  };
  Dependency dependencies[quernel::runtime::kMaxDependencies] = {};
  uint32_t dependency_count = 0;
  void (*callback)(void* user, qnl_status status) = nullptr;
  void* callback_user = nullptr;
  qnl_event* next = nullptr;  // that the device's thread runs

  quernel::runtime::Lock lock;  // of the two that follow, and held while `word` becomes odd
  bool on_queue = false;        // and nobody has seen it complete
  quernel::runtime::Event on_device;
  void (*finish)(qnl_event* event) = nullptr;  // waits for the run; set when one has been submitted
};

namespace quernel::runtime {

inline RunKind kind_of(const qnl_event& event) { return __atomic_load_n(&event.kind, __ATOMIC_RELAXED); }
inline bool is_over(uint32_t word) { return (word & 1) != 0; }
inline uint32_t word_of(const qnl_event& event) { return __atomic_load_n(&event.word, __ATOMIC_ACQUIRE); }

// QNL_RUN_IN_FLIGHT while the session runs: nothing of it may be changed then.
qnl_status check_idle(const qnl_session* s, qnl_error* error);
// The same for the state that it has, which others may share.
qnl_status check_state_idle(const qnl_session* s, qnl_error* error);
// Marks the session and its state as running, or says why it may not run now.
qnl_status begin_run(qnl_session* s, RunKind kind, qnl_error* error);
// Calls back, then lets everyone see that the run is over.
void end_run(qnl_session* s, qnl_status status);

}  // namespace quernel::runtime
