// What devices and sessions report while a trace or profile hook is set, and nothing otherwise: then each
// place costs a comparison.
#pragma once

#include "core/device.h"

namespace quernel::runtime {

// Commands of the list are to be timed one by one.
inline bool is_timed(const Device* device, const CommandList& list) {
  return device->trace != nullptr || list.profile != nullptr;
}

// A command has run, on the device's queue or on the host.
void report_command(const Device* device, const CommandList& list, uint32_t command, bool on_queue,
                    uint64_t begin, uint64_t end);

// One event of the device's trace that belongs to no command.
void report(const Device* device, qnl_trace_kind kind, const qnl_session* session, bool on_queue,
            uint64_t begin, uint64_t end, uint64_t bytes);

// An event of the host from here to the end of the scope. Out of line: there are many, none is hot.
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
