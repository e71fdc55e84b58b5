// The Vulkan functions that this device calls, found at run time. Nothing is linked, so that everything else
// runs on a machine without a driver.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "core/failure.h"

namespace quernel::runtime::vulkan {

// Three lists: functions found without an instance, with an instance, and with a device.
#define QNL_VULKAN_GLOBAL_FUNCTIONS(F) \
  F(CreateInstance)                    \
  F(EnumerateInstanceVersion)          \
  F(EnumerateInstanceLayerProperties)

#define QNL_VULKAN_INSTANCE_FUNCTIONS(F)    \
  F(DestroyInstance)                        \
  F(EnumeratePhysicalDevices)               \
  F(GetPhysicalDeviceProperties2)           \
  F(GetPhysicalDeviceFeatures2)             \
  F(GetPhysicalDeviceMemoryProperties)      \
  F(GetPhysicalDeviceQueueFamilyProperties) \
  F(EnumerateDeviceExtensionProperties)     \
  F(CreateDevice)                           \
  F(GetDeviceProcAddr)

// From VK_EXT_debug_utils: available with validation only.
#define QNL_VULKAN_DEBUG_FUNCTIONS(F) \
  F(CreateDebugUtilsMessengerEXT)     \
  F(DestroyDebugUtilsMessengerEXT)

#define QNL_VULKAN_DEVICE_FUNCTIONS(F) \
  F(DestroyDevice)                     \
  F(GetDeviceQueue)                    \
  F(DeviceWaitIdle)                    \
  F(CreateBuffer)                      \
  F(DestroyBuffer)                     \
  F(GetBufferMemoryRequirements)       \
  F(AllocateMemory)                    \
  F(FreeMemory)                        \
  F(BindBufferMemory)                  \
  F(MapMemory)                         \
  F(CreateShaderModule)                \
  F(DestroyShaderModule)               \
  F(CreatePipelineCache)               \
  F(DestroyPipelineCache)              \
  F(GetPipelineCacheData)              \
  F(CreateDescriptorSetLayout)         \
  F(DestroyDescriptorSetLayout)        \
  F(CreatePipelineLayout)              \
  F(DestroyPipelineLayout)             \
  F(CreateComputePipelines)            \
  F(DestroyPipeline)                   \
  F(CreateDescriptorPool)              \
  F(DestroyDescriptorPool)             \
  F(AllocateDescriptorSets)            \
  F(UpdateDescriptorSets)              \
  F(CreateCommandPool)                 \
  F(DestroyCommandPool)                \
  F(AllocateCommandBuffers)            \
  F(BeginCommandBuffer)                \
  F(EndCommandBuffer)                  \
  F(CmdBindPipeline)                   \
  F(CmdBindDescriptorSets)             \
  F(CmdPushConstants)                  \
  F(CmdDispatch)                       \
  F(CmdPipelineBarrier)                \
  F(CmdCopyBuffer)                     \
  F(CmdFillBuffer)                     \
  F(CmdResetQueryPool)                 \
  F(CmdWriteTimestamp)                 \
  F(CreateQueryPool)                   \
  F(DestroyQueryPool)                  \
  F(GetQueryPoolResults)               \
  F(CreateFence)                       \
  F(DestroyFence)                      \
  F(ResetFences)                       \
  F(GetFenceStatus)                    \
  F(WaitForFences)                     \
  F(QueueSubmit)

// From VK_EXT_external_memory_host: available if the device supports it.
#define QNL_VULKAN_IMPORT_FUNCTIONS(F) F(GetMemoryHostPointerPropertiesEXT)

struct Api {
  void* library = nullptr;
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define QNL_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  QNL_VULKAN_GLOBAL_FUNCTIONS(QNL_VULKAN_MEMBER)
  QNL_VULKAN_INSTANCE_FUNCTIONS(QNL_VULKAN_MEMBER)
  QNL_VULKAN_DEBUG_FUNCTIONS(QNL_VULKAN_MEMBER)
  QNL_VULKAN_DEVICE_FUNCTIONS(QNL_VULKAN_MEMBER)
  QNL_VULKAN_IMPORT_FUNCTIONS(QNL_VULKAN_MEMBER)
  PFN_vkVoidFunction GetCooperativeMatrixProperties = nullptr;  // null if no device has matrices
#undef QNL_VULKAN_MEMBER

  // open opens the loader library and finds the functions without an instance; load_instance and load_device
  // find the others. A missing function is an error with its name.
  qnl_status open(qnl_error* error);
  qnl_status load_instance(VkInstance instance, bool debug, qnl_error* error);
  qnl_status load_device(VkDevice device, bool import, qnl_error* error);
  void close();
};

// Returns the runtime's status for a result; device loss becomes QNL_DEVICE_FAULT.
qnl_status status_of(VkResult result);
// Returns "VK_ERROR_DEVICE_LOST"…
const char* result_name(VkResult result);

}  // namespace quernel::runtime::vulkan
