// Memory of the driver, taken in blocks that many buffers share: drivers have few allocations to give
// (maxMemoryAllocationCount, 4096 on some), and round each of them up.
#pragma once

#include "vulkan/vulkan_device.h"

namespace quernel::runtime::vulkan {

// Gives the buffer memory of that type, mapped or not, and binds it. QNL_OUT_OF_MEMORY where the driver has
// no more of it or allows no more allocations. A buffer that has memory stays where it is.
qnl_status bind_shared_memory(VulkanDevice* d, const VkMemoryRequirements& needs, uint32_t type, bool mapped,
                              Buffer* buffer);
// The same with an allocation of its own of these bytes, made as `next` says.
qnl_status bind_own_memory(VulkanDevice* d, const void* next, uint64_t bytes, uint32_t type, bool mapped,
                           Buffer* buffer);
// Takes back what either has given; nothing may use it any more.
void release_memory(VulkanDevice* d, Buffer* buffer);
// Of a device that is closed: what was kept for buffers to come.
void free_blocks(VulkanDevice* d);

}  // namespace quernel::runtime::vulkan
