// Opening a Vulkan device: the loader library, an instance, the choice of a device, its limits.
#include <string.h>

#include <new>

#include "platform/platform.h"
#include "schemas/bundle_hash.h"
#include "vulkan/vulkan_device.h"
#include "vulkan/vulkan_features.h"

namespace quernel::runtime::vulkan {

const char* type_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

namespace {

constexpr uint32_t kMaxDevices = 32;
constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// True when `part` is in `text`, in any case.
bool contains(const char* text, const char* part) {
  for (; *text != '\0'; ++text) {
    uint32_t i = 0;
    while (part[i] != '\0' && lower(text[i]) == lower(part[i])) ++i;
    if (part[i] == '\0') return true;
  }
  return false;
}

// Which of several devices is taken when the caller does not say: the greater first.
int preference(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 1;
    default:
      return 0;
  }
}

VkBool32 on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                    const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto* d = static_cast<VulkanDevice*>(user);
  d->counts.messages += 1;
  if (d->message != nullptr) d->message(d->message_user, data->pMessage);
  return VK_FALSE;
}

qnl_status create_instance(VulkanDevice* d, int validation, qnl_error* error) {
  qnl_status status = d->api.open(error);
  if (status != QNL_OK) return status;
  uint32_t version = 0;
  if (d->api.EnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_1)
    return fail(error, QNL_NO_MATCHING_VARIANT,
                "Vulkan: expected a loader library of version 1.1 or newer, found {}.{}",
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
  VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = application.pEngineName = "quernel";
  application.engineVersion = QNL_RUNTIME_VERSION;
  application.apiVersion = VK_API_VERSION_1_1;
  VkDebugUtilsMessengerCreateInfoEXT messenger = {VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = d;
  constexpr VkValidationFeatureEnableEXT kEnabled[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features = {VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, &messenger, 1, kEnabled};
  constexpr const char* kExtensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (validation != 0) {
    info.pNext = &features;
    if (validation == 1) info.pNext = &messenger;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kLayer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = kExtensions;
  }
  VkResult result = d->api.CreateInstance(&info, nullptr, &d->instance);
  if (result == VK_ERROR_LAYER_NOT_PRESENT)
    return fail(
        error, QNL_INVALID_ARGUMENT,
        "Vulkan: expected layer {} for validation, found none; install the package vulkan-validationlayers",
        kLayer);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return fail(
        error, QNL_NO_MATCHING_VARIANT,
        "Vulkan: expected a driver, found none; install one (mesa-vulkan-drivers has most), or use the CPU");
  if (result != VK_SUCCESS) {
    d->instance = VK_NULL_HANDLE;
    return fail(error, status_of(result), "Vulkan: an instance cannot be made, {}", result_name(result));
  }
  status = d->api.load_instance(d->instance, validation != 0, error);
  if (status != QNL_OK || validation == 0) return status;
  return check(d, d->api.CreateDebugUtilsMessengerEXT(d->instance, &messenger, nullptr, &d->messenger));
}

// The queue families to use: one that computes, preferably without graphics, and one that does nothing but
// transfers (video engines transfer as well).
struct QueueFamilies {
  static constexpr uint32_t kNone = ~0u;
  uint32_t compute = kNone, transfer = kNone;
  uint32_t timestamp_bits = 0;  // of `compute`
};

QueueFamilies find_families(const Api& api, VkPhysicalDevice physical) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  api.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  QueueFamilies found;
  int best = 0;
  for (uint32_t f = 0; f < count; ++f) {
    VkQueueFlags flags = families[f].queueFlags & ~(VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT);
    if (families[f].queueCount == 0) continue;
    if (flags == VK_QUEUE_TRANSFER_BIT && found.transfer == QueueFamilies::kNone) found.transfer = f;
    if ((flags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    int rank = (flags & VK_QUEUE_GRAPHICS_BIT) == 0 ? 2 : 1;
    if (rank <= best) continue;
    best = rank;
    found.compute = f;
    found.timestamp_bits = families[f].timestampValidBits;
  }
  return found;
}

VkPhysicalDeviceProperties properties_of(const Api& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  api.GetPhysicalDeviceProperties2(physical, &properties);
  return properties.properties;
}

bool usable(const Api& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties p = properties_of(api, physical);
  const VkPhysicalDeviceLimits& l = p.limits;
  return p.apiVersion >= VK_API_VERSION_1_1 && find_families(api, physical).compute != QueueFamilies::kNone &&
         l.maxPerStageDescriptorStorageBuffers >= kWindows && l.maxPushConstantsSize >= QNL_SPIRV_PUSH_BYTES;
}

uint32_t list_devices(const Api& api, VkInstance instance, VkPhysicalDevice* devices) {
  uint32_t count = kMaxDevices;
  VkResult result = api.EnumeratePhysicalDevices(instance, &count, devices);
  return result == VK_SUCCESS || result == VK_INCOMPLETE ? count : 0;
}

// The device that the caller means: by number, by type, by name, or the best.
bool matches(const char* choice, uint32_t index, const VkPhysicalDeviceProperties& p) {
  if (choice == nullptr || choice[0] == '\0') return true;
  uint32_t number = 0;
  const char* c = choice;
  for (; *c >= '0' && *c <= '9' && number < 100000; ++c)
    number = number * 10 + static_cast<uint32_t>(*c - '0');
  if (*c == '\0') return number == index;
  return strcmp(choice, type_name(p.deviceType)) == 0 || contains(p.deviceName, choice);
}

qnl_status choose(VulkanDevice* d, const char* choice, qnl_error* error) {
  VkPhysicalDevice devices[kMaxDevices];
  uint32_t count = list_devices(d->api, d->instance, devices);
  int best = -1;
  for (uint32_t i = 0; i < count; ++i) {
    VkPhysicalDeviceProperties p = properties_of(d->api, devices[i]);
    if (!matches(choice, i, p) || !usable(d->api, devices[i]) || preference(p.deviceType) <= best) continue;
    best = preference(p.deviceType);
    d->physical = devices[i];
    d->properties = p;
  }
  if (best >= 0) {
    if (contains(d->properties.deviceName, "llvmpipe")) d->most_iterations = QNL_SPIRV_FEW_ITERATIONS;
    return QNL_OK;
  }
  Failure failure(error, QNL_NO_MATCHING_VARIANT);
  failure.append("Vulkan: expected ");
  if (choice == nullptr || choice[0] == '\0') {
    failure.append("a device");
  } else {
    failure.append("device '{}'", choice);
  }
  failure.append(" of Vulkan 1.1 or newer, found{}", (count == 0 ? " none" : ""));
  for (uint32_t i = 0; i < count; ++i) {
    VkPhysicalDeviceProperties p = properties_of(d->api, devices[i]);
    failure.append("{}{}: {} ({}, {}.{})", (i == 0 ? " " : "; "), i, p.deviceName, type_name(p.deviceType),
                   VK_API_VERSION_MAJOR(p.apiVersion), VK_API_VERSION_MINOR(p.apiVersion));
  }
  return failure.append("; a number, a type or a part of a name chooses one, or use the CPU");
}

void query_limits(VulkanDevice* d, bool import) {
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceMaintenance3Properties maintenance = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  if (import) maintenance.pNext = &host;
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &maintenance};
  d->api.GetPhysicalDeviceProperties2(d->physical, &properties);
  d->max_allocation = maintenance.maxMemoryAllocationSize;
  // Whole pages of this process exist; larger units may reach beyond what is mapped.
  if (import && host.minImportedHostPointerAlignment <= 4096)
    d->import_alignment = host.minImportedHostPointerAlignment;
}

qnl_status create_device(VulkanDevice* d, const qnl_vulkan_options& options, qnl_error* error) {
  Features features;
  query_features(d->api, d->physical, &features);
  d->subgroup_invocations = features.subgroup.subgroupSize;
  d->matrix_shapes = features.matrix_shapes;
  d->features = select_features(&features, options.feature_mask == 0 ? ~uint64_t{0} : options.feature_mask);
  d->api.GetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
  bool shares = d->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                d->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  d->unified = shares && options.copy_always == 0 && has_unified_memory(d);
  QueueFamilies families = find_families(d->api, d->physical);
  d->timestamp_bits = families.timestamp_bits;
  d->queues[0].family = families.compute;
  d->queues[1].family = families.transfer;
  d->queue_count = !d->unified && families.transfer != QueueFamilies::kNone ? 2 : 1;
  float priority = 1;
  VkDeviceQueueCreateInfo queues[2];
  for (uint32_t q = 0; q < 2; ++q)
    queues[q] = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, d->queues[q].family, 1, &priority};
  VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features.base};
  info.queueCreateInfoCount = d->queue_count;
  info.pQueueCreateInfos = queues;
  info.enabledExtensionCount = features.extension_count;
  info.ppEnabledExtensionNames = features.extensions;
  VkResult result = d->api.CreateDevice(d->physical, &info, nullptr, &d->device);
  if (result != VK_SUCCESS) {
    d->device = VK_NULL_HANDLE;
    return fail(error, status_of(result), "Vulkan: device '{}' cannot be opened, {}",
                d->properties.deviceName, result_name(result));
  }
  qnl_status status = d->api.load_device(d->device, features.import, error);
  if (status != QNL_OK) return status;
  for (uint32_t q = 0; q < d->queue_count; ++q)
    d->api.GetDeviceQueue(d->device, d->queues[q].family, 0, &d->queues[q].handle);
  query_limits(d, features.import);
  return QNL_OK;
}

// The two ways of handing over parameters share all but the uniform buffer.
qnl_status create_layouts(VulkanDevice* d) {
  VkDescriptorSetLayoutBinding bindings[2] = {
      {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kWindows, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
      {1, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
  VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, QNL_SPIRV_PUSH_BYTES};
  for (uint32_t uniform = 0; uniform < 2; ++uniform) {
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0,
                                           1 + uniform, bindings};
    VkResult result = d->api.CreateDescriptorSetLayout(d->device, &set, nullptr, &d->set_layouts[uniform]);
    VkPipelineLayoutCreateInfo layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &d->set_layouts[uniform];
    layout.pushConstantRangeCount = 1 - uniform;
    layout.pPushConstantRanges = &push;
    if (result == VK_SUCCESS)
      result = d->api.CreatePipelineLayout(d->device, &layout, nullptr, &d->pipeline_layouts[uniform]);
    if (result != VK_SUCCESS) return check(d, result);
  }
  return QNL_OK;
}

// Changes with every build of a driver that compiles differently.
uint64_t identity(const VkPhysicalDeviceProperties& p) {
  qnl_hash_state state;
  qnl_hash_begin(&state);
  const uint32_t numbers[] = {p.vendorID, p.deviceID, p.driverVersion, p.apiVersion};
  qnl_hash_add(&state, numbers, sizeof numbers);
  qnl_hash_add(&state, p.pipelineCacheUUID, sizeof p.pipelineCacheUUID);
  return qnl_hash_end(&state);
}

void properties(const Device* device, DeviceProperties* p) {
  const VulkanDevice* d = vulkan(device);
  *p = {};
  p->name = d->name;
  p->arch = QNL_ARCH_SPIRV;
  p->features = d->features;
  p->code_format = CodeFormat::kSpirv;
  p->has_queue = true;
  p->max_binding_bytes = d->properties.limits.maxStorageBufferRange;
  uint64_t alignment = d->properties.limits.minStorageBufferOffsetAlignment;
  if (alignment > p->arena_alignment) p->arena_alignment = static_cast<uint32_t>(alignment);
  p->max_arena_bytes = max_arena_bytes(d);
  p->memory_bytes = arena_memory_bytes(d);
  p->identity = identity(d->properties);
  p->is_software = d->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

uint64_t memory_used(const Device* device) { return vulkan(device)->memory_used; }

void event_signal(Device*, Event* event) { host_memory::event_signal(event); }

// An event without a submission is signalled by the host: nothing of the device is needed, and nobody is to
// be kept waiting for it.
qnl_status event_wait_locked(Device* device, Event* event, uint64_t timeout_nanoseconds) {
  if (event->handle == nullptr) return host_memory::event_wait(event, timeout_nanoseconds);
  Guard guard(&vulkan(device)->lock);
  return event_wait(device, event, timeout_nanoseconds);
}

// A function of the device as the table has it: with the lock.
template <auto function>
struct Locked;
template <class Result, class D, class... Arguments, Result (*function)(D*, Arguments...)>
struct Locked<function> {
  static Result call(D* device, Arguments... arguments) {
    Guard guard(&vulkan(device)->lock);
    return function(device, arguments...);
  }
};

constexpr DeviceTable kVulkanTable = {
    properties,
    Locked<memory_used>::call,
    close_device,
    Locked<allocate_arena>::call,
    Locked<wrap_arena>::call,
    Locked<free_arena>::call,
    Locked<fill>::call,
    Locked<write>::call,
    Locked<read>::call,
    Locked<copy>::call,
    Locked<load_kernels>::call,
    Locked<unload_kernels>::call,
    Locked<launch>::call,
    record_bytes,
    Locked<record>::call,
    rebind,  // of the recording alone
    Locked<prepare>::call,
    Locked<release>::call,
    Locked<submit>::call,
    event_signal,
    Locked<event_done>::call,
    event_wait_locked,
    Locked<wait_idle>::call,
    Locked<describe>::call,
};

qnl_status open_device(VulkanDevice* d, const qnl_vulkan_options& options, qnl_error* error) {
  d->message = options.message;
  d->message_user = options.message_user;
  d->companion = options.companion;
  if (options.timeout_nanoseconds != 0) d->timeout = options.timeout_nanoseconds;
  if (options.cache_path != nullptr) {
    size_t length = strlen(options.cache_path);
    if (length >= sizeof d->cache_path)
      return fail(error, QNL_INVALID_ARGUMENT, "cache_path: expected at most {} bytes, found {}",
                  uint64_t{sizeof d->cache_path - 1}, length);
    memcpy(d->cache_path, options.cache_path, length);
  }
  qnl_status status = create_instance(d, options.validation, error);
  if (status == QNL_OK) status = choose(d, options.device, error);
  if (status == QNL_OK) status = create_device(d, options, error);
  if (status != QNL_OK) return status;
  memcpy(d->name, "vulkan:", 7);
  memcpy(d->name + 7, d->properties.deviceName, strlen(d->properties.deviceName));
  status = create_layouts(d);
  if (status == QNL_OK) status = open_transfers(d);
  if (status == QNL_OK) status = open_pipeline_cache(d);
  if (status == QNL_OK) return QNL_OK;
  return fail(error, status, "Vulkan: device '{}' cannot be used, {}", d->properties.deviceName,
              qnl_status_text(status));
}

}  // namespace

qnl_status check(VulkanDevice* d, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) d->faulted = true;
  return status_of(result);
}

void close_device(Device* device) {
  VulkanDevice* d = vulkan(device);
  if (d->device != VK_NULL_HANDLE && d->api.QueueSubmit != nullptr) {
    (void)!wait_idle(d);
    close_pipeline_cache(d);
    close_transfers(d);
    for (uint32_t i = 0; i < 2; ++i) {
      d->api.DestroyPipelineLayout(d->device, d->pipeline_layouts[i], nullptr);
      d->api.DestroyDescriptorSetLayout(d->device, d->set_layouts[i], nullptr);
    }
    d->api.DestroyDevice(d->device, nullptr);
  }
  if (d->messenger != VK_NULL_HANDLE)
    d->api.DestroyDebugUtilsMessengerEXT(d->instance, d->messenger, nullptr);
  if (d->instance != VK_NULL_HANDLE && d->api.DestroyInstance != nullptr)
    d->api.DestroyInstance(d->instance, nullptr);
  d->api.close();
  d->~VulkanDevice();
  platform::free_pages(d, sizeof(VulkanDevice));
}

Counts counts(const qnl_device* device) {
  Guard guard(&vulkan(device)->lock);
  return vulkan(device)->counts;
}
void inject_fault(qnl_device* device) {
  Guard guard(&vulkan(device)->lock);
  vulkan(device)->faulted = true;
}
void hide_clock(qnl_device* device) {
  Guard guard(&vulkan(device)->lock);
  vulkan(device)->timestamp_bits = 0;
}
void limit_memory(qnl_device* device, uint32_t allocations, uint64_t bytes) {
  Guard guard(&vulkan(device)->lock);
  vulkan(device)->properties.limits.maxMemoryAllocationCount = allocations;
  vulkan(device)->memory_limit = bytes;
}
void limit_windows(qnl_device* device, uint32_t bytes) {
  Guard guard(&vulkan(device)->lock);
  vulkan(device)->properties.limits.maxStorageBufferRange = bytes;
}

}  // namespace quernel::runtime::vulkan

extern "C" {

qnl_status qnl_device_open_vulkan(const qnl_vulkan_options* options, qnl_device** device, qnl_error* error) {
  using namespace quernel::runtime;
  if (device == nullptr) return fail(error, QNL_INVALID_ARGUMENT, "device: expected a place for the result");
  *device = nullptr;
  void* memory = quernel::platform::allocate_pages(sizeof(vulkan::VulkanDevice));
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "device: no memory for it");
  auto* d = new (memory) vulkan::VulkanDevice;
  d->table = &vulkan::kVulkanTable;
  qnl_vulkan_options defaults = {};
  qnl_status status = vulkan::open_device(d, options == nullptr ? defaults : *options, error);
  if (status != QNL_OK) {
    vulkan::close_device(d);
    return status;
  }
  *device = d;
  return QNL_OK;
}

qnl_status qnl_vulkan_list(qnl_vulkan_device_info* devices, uint32_t capacity, uint32_t* count,
                           qnl_error* error) {
  using namespace quernel::runtime;
  if (count == nullptr || (devices == nullptr && capacity != 0))
    return fail(error, QNL_INVALID_ARGUMENT, "devices: expected a place for the result");
  *count = 0;
  void* memory = quernel::platform::allocate_pages(sizeof(vulkan::VulkanDevice));
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "device: no memory for it");
  auto* d = new (memory) vulkan::VulkanDevice;
  qnl_status status = vulkan::create_instance(d, 0, error);
  VkPhysicalDevice found[vulkan::kMaxDevices];
  if (status == QNL_OK) *count = vulkan::list_devices(d->api, d->instance, found);
  for (uint32_t i = 0; i < *count && i < capacity; ++i) {
    VkPhysicalDeviceProperties p = vulkan::properties_of(d->api, found[i]);
    vulkan::Features features;
    vulkan::query_features(d->api, found[i], &features);
    qnl_vulkan_device_info& info = devices[i];
    info = {};
    memcpy(info.name, p.deviceName, sizeof info.name);
    info.type = vulkan::type_name(p.deviceType);
    info.api_version = p.apiVersion;
    info.driver_version = p.driverVersion;
    info.vendor_id = p.vendorID;
    info.device_id = p.deviceID;
    info.features = vulkan::select_features(&features, ~uint64_t{0});
    info.usable = vulkan::usable(d->api, found[i]) ? 1 : 0;
  }
  vulkan::close_device(d);
  return status;
}

}  // extern "C"
