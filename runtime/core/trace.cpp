#include "core/trace.h"

#include "platform/platform.h"

namespace quernel::runtime {

void report_command(const Device* device, const CommandList& list, uint32_t command, bool on_queue,
                    uint64_t begin, uint64_t end) {
  if (list.profile != nullptr) list.profile(list.profile_user, command, end - begin);
  if (device->trace == nullptr) return;
  Guard guard(&device->trace_lock);
  qnl_trace_event event = {QNL_TRACE_ITEM, list.session, command, on_queue ? 1 : 0, begin, end, 0};
  device->trace(device->trace_user, &event);
}

void report(const Device* device, qnl_trace_kind kind, const qnl_session* session, bool on_queue,
            uint64_t begin, uint64_t end, uint64_t bytes) {
  if (device->trace == nullptr) return;
  Guard guard(&device->trace_lock);
  qnl_trace_event event = {kind, session, 0, on_queue ? 1 : 0, begin, end, bytes};
  device->trace(device->trace_user, &event);
}

TraceScope::TraceScope(const Device* device, qnl_trace_kind kind, const qnl_session* session, uint64_t bytes)
    : device_(device), session_(session), bytes_(bytes), kind_(kind) {
  if (device_->trace != nullptr) begin_ = platform::now_nanoseconds();
}

TraceScope::~TraceScope() {
  if (device_->trace != nullptr)
    report(device_, kind_, session_, false, begin_, platform::now_nanoseconds(), bytes_);
}

}  // namespace quernel::runtime

extern "C" void qnl_device_set_trace(qnl_device* device, qnl_trace_hook hook, void* user) {
  device->trace = hook;
  device->trace_user = user;
  if (device->companion != nullptr)
    qnl_device_set_trace(static_cast<qnl_device*>(device->companion), hook, user);
}
