// Running a session's plan: straight stretches of commands are submitted as they are, loops, branches and
// numbers read from memory are followed here.
#include "core/session.h"
#include "core/submission.h"
#include "core/trace.h"
#include "platform/platform.h"

namespace quernel::runtime {

namespace {
const char* item_name(const qnl_session* s, const ItemView& item) {
  switch (item.kind) {
    case QNL_ITEM_DISPATCH:
    case QNL_ITEM_COMPANION_DISPATCH:
      return s->bundle->reader.kernel(variant_of(s->plan, item), item.kernel).name;
    case QNL_ITEM_HOST_CALLBACK:
      return item.callback;
    case QNL_ITEM_COPY:
      return "copy";
    case QNL_ITEM_SYNCHRONIZE:
      return "synchronize";
    case QNL_ITEM_READ_SYMBOL:
      return "read_symbol";
    case QNL_ITEM_LOOP:
      return "loop";
    case QNL_ITEM_BRANCH:
      return "branch";
  }
  return "?";
}

}  // namespace

qnl_status describe_failure(const qnl_session* s, qnl_status status, const CommandFailure& failed,
                            qnl_error* error) {
  if constexpr (!kErrorTexts) return fail_status(error, status);
  Failure failure(error, status);
  if (failed.command >= s->plan.command_count) return failure.append("{}", qnl_status_text(status));
  qnl_item_info item;
  (void)!qnl_session_get_item(s, failed.command, &item);
  failure.append("item {} '{}'", failed.command, item.name);
  if (item.source_node[0] != '\0') failure.append(" (node '{}')", item.source_node);
  failure.append(": {}", qnl_status_text(status));
  if (status == QNL_KERNEL_FAILED && failed.code == QNL_KERNEL_INDEX_OUT_OF_RANGE)
    failure.append(", index out of range");
  if (status == QNL_KERNEL_FAILED && failed.code == QNL_KERNEL_DIVISION_BY_ZERO)
    failure.append(", division by zero");
  if (failed.code != 0) failure.append(", code {}", int64_t{failed.code});
  const HostCallback& callback = s->commands[failed.command].callback;
  if (status == QNL_CALLBACK_FAILED && callback.function == run_custom_call) {
    const char* message = static_cast<const CustomCall*>(callback.user)->message;
    if (message[0] != '\0') failure.append(": {}", message);
  }
  return failure;
}

namespace {

qnl_status submit(qnl_session* s, uint32_t begin, uint32_t end, qnl_error* error) {
  Event event;
  CommandFailure failed;
  failed.command = s->plan.command_count;
  qnl_status status = s->device->table->submit(s->device, s->recording, begin, end, &event, &failed);
  if (status == QNL_OK) status = s->device->table->event_wait(s->device, &event, ~uint64_t{0});
  return status == QNL_OK ? QNL_OK : describe_failure(s, status, failed, error);
}

// Commands without controls among them.
qnl_status run_straight(qnl_session* s, uint32_t begin, uint32_t end, qnl_error* error) {
  if (s->plan.runtime_site_count != 0)
    if (qnl_status status = refresh_commands(s, begin, end, error); status != QNL_OK) return status;
  return submit(s, begin, end, error);
}

void set_symbol(qnl_session* s, int32_t symbol, int64_t value) {
  if (s->symbols.now[symbol] == value) return;
  s->symbols.now[symbol] = value;
  s->changed_at[symbol % 64] = ++s->changes;
}

// Of an integer or boolean, in the low bytes of `bits`. What does not fit 64 bits with a sign becomes the
// value that no range has.
int64_t widen(qnl_dtype dtype, uint64_t bits) {
  if (dtype == QNL_BOOL) return bits != 0 ? 1 : 0;
  auto above = static_cast<uint32_t>(64 - 8 * qnl_dtype_bytes(dtype, 1));
  bool has_sign = dtype == QNL_I8 || dtype == QNL_I16 || dtype == QNL_I32 || dtype == QNL_I64;
  if (has_sign) return static_cast<int64_t>(bits << above) >> above;
  return bits >> 63 != 0 ? kUnset : static_cast<int64_t>(bits);
}

Subject subject_of(const Control& control) {
  return {"item", control.command, "", control.kind == QNL_ITEM_LOOP ? "loop" : ""};
}

qnl_status read_symbol(qnl_session* s, const Control& control, qnl_error* error) {
  bool timed = is_timed(s->device, s->list);
  uint64_t start = timed ? platform::now_nanoseconds() : 0;
  uint64_t element = 0;
  DeviceRange range = s->bindings[s->commands[control.command].first_binding];
  qnl_status status = s->device->table->read(s->device, range, &element, qnl_dtype_bytes(control.dtype, 1));
  if (status != QNL_OK) return fail(error, status, "item {}: its number cannot be read", control.command);
  int64_t value = widen(control.dtype, element);
  status = check_symbol(s->bundle->reader, static_cast<uint32_t>(control.symbol), value, s->symbols.now,
                        subject_of(control), error);
  if (status != QNL_OK) return status;
  set_symbol(s, control.symbol, value);
  if (timed) report_command(s->device, s->list, control.command, false, start, platform::now_nanoseconds());
  return QNL_OK;
}

qnl_status run_body(qnl_session* s, uint32_t begin, uint32_t end, uint32_t control, qnl_error* error);

qnl_status evaluate_now(const qnl_session* s, const Control& control, int32_t expression, int64_t* value,
                        qnl_error* error) {
  return value_of(s->bundle->reader, expression, s->symbols.now, subject_of(control), Range::kAny, value,
                  error);
}

qnl_status run_loop(qnl_session* s, const Control& control, uint32_t first_control, qnl_error* error) {
  int64_t count = INT64_MAX;
  qnl_status status = QNL_OK;
  if (control.count >= 0) status = evaluate_now(s, control, control.count, &count, error);
  for (int64_t i = 0; status == QNL_OK; ++i) {
    set_symbol(s, control.symbol, i);
    if (i >= count) return QNL_OK;
    int64_t condition = 1;
    if (control.condition >= 0) status = evaluate_now(s, control, control.condition, &condition, error);
    if (status != QNL_OK) return status;
    if (condition == 0) return QNL_OK;
    status = check_symbol(s->bundle->reader, static_cast<uint32_t>(control.symbol), i, s->symbols.now,
                          subject_of(control), error);
    if (status == QNL_OK) status = run_body(s, control.command + 1, control.end, first_control, error);
  }
  return status;
}

qnl_status run_branch(qnl_session* s, const Control& control, uint32_t first_control, qnl_error* error) {
  int64_t condition = 0;
  qnl_status status = evaluate_now(s, control, control.condition, &condition, error);
  if (status != QNL_OK) return status;
  return condition != 0 ? run_body(s, control.command + 1, control.else_begin, first_control, error)
                        : run_body(s, control.else_begin, control.end, control.else_control, error);
}

// Commands [begin, end); `control` is the first control at or after `begin`. Recursion is as deep as bodies
// are nested.
qnl_status run_body(qnl_session* s, uint32_t begin, uint32_t end, uint32_t control, qnl_error* error) {
  for (;;) {
    bool more = control < s->plan.control_count && s->controls[control].command < end;
    uint32_t stop = more ? s->controls[control].command : end;
    qnl_status status = begin < stop ? run_straight(s, begin, stop, error) : QNL_OK;
    if (status != QNL_OK || !more) return status;
    const Control& c = s->controls[control];
    if (c.kind == QNL_ITEM_READ_SYMBOL) {
      status = read_symbol(s, c, error);
      begin = c.command + 1;
    } else {
      status =
          c.kind == QNL_ITEM_LOOP ? run_loop(s, c, control + 1, error) : run_branch(s, c, control + 1, error);
      begin = c.end;
    }
    if (status != QNL_OK) return status;
    control = c.end_control;
  }
}

}  // namespace

namespace {

qnl_session* state_root(qnl_session* s) {
  if (s->plan.state_bytes == 0) return nullptr;
  return s->state_owner != nullptr ? s->state_owner : s;
}

// Another session's run that has the state and is not followed by order alone, as it would be when both are
// on the device's queue or for its thread.
bool is_foreign_run(const qnl_session* s, const qnl_event* other, RunKind kind) {
  return other != nullptr && other != &s->event && !is_over(word_of(*other)) &&
         (kind == RunKind::kHost || kind_of(*other) != kind);
}

qnl_status state_in_use(qnl_error* error) {
  return fail(error, QNL_RUN_IN_FLIGHT,
              "state: a session that shares it runs now; wait for it, or let this run wait for its event");
}

}  // namespace

qnl_status check_idle(const qnl_session* s, qnl_error* error) {
  if (is_over(word_of(s->event))) return QNL_OK;
  return fail(error, QNL_RUN_IN_FLIGHT, "session: its run is in flight; wait for that first");
}

qnl_status check_state_idle(const qnl_session* s, qnl_error* error) {
  if (qnl_status status = check_idle(s, error); status != QNL_OK) return status;
  qnl_session* root = state_root(const_cast<qnl_session*>(s));
  if (root == nullptr) return QNL_OK;
  const qnl_event* run = __atomic_load_n(&root->state_run, __ATOMIC_ACQUIRE);
  return is_foreign_run(s, run, RunKind::kHost) ? state_in_use(error) : QNL_OK;
}

qnl_status begin_run(qnl_session* s, RunKind kind, qnl_error* error) {
  uint32_t word = word_of(s->event);
  if (!is_over(word) || !__atomic_compare_exchange_n(&s->event.word, &word, word + 1, false, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_RELAXED))
    return fail(error, QNL_RUN_IN_FLIGHT, "session: its run is in flight; wait for that first");
  __atomic_store_n(&s->event.kind, kind, __ATOMIC_RELAXED);
  s->event.status = QNL_OK;
  __atomic_store_n(&s->event.cancelled, 0u, __ATOMIC_RELAXED);
  qnl_session* root = state_root(s);
  if (root == nullptr) return QNL_OK;
  qnl_event* other = __atomic_load_n(&root->state_run, __ATOMIC_ACQUIRE);
  while (!is_foreign_run(s, other, kind))
    if (__atomic_compare_exchange_n(&root->state_run, &other, &s->event, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return QNL_OK;
  __atomic_store_n(&s->event.word, word + 2, __ATOMIC_RELEASE);  // over before it began
  return state_in_use(error);
}

void end_run(qnl_session* s, qnl_status status) {
  qnl_event* event = &s->event;
  event->status = status;
  if (event->callback != nullptr) event->callback(event->callback_user, status);
  event->callback = nullptr;
  if (qnl_session* root = state_root(s); root != nullptr) {
    qnl_event* run = event;
    __atomic_compare_exchange_n(&root->state_run, &run, nullptr, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }
  // The session may be destroyed by whoever sees this, after the lock (qnl_session_destroy).
  Guard guard(&event->lock);
  __atomic_fetch_add(&event->word, 1u, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&event->sleepers, __ATOMIC_SEQ_CST) != 0) platform::wake(&event->word, ~0u >> 1);
}

qnl_status run_plan(qnl_session* s, qnl_error* error) {
  TraceScope scope(s->device, QNL_TRACE_RUN, s);
  if (s->plan.control_count == 0) return run_straight(s, 0, s->plan.command_count, error);
  for (uint32_t i = 0; i < s->plan.symbol_count; ++i)
    if (s->bundle->reader.symbol(i).runtime) set_symbol(s, static_cast<int32_t>(i), kUnset);
  return run_body(s, 0, s->plan.command_count, 0, error);
}

}  // namespace quernel::runtime

using quernel::runtime::ItemView;

extern "C" {

uint32_t qnl_session_item_count(const qnl_session* s) { return s->plan.command_count; }

qnl_status qnl_session_get_item(const qnl_session* s, uint32_t index, qnl_item_info* info) {
  if (index >= s->plan.command_count) return QNL_INVALID_ARGUMENT;
  ItemView item = s->bundle->reader.item(s->plan.items, index);
  const quernel::runtime::Command& command = s->commands[index];
  *info = {item.kind,
           quernel::runtime::item_name(s, item),
           item.source_node,
           command.workgroups,
           command.flops,
           command.bytes_read,
           command.bytes_written};
  return QNL_OK;
}

void qnl_session_cancel(qnl_session* s) { __atomic_store_n(&s->event.cancelled, 1u, __ATOMIC_RELAXED); }

void qnl_session_set_profile(qnl_session* s, qnl_profile_hook hook, void* user) {
  s->list.profile = hook;
  s->list.profile_user = user;
  s->companion_list.profile = hook;
  s->companion_list.profile_user = user;
}

}  // extern "C"
