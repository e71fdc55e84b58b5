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
};

// All windows are filled in; those that are not needed are like the first. Bindings that overlap share one.
// Where that cannot be, QNL_INVALID_ARGUMENT with the reason appended to the failure's text.
qnl_status find_windows(const WindowLimits& limits, const WindowBinding* bindings, uint32_t count,
                        Window* windows, WindowMap* map, Failure* failure);

}  // namespace quernel::runtime::vulkan
