// Which ranges of memory a dispatch sees: at most QNL_SPIRV_WINDOWS of them cover its bindings.
#pragma once

#include "vulkan/vulkan_record.h"

namespace quernel::runtime::vulkan {

struct WindowLimits {
  uint64_t alignment;  // of a window's beginning
  uint64_t max_bytes;
};

struct WindowBinding {
  VkBuffer buffer;  // null: it has no memory, and is empty
  uint64_t offset;
  uint64_t bytes;
  uint64_t limit;  // bytes of the buffer
  bool splittable = false;
};

// What all windows of a binding in several have, but the last: whole elements of any type, and so few bytes
// that an index of 32 bits reaches the end of the last one.
inline uint64_t split_bytes(uint64_t max_bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  return max_bytes < kMost ? max_bytes / 256 * 256 : kMost;
}

// All windows are filled in; those that are not needed are like the first. Bindings that overlap share one.
// A splittable binding that no window holds has several, one after the other.
// Where that cannot be, QNL_INVALID_ARGUMENT with the reason appended to the failure's text.
qnl_status find_windows(const WindowLimits& limits, const WindowBinding* bindings, uint32_t count,
                        Window* windows, WindowMap* map, Failure* failure);

}  // namespace quernel::runtime::vulkan
