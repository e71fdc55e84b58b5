#include "vulkan/vulkan_api.h"

#include "platform/library.h"

namespace quernel::runtime::vulkan {

namespace {
qnl_status missing(const char* name, qnl_error* error) {
  return fail(error, QNL_NO_MATCHING_VARIANT,
              "Vulkan: expected function vk{}, the driver has none; install a driver for Vulkan 1.1 or newer",
              name);
}
}  // namespace

qnl_status Api::open(qnl_error* error) {
  constexpr const char* kNames[] = {"libvulkan.so.1", "libvulkan.so"};
  for (const char* name : kNames)
    if (library == nullptr) library = platform::open_library(name);
  if (library == nullptr)
    return fail(error, QNL_NO_MATCHING_VARIANT,
                "Vulkan: expected the loader library libvulkan.so.1, found none; install the package "
                "libvulkan1 and a driver, or use the CPU");
  GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      platform::library_function(library, "vkGetInstanceProcAddr"));
  if (GetInstanceProcAddr == nullptr) return missing("GetInstanceProcAddr", error);
#define QNL_VULKAN_LOAD(name)                                                             \
  name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(VK_NULL_HANDLE, "vk" #name)); \
  if (name == nullptr) return missing(#name, error);
  QNL_VULKAN_GLOBAL_FUNCTIONS(QNL_VULKAN_LOAD)
#undef QNL_VULKAN_LOAD
  return QNL_OK;
}

qnl_status Api::load_instance(VkInstance instance, bool debug, qnl_error* error) {
#define QNL_VULKAN_LOAD(name)                                                       \
  name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name)); \
  if (name == nullptr) return missing(#name, error);
  QNL_VULKAN_INSTANCE_FUNCTIONS(QNL_VULKAN_LOAD)
  if (debug) {
    QNL_VULKAN_DEBUG_FUNCTIONS(QNL_VULKAN_LOAD)
  }
  GetCooperativeMatrixProperties =
      GetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
#undef QNL_VULKAN_LOAD
  return QNL_OK;
}

qnl_status Api::load_device(VkDevice device, bool import, qnl_error* error) {
#define QNL_VULKAN_LOAD(name)                                                   \
  name = reinterpret_cast<PFN_vk##name>(GetDeviceProcAddr(device, "vk" #name)); \
  if (name == nullptr) return missing(#name, error);
  QNL_VULKAN_DEVICE_FUNCTIONS(QNL_VULKAN_LOAD)
  if (import) {
    QNL_VULKAN_IMPORT_FUNCTIONS(QNL_VULKAN_LOAD)
  }
#undef QNL_VULKAN_LOAD
  return QNL_OK;
}

void Api::close() {
  if (library != nullptr) platform::close_library(library);
  library = nullptr;
}

qnl_status status_of(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return QNL_OK;
    case VK_TIMEOUT:
    case VK_NOT_READY:
      return QNL_TIMEOUT;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return QNL_OUT_OF_MEMORY;
    default:
      return QNL_DEVICE_FAULT;
  }
}

const char* result_name(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_INVALID_SHADER_NV:
      return "VK_ERROR_INVALID_SHADER_NV";
    default:
      return "a Vulkan error";
  }
}

}  // namespace quernel::runtime::vulkan
