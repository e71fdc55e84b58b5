// Reports of devices and sessions to a trace or profile hook. Without a hook, each place costs one
// comparison.
#pragma once

#include "core/device.h"

namespace quernel::runtime {

// Returns true if the list's commands must be timed one by one.
inline bool is_timed(const Device* device, const CommandList& list) {
  return device->trace != nullptr || list.profile != nullptr;
}

// Reports a command that has run, on the device's queue or on the host.
void report_command(const Device* device, const CommandList& list, uint32_t command, bool on_queue,
                    uint64_t begin, uint64_t end);

// Reports an event of the device that belongs to no command.
void report(const Device* device, qnl_trace_kind kind, const qnl_session* session, bool on_queue,
            uint64_t begin, uint64_t end, uint64_t bytes);

// Reports an event of the host, from here to the end of the scope. Out of line: there are many, none is hot.
class TraceScope {
 public:
  TraceScope(const Device* device, qnl_trace_kind kind, const qnl_session* session, uint64_t bytes = 0);
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  ~TraceScope();

 private:
  const Device* device_;
  const qnl_session* session_;
  uint64_t begin_ = 0, bytes_;
  qnl_trace_kind kind_;
};

}  // namespace quernel::runtime
