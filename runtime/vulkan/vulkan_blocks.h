// Memory of the driver, allocated in blocks that many buffers share. Drivers allow few allocations
// (maxMemoryAllocationCount is 4096 on some) and round up each of them.
#pragma once

#include "vulkan/vulkan_device.h"

namespace quernel::runtime::vulkan {

// Gives the buffer memory of that type, mapped or not, and binds it. Returns QNL_OUT_OF_MEMORY if the driver
// has no more memory of the type or allows no more allocations. A buffer never moves.
qnl_status bind_shared_memory(VulkanDevice* d, const VkMemoryRequirements& needs, uint32_t type, bool mapped,
                              Buffer* buffer);
// The same with a separate allocation of `bytes`. `next`: the pNext chain of the allocation.
qnl_status bind_own_memory(VulkanDevice* d, const void* next, uint64_t bytes, uint32_t type, bool mapped,
                           Buffer* buffer);
// Releases a buffer's memory of either function; nothing may use it any more.
void release_memory(VulkanDevice* d, Buffer* buffer);
// Called when the device is closed: frees the blocks kept for later buffers.
void free_blocks(VulkanDevice* d);

}  // namespace quernel::runtime::vulkan
