// For tests and tools: what a Vulkan device has done, and ways to make it fail.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime::vulkan {

struct Counts {
  uint64_t submissions = 0;  // to the queue, without transfers
  uint64_t transfers = 0;    // submissions of fill, write, read and copy
  uint64_t recordings = 0;   // command buffers recorded
  uint64_t barriers = 0;     // barriers recorded between commands
  uint64_t descriptor_updates = 0;
  uint64_t modules = 0;                           // shader modules created
  uint64_t pipelines = 0;                         // pipelines created
  uint64_t uploads = 0;                           // constants copied to the device
  uint64_t cache_bytes = 0;                       // read from the pipeline cache's file
  uint64_t allocations = 0, allocated_bytes = 0;  // driver memory held now
  uint64_t messages = 0;                          // warnings and errors of the validation layer
};
Counts counts(const qnl_device* device);
// Makes the device behave as if its driver had reported that it is lost.
void inject_fault(qnl_device* device);
// Limits storage buffers to that many bytes. Call before sessions are created.
void limit_windows(qnl_device* device, uint32_t bytes);
// Limits the driver to that many allocations and bytes of memory.
void limit_memory(qnl_device* device, uint32_t allocations, uint64_t bytes);
// Makes the device behave as if its queue had no timestamps.
void hide_clock(qnl_device* device);

}  // namespace quernel::runtime::vulkan
