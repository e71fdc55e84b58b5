// Runs of sessions: whether one is in flight, what it waits for, how it ended. A session has one run at a
// time, and its event is part of the session. submission.cpp holds what only asynchronous runs need.
#pragma once

#include "core/device.h"

namespace quernel::runtime {

inline constexpr uint32_t kMaxDependencies = 8;

// How a run is executed.
enum class RunKind : uint32_t {
  kHost,    // by the calling thread
  kThread,  // by the device's thread
  kQueue,   // on the device's queue, in one submission
};

// The optional thread of a device, and the runs queued for it.
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
  // Twice the number of the run, plus 1 when it is over. A thread that sees it over sees all effects of the
  // run. Threads sleep on it.
  uint32_t word = 1;
  uint32_t sleepers = 0;
  uint32_t cancelled = 0;
  quernel::runtime::RunKind kind = quernel::runtime::RunKind::kHost;  // atomic
  qnl_status status = QNL_OK;                                         // of the last run, with the error
  qnl_error error = {};

  struct Dependency {
    qnl_event* event;
    uint32_t word;
  };
  Dependency dependencies[quernel::runtime::kMaxDependencies] = {};
  uint32_t dependency_count = 0;
  void (*callback)(void* user, qnl_status status) = nullptr;
  void* callback_user = nullptr;
  qnl_event* next = nullptr;  // next in the queue of the device's thread

  quernel::runtime::Lock lock;  // guards the next two members; held while `word` becomes odd
  bool on_queue = false;        // and not yet seen complete
  quernel::runtime::Event on_device;
  void (*finish)(qnl_event* event) = nullptr;  // waits for the run; set once a run has been submitted
};

namespace quernel::runtime {

inline RunKind kind_of(const qnl_event& event) { return __atomic_load_n(&event.kind, __ATOMIC_RELAXED); }
inline bool is_over(uint32_t word) { return (word & 1) != 0; }
inline uint32_t word_of(const qnl_event& event) { return __atomic_load_n(&event.word, __ATOMIC_ACQUIRE); }

// Returns QNL_RUN_IN_FLIGHT during a run: the session must not be changed then.
qnl_status check_idle(const qnl_session* s, qnl_error* error);
// The same for the session's state, which other sessions may share.
qnl_status check_state_idle(const qnl_session* s, qnl_error* error);
// Marks the session and its state as running, or says why it may not run now.
qnl_status begin_run(qnl_session* s, RunKind kind, qnl_error* error);
// Calls the callback, then shows all threads that the run is over.
void end_run(qnl_session* s, qnl_status status);

}  // namespace quernel::runtime
