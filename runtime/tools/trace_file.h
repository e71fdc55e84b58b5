// Records what a device does while a program runs (qnl_device_set_trace). Writes it as a file for Chrome's
// and Perfetto's viewers, and sums it up per item.
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

  // Starts recording. The device must outlive the recorder, or its stop().
  void start(const Device& device);
  void stop();
  // The profile covers the records from here on.
  void begin_profile() { profile_begin_ = records_.size(); }

  // Writes JSON trace events: one track for the host, one for the device's queue.
  tensor_file::Error write(const std::string& path) const;

  // Prints a table of the items, longest first, then of the device's other work.
  void print_profile() const;
  // Returns ', "items": […], "device_work": {…}'.
  std::string json_profile() const;

 private:
  struct Record {
    qnl_trace_event event;
    qnl_item_info item;  // of an item event; its texts belong to the bundle
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
