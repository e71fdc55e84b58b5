// What a device does while a program runs: recorded through qnl_device_set_trace, written as a file that
// Chrome's and Perfetto's viewers open, and summed up per item.
#pragma once

#include <stddef.h>

#include <string>
#include <vector>

#include "quernel/runtime.hpp"
#include "tensor_file.h"

namespace quernel::run {

class TraceRecorder {
 public:
  TraceRecorder() = default;
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;
  ~TraceRecorder() { stop(); }

  // Records from here on; the device must outlive the recorder, or its stop().
  void start(const Device& device);
  void stop();
  // What follows is the profile's.
  void begin_profile() { profile_begin_ = records_.size(); }

  // Trace events of JSON: a track for the host, one for the device's queue.
  tensor_file::Error write(const std::string& path) const;

  // A table of the items, longest first, then what else was done.
  void print_profile() const;
  // ', "items": […], "device_work": {…}'
  std::string json_profile() const;

 private:
  struct Record {
    qnl_trace_event event;
    qnl_item_info item;  // of an item; its texts are the bundle's
  };
  struct ItemSum;
  struct WorkSum;
  static void on_event(void* user, const qnl_trace_event* event);
  std::vector<ItemSum> sum_items() const;
  std::vector<WorkSum> sum_work() const;

  qnl_device* device_ = nullptr;
  std::string device_name_;
  std::vector<Record> records_;
  size_t profile_begin_ = 0;
};

}  // namespace quernel::run
