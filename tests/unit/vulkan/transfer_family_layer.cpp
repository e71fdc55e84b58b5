#include "transfer_family_layer.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vk_layer.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace quernel::test {
namespace {

#define INSTANCE_FUNCTIONS(F)               \
  F(DestroyInstance)                        \
  F(GetPhysicalDeviceQueueFamilyProperties) \
  F(CreateDevice)
#define DEVICE_FUNCTIONS(F) \
  F(DestroyDevice)          \
  F(GetDeviceQueue)         \
  F(CreateCommandPool)      \
  F(AllocateCommandBuffers) \
  F(CreateBuffer)           \
  F(CmdCopyBuffer)          \
  F(QueueSubmit)            \
  F(QueueWaitIdle)
#define MEMBER(name) PFN_vk##name name = nullptr;

// The functions of what lies below this layer.
struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr next = nullptr;
  INSTANCE_FUNCTIONS(MEMBER)
};

struct AddedQueue {
  void* dispatch = nullptr;  // of the loader, which every dispatchable handle begins with
};

struct Device {
  PFN_vkGetDeviceProcAddr next = nullptr;
  DEVICE_FUNCTIONS(MEMBER)
  PFN_vkSetDeviceLoaderData set_loader_data = nullptr;
  uint32_t added_family = 0, real_family = 0;
  AddedQueue added_queue;
  VkQueue real_queue = VK_NULL_HANDLE;
  std::mutex submitting;                        // to the real queue, which the application takes for two
  std::mutex lock;                              // of the sets
  std::unordered_set<VkCommandPool> pools;      // of the added family
  std::unordered_set<VkCommandBuffer> buffers;  // of these pools
  std::unordered_set<VkBuffer> shared;          // that the added family may use

  bool is_added(VkQueue queue) { return queue == reinterpret_cast<VkQueue>(&added_queue); }
};

#undef MEMBER

std::atomic<uint64_t> submissions, copies, exclusive_buffers;

// Instances and devices by what their dispatchable handles begin with.
std::mutex objects_lock;
std::unordered_map<void*, std::unique_ptr<Instance>> instances;
std::unordered_map<void*, std::unique_ptr<Device>> devices;

template <class Handle>
void* key(Handle handle) {
  void* dispatch = nullptr;
  std::memcpy(&dispatch, reinterpret_cast<const void*>(handle), sizeof dispatch);
  return dispatch;
}
template <class Handle>
Instance& instance_of(Handle handle) {
  std::scoped_lock guard(objects_lock);
  return *instances.at(key(handle));
}
template <class Handle>
Device& device_of(Handle handle) {
  std::scoped_lock guard(objects_lock);
  return *devices.at(key(handle));
}

template <class Function, class Next, class Handle>
Function load(Next next, Handle handle, const char* name) {
  return reinterpret_cast<Function>(next(handle, name));
}

// The loader's link to the layer below, which is taken off the chain. Also gives its other information of the
// same structure type to `see`.
template <class Info, class See>
auto* take_link(const void* chain, VkStructureType type, See see) {
  decltype(Info::u.pLayerInfo) link = nullptr;
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType != type) continue;
    auto* info = const_cast<Info*>(reinterpret_cast<const Info*>(at));
    if (info->function == VK_LAYER_LINK_INFO) {
      link = info->u.pLayerInfo;
      info->u.pLayerInfo = link->pNext;
    } else {
      see(*info);
    }
  }
  return link;
}

uint32_t real_family_count(const Instance& instance, VkPhysicalDevice physical) {
  uint32_t count = 0;
  instance.GetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  return count;
}

VkResult create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                         VkInstance* result) {
  const auto* link = take_link<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO, [](const VkLayerInstanceCreateInfo&) {});
  auto next = link->pfnNextGetInstanceProcAddr;
  VkResult made = load<PFN_vkCreateInstance>(next, VkInstance(VK_NULL_HANDLE), "vkCreateInstance")(
      info, allocator, result);
  if (made != VK_SUCCESS) return made;
  auto instance = std::make_unique<Instance>();
  instance->handle = *result;
  instance->next = next;
#define LOAD(name) instance->name = load<PFN_vk##name>(next, *result, "vk" #name);
  INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
  std::scoped_lock guard(objects_lock);
  instances[key(*result)] = std::move(instance);
  return VK_SUCCESS;
}

void destroy_instance(VkInstance instance, const VkAllocationCallbacks* allocator) {
  if (instance == VK_NULL_HANDLE) return;
  void* of = key(instance);
  instance_of(instance).DestroyInstance(instance, allocator);
  std::scoped_lock guard(objects_lock);
  instances.erase(of);
}

void get_queue_families(VkPhysicalDevice physical, uint32_t* count, VkQueueFamilyProperties* families) {
  const Instance& instance = instance_of(physical);
  uint32_t real = real_family_count(instance, physical);
  if (families == nullptr) {
    *count = real + 1;
    return;
  }
  uint32_t room = *count;
  instance.GetPhysicalDeviceQueueFamilyProperties(physical, count, families);
  for (uint32_t f = 0; f < *count; ++f)
    if ((families[f].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) families[f].queueCount = 0;
  if (room > real) families[(*count)++] = {VK_QUEUE_TRANSFER_BIT, 1, 0, {1, 1, 1}};
}

VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                       const VkAllocationCallbacks* allocator, VkDevice* result) {
  const Instance& instance = instance_of(physical);
  auto device = std::make_unique<Device>();
  const auto* link = take_link<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO, [&](const VkLayerDeviceCreateInfo& other) {
        if (other.function == VK_LOADER_DATA_CALLBACK)
          device->set_loader_data = other.u.pfnSetDeviceLoaderData;
      });
  device->added_family = real_family_count(instance, physical);
  std::vector<VkDeviceQueueCreateInfo> queues;
  for (uint32_t q = 0; q < info->queueCreateInfoCount; ++q)
    if (info->pQueueCreateInfos[q].queueFamilyIndex != device->added_family)
      queues.push_back(info->pQueueCreateInfos[q]);
  VkDeviceCreateInfo without = *info;
  without.queueCreateInfoCount = static_cast<uint32_t>(queues.size());
  without.pQueueCreateInfos = queues.data();
  VkResult made = load<PFN_vkCreateDevice>(link->pfnNextGetInstanceProcAddr, instance.handle,
                                           "vkCreateDevice")(physical, &without, allocator, result);
  if (made != VK_SUCCESS) return made;
  device->next = link->pfnNextGetDeviceProcAddr;
#define LOAD(name) device->name = load<PFN_vk##name>(device->next, *result, "vk" #name);
  DEVICE_FUNCTIONS(LOAD)
#undef LOAD
  device->real_family = queues.at(0).queueFamilyIndex;
  device->GetDeviceQueue(*result, device->real_family, 0, &device->real_queue);
  std::scoped_lock guard(objects_lock);
  devices[key(*result)] = std::move(device);
  return VK_SUCCESS;
}

void destroy_device(VkDevice device, const VkAllocationCallbacks* allocator) {
  if (device == VK_NULL_HANDLE) return;
  void* of = key(device);
  device_of(device).DestroyDevice(device, allocator);
  std::scoped_lock guard(objects_lock);
  devices.erase(of);
}

void get_queue(VkDevice handle, uint32_t family, uint32_t index, VkQueue* queue) {
  Device& device = device_of(handle);
  if (family != device.added_family) return device.GetDeviceQueue(handle, family, index, queue);
  (void)device.set_loader_data(handle, &device.added_queue);
  *queue = reinterpret_cast<VkQueue>(&device.added_queue);
}

VkResult create_pool(VkDevice handle, const VkCommandPoolCreateInfo* info,
                     const VkAllocationCallbacks* allocator, VkCommandPool* pool) {
  Device& device = device_of(handle);
  VkCommandPoolCreateInfo real = *info;
  const bool is_added = info->queueFamilyIndex == device.added_family;
  if (is_added) real.queueFamilyIndex = device.real_family;
  VkResult made = device.CreateCommandPool(handle, &real, allocator, pool);
  if (made != VK_SUCCESS) return made;
  std::scoped_lock guard(device.lock);
  device.pools.erase(*pool);  // a destroyed one may have had the handle
  if (is_added) device.pools.insert(*pool);
  return VK_SUCCESS;
}

VkResult allocate_command_buffers(VkDevice handle, const VkCommandBufferAllocateInfo* info,
                                  VkCommandBuffer* buffers) {
  Device& device = device_of(handle);
  VkResult made = device.AllocateCommandBuffers(handle, info, buffers);
  if (made != VK_SUCCESS) return made;
  std::scoped_lock guard(device.lock);
  for (uint32_t b = 0; b < info->commandBufferCount; ++b) {
    device.buffers.erase(buffers[b]);
    if (device.pools.contains(info->commandPool)) device.buffers.insert(buffers[b]);
  }
  return VK_SUCCESS;
}

VkResult create_buffer(VkDevice handle, const VkBufferCreateInfo* info,
                       const VkAllocationCallbacks* allocator, VkBuffer* buffer) {
  Device& device = device_of(handle);
  const uint32_t* end = info->pQueueFamilyIndices + info->queueFamilyIndexCount;
  const bool is_shared = info->sharingMode == VK_SHARING_MODE_CONCURRENT &&
                         std::find(info->pQueueFamilyIndices, end, device.added_family) != end;
  VkBufferCreateInfo real = *info;
  if (is_shared) {  // by one family then
    real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    real.queueFamilyIndexCount = 0;
    real.pQueueFamilyIndices = nullptr;
  }
  VkResult made = device.CreateBuffer(handle, &real, allocator, buffer);
  if (made != VK_SUCCESS) return made;
  std::scoped_lock guard(device.lock);
  device.shared.erase(*buffer);
  if (is_shared) device.shared.insert(*buffer);
  return VK_SUCCESS;
}

void copy_buffer(VkCommandBuffer commands, VkBuffer source, VkBuffer target, uint32_t count,
                 const VkBufferCopy* regions) {
  Device& device = device_of(commands);
  {
    std::scoped_lock guard(device.lock);
    if (device.buffers.contains(commands)) {
      copies += 1;
      for (VkBuffer buffer : {source, target}) exclusive_buffers += device.shared.contains(buffer) ? 0 : 1;
    }
  }
  device.CmdCopyBuffer(commands, source, target, count, regions);
}

VkResult submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  Device& device = device_of(queue);
  std::scoped_lock guard(device.submitting);
  if (!device.is_added(queue)) return device.QueueSubmit(queue, count, infos, fence);
  submissions += 1;
  return device.QueueSubmit(device.real_queue, count, infos, fence);
}

VkResult wait_idle(VkQueue queue) {
  Device& device = device_of(queue);
  std::scoped_lock guard(device.submitting);
  return device.QueueWaitIdle(device.is_added(queue) ? device.real_queue : queue);
}

PFN_vkVoidFunction device_function(VkDevice device, const char* name);
PFN_vkVoidFunction instance_function(VkInstance instance, const char* name);

// The layer's own function of that name, or null. Barriers are not among them: those of the runtime name no
// queue family.
PFN_vkVoidFunction find_function(const char* name) {
  const struct {
    const char* name;
    PFN_vkVoidFunction function;
  } functions[] = {
#define FUNCTION(name, function) \
  {"vk" #name, reinterpret_cast<PFN_vkVoidFunction>(static_cast<PFN_vk##name>(function))}
      FUNCTION(GetInstanceProcAddr, instance_function),
      FUNCTION(GetDeviceProcAddr, device_function),
      FUNCTION(CreateInstance, create_instance),
      FUNCTION(DestroyInstance, destroy_instance),
      FUNCTION(GetPhysicalDeviceQueueFamilyProperties, get_queue_families),
      FUNCTION(CreateDevice, create_device),
      FUNCTION(DestroyDevice, destroy_device),
      FUNCTION(GetDeviceQueue, get_queue),
      FUNCTION(CreateCommandPool, create_pool),
      FUNCTION(AllocateCommandBuffers, allocate_command_buffers),
      FUNCTION(CreateBuffer, create_buffer),
      FUNCTION(CmdCopyBuffer, copy_buffer),
      FUNCTION(QueueSubmit, submit),
      FUNCTION(QueueWaitIdle, wait_idle),
#undef FUNCTION
  };
  for (const auto& known : functions)
    if (std::strcmp(name, known.name) == 0) return known.function;
  return nullptr;
}

PFN_vkVoidFunction device_function(VkDevice device, const char* name) {
  PFN_vkVoidFunction own = find_function(name);
  return own != nullptr ? own : device_of(device).next(device, name);
}

PFN_vkVoidFunction instance_function(VkInstance instance, const char* name) {
  PFN_vkVoidFunction own = find_function(name);
  if (own != nullptr || instance == VK_NULL_HANDLE) return own;
  return instance_of(instance).next(instance, name);
}

}  // namespace
}  // namespace quernel::test

extern "C" {

VK_LAYER_EXPORT quernel::test::TransferFamilyCounts transfer_family_counts() {
  using namespace quernel::test;
  return {submissions, copies, exclusive_buffers};
}

// What the loader calls first.
VK_LAYER_EXPORT VkResult vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* interface) {
  using namespace quernel::test;
  interface->loaderLayerInterfaceVersion = 2;
  interface->pfnGetInstanceProcAddr = instance_function;
  interface->pfnGetDeviceProcAddr = device_function;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

}  // extern "C"
