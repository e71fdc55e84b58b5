// Asynchronous runs: submission to the device's queue or its thread, events, dependencies.
#include "core/submission.h"

#include <new>

#include "core/session.h"
#include "core/trace.h"
#include "platform/platform.h"

namespace quernel::runtime {
namespace {

// A run that was on the device's queue; by whoever sees first that it is complete.
void end_queued_run(qnl_event* event, qnl_status status) {
  qnl_session* s = event->session;
  if (status != QNL_OK) {
    CommandFailure failed;
    failed.command = s->plan.command_count;
    status = describe_failure(s, status, failed, &event->error);
  }
  end_run(s, status);
}

uint64_t left_of(uint64_t timeout, uint64_t begin) {
  if (timeout == platform::kForever) return timeout;
  uint64_t passed = platform::now_nanoseconds() - begin;
  return passed < timeout ? timeout - passed : 0;
}

// Waits until the run that has this word is over; QNL_OK then, however it ended.
qnl_status await_run(qnl_event* event, uint32_t word, uint64_t timeout) {
  if (word_of(*event) != word) return QNL_OK;
  uint64_t begin = platform::now_nanoseconds();
  while (word_of(*event) == word) {
    Event on_device;
    event->lock.lock();
    bool on_queue = event->on_queue && word_of(*event) == word;
    if (on_queue) on_device = event->on_device;
    event->lock.unlock();
    uint64_t left = left_of(timeout, begin);
    Device* device = event->session->device;
    if (!on_queue) {
      if (left == 0) return QNL_TIMEOUT;
      __atomic_fetch_add(&event->sleepers, 1, __ATOMIC_SEQ_CST);
      platform::park(&event->word, word, left);
      __atomic_fetch_sub(&event->sleepers, 1, __ATOMIC_SEQ_CST);
      continue;
    }
    qnl_status status = device->table->event_wait(device, &on_device, left);
    if (status == QNL_TIMEOUT) return status;
    event->lock.lock();
    bool first = event->on_queue && word_of(*event) == word;
    if (first) event->on_queue = false;
    event->lock.unlock();
    if (first) end_queued_run(event, status);
  }
  return QNL_OK;
}

// In its turn; a run of the same queue is followed by order alone.
qnl_status await_dependencies(qnl_event* event, bool by_queue, qnl_error* error) {
  for (uint32_t i = 0; i < event->dependency_count; ++i) {
    const qnl_event::Dependency& dependency = event->dependencies[i];
    qnl_event* other = dependency.event;
    if (by_queue && kind_of(*other) == RunKind::kQueue && other->session->device == event->session->device)
      continue;
    (void)await_run(other, dependency.word, platform::kForever);
    if (word_of(*other) == dependency.word + 1 && other->status != QNL_OK)
      return fail(error, other->status, "run {}: it waits for one that failed, {}", uint64_t{i},
                  other->error.text);
  }
  return QNL_OK;
}

void execute(qnl_event* event) {
  qnl_status status = await_dependencies(event, false, &event->error);
  if (status == QNL_OK) status = run_plan(event->session, &event->error);
  end_run(event->session, status);
}

void thread_main(void* argument) {
  auto* t = static_cast<SubmissionThread*>(argument);
  for (;;) {
    t->lock.lock();
    qnl_event* event = t->first;
    if (event != nullptr) t->first = event->next;
    if (t->first == nullptr) t->last = nullptr;
    uint32_t seen = __atomic_load_n(&t->wakeups, __ATOMIC_RELAXED);
    bool stopping = t->stopping;
    t->lock.unlock();
    if (event != nullptr) {
      execute(event);
    } else if (stopping) {
      return;
    } else {
      platform::park(&t->wakeups, seen, platform::kForever);
    }
  }
}

void wake_thread(SubmissionThread* t) {
  __atomic_fetch_add(&t->wakeups, 1, __ATOMIC_RELEASE);
  platform::wake(&t->wakeups, 1);
}

void stop_thread(SubmissionThread* t) {
  t->lock.lock();
  t->stopping = true;
  t->lock.unlock();
  wake_thread(t);
  platform::join_thread(t->thread);
  t->~SubmissionThread();
  platform::free_pages(t, sizeof(SubmissionThread));
}

void finish_event(qnl_event* event) { (void)await_run(event, word_of(*event) & ~1u, platform::kForever); }

// The device has a queue, and nothing in the plan needs the host before its end.
bool is_one_submission(const qnl_session* s) {
  DeviceProperties properties;
  s->device->table->properties(s->device, &properties);
  if (!properties.has_queue || s->plan.control_count != 0) return false;
  for (uint32_t c = 0; c < s->plan.command_count; ++c)
    if (leaves_device(s->commands[c].kind)) return false;
  return true;
}

qnl_status take_dependencies(qnl_event* event, const qnl_submit_options& options, qnl_error* error) {
  if (options.wait_for_count > kMaxDependencies ||
      (options.wait_for == nullptr && options.wait_for_count != 0))
    return fail(error, QNL_INVALID_ARGUMENT, "wait_for: expected at most {} events, found {}",
                kMaxDependencies, options.wait_for_count);
  for (uint32_t i = 0; i < options.wait_for_count; ++i) {
    qnl_event* other = options.wait_for[i];
    if (other == nullptr || other == event)
      return fail(error, QNL_INVALID_ARGUMENT, "wait_for: expected events of other sessions");
    event->dependencies[i] = {other, word_of(*other) & ~1u};
  }
  event->dependency_count = options.wait_for_count;
  return QNL_OK;
}

void enqueue(SubmissionThread* t, qnl_event* event) {
  t->lock.lock();
  event->next = nullptr;
  (t->last == nullptr ? t->first : t->last->next) = event;
  t->last = event;
  t->lock.unlock();
  wake_thread(t);
}

// The submission stays in flight.
qnl_status submit_to_queue(qnl_session* s) {
  qnl_event* event = &s->event;
  Event on_device;
  CommandFailure failed;
  failed.command = s->plan.command_count;
  qnl_status status =
      s->device->table->submit(s->device, s->recording, 0, s->plan.command_count, &on_device, &failed);
  if (status != QNL_OK) return describe_failure(s, status, failed, &event->error);
  Guard guard(&event->lock);
  event->on_device = on_device;
  event->on_queue = true;
  return QNL_OK;
}

}  // namespace
}  // namespace quernel::runtime

using namespace quernel::runtime;
namespace platform = quernel::platform;

extern "C" {

qnl_status qnl_device_start_thread(qnl_device* device, qnl_error* error) {
  if (device->thread != nullptr) return QNL_OK;
  void* memory = platform::allocate_pages(sizeof(SubmissionThread));
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "device: no memory for a thread");
  auto* t = new (memory) SubmissionThread;
  t->stop = stop_thread;
  if (!platform::start_thread(&t->thread, thread_main, t)) {
    platform::free_pages(memory, sizeof(SubmissionThread));
    return fail(error, QNL_THREAD_FAILED, "device: could not start a thread");
  }
  device->thread = t;
  return QNL_OK;
}

qnl_status qnl_session_submit(qnl_session* s, const qnl_submit_options* options, qnl_event** result,
                              qnl_error* error) {
  qnl_submit_options defaults = {};
  const qnl_submit_options& o = options == nullptr ? defaults : *options;
  qnl_event* event = &s->event;
  if (result != nullptr) *result = nullptr;
  qnl_status status = check_idle(s, error);
  if (status == QNL_OK) status = check_ready(s, error);
  if (status == QNL_OK) status = take_dependencies(event, o, error);
  if (status != QNL_OK) return status;
  SubmissionThread* thread = s->device->thread;
  RunKind kind = is_one_submission(s) ? RunKind::kQueue : RunKind::kHost;
  if (thread != nullptr) kind = RunKind::kThread;
  // Without a thread what this run waits for is waited for here; how that ended is this run's to say.
  qnl_error waiting = {};
  qnl_status before = QNL_OK;
  if (kind != RunKind::kThread) before = await_dependencies(event, kind == RunKind::kQueue, &waiting);
  if (status = begin_run(s, kind, error); status != QNL_OK) return status;
  event->callback = o.callback;
  event->callback_user = o.user;
  event->finish = finish_event;
  if (result != nullptr) *result = event;
  if (kind == RunKind::kThread) {
    enqueue(thread, event);
    return QNL_OK;
  }
  if (before != QNL_OK) {
    event->error = waiting;
    end_run(s, before);
    return QNL_OK;
  }
  status = kind == RunKind::kQueue ? submit_to_queue(s) : run_plan(s, &event->error);
  if (kind == RunKind::kHost || status != QNL_OK) end_run(s, status);
  return QNL_OK;
}

int qnl_event_done(qnl_event* event) {
  uint32_t word = word_of(*event);
  return is_over(word) || await_run(event, word, 0) == QNL_OK ? 1 : 0;
}

qnl_status qnl_event_wait(qnl_event* event, uint64_t timeout_nanoseconds, qnl_error* error) {
  uint32_t word = word_of(*event);
  if (!is_over(word)) {
    if (await_run(event, word, timeout_nanoseconds) != QNL_OK)
      return fail(error, QNL_TIMEOUT, "run: not over after {} nanoseconds", timeout_nanoseconds);
  }
  if (event->status != QNL_OK && error != nullptr) *error = event->error;
  return event->status;
}

}  // extern "C"
