// Chooses the ranges of memory that a dispatch accesses: at most QNL_SPIRV_WINDOWS windows cover its
// bindings.
#pragma once

#include "vulkan/vulkan_record.h"

namespace quernel::runtime::vulkan {

struct WindowLimits {
  uint64_t alignment;  // of a window's first byte
  uint64_t max_bytes;
};

struct WindowBinding {
  VkBuffer buffer;  // null: the binding is empty and has no memory
  uint64_t offset;
  uint64_t bytes;
  uint64_t limit;  // size of the buffer in bytes
  bool splittable = false;
};

// Returns the bytes of each window of a split binding except the last. A multiple of 256, so that no element
// is divided, and at most 2^30, so that a 32-bit index reaches the end of the last window.
inline uint64_t split_bytes(uint64_t max_bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  return max_bytes < kMost ? max_bytes / 256 * 256 : kMost;
}

// Fills in all windows; unused ones equal the first. Overlapping bindings share a window. A splittable
// binding that is larger than a window gets several consecutive ones. Returns QNL_INVALID_ARGUMENT if the
// windows do not suffice, and appends the reason to the failure's text.
qnl_status find_windows(const WindowLimits& limits, const WindowBinding* bindings, uint32_t count,
                        Window* windows, WindowMap* map, Failure* failure);

// What a dispatch sees of its bindings.
struct Placement {
  WindowBinding bindings[kMaxBindings];
  Window windows[kWindows];
  WindowMap map;
};

// Finds what command `c`, a dispatch, sees.
qnl_status find_placement(const VulkanDevice* d, const VulkanRecording* r, uint32_t c, Placement* placement,
                          qnl_error* error);

}  // namespace quernel::runtime::vulkan
