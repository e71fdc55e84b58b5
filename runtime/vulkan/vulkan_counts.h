// What tests and tools may ask a Vulkan device: how much it has done, and how to make it fail.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime::vulkan {

struct Counts {
  uint64_t submissions = 0;  // to the queue, transfers not counted
  uint64_t transfers = 0;    // submissions of fill, write, read and copy
  uint64_t recordings = 0;   // command buffers recorded
  uint64_t barriers = 0;     // recorded between commands
  uint64_t descriptor_updates = 0;
  uint64_t modules = 0;                           // of kernels, created
  uint64_t pipelines = 0;                         // created
  uint64_t uploads = 0;                           // of constants
  uint64_t cache_bytes = 0;                       // taken from the pipeline cache's file
  uint64_t allocations = 0, allocated_bytes = 0;  // of memory of the driver, held now
  uint64_t messages = 0;                          // of the validation layers, warnings and errors
};
Counts counts(const qnl_device* device);
// The device behaves as if its driver had reported that it is lost.
void inject_fault(qnl_device* device);
// As if its storage buffers had at most that many bytes; before sessions are made.
void limit_windows(qnl_device* device, uint32_t bytes);
// As if the driver allowed that many allocations, and had that much memory for them.
void limit_memory(qnl_device* device, uint32_t allocations, uint64_t bytes);
// The device behaves as if its queue had no timestamps.
void hide_clock(qnl_device* device);

}  // namespace quernel::runtime::vulkan
