// The internals that the parts of the Vulkan device share. Opening is in vulkan_open.cpp, memory in
// vulkan_memory.cpp and vulkan_blocks.cpp, code in vulkan_kernels.cpp and vulkan_pipelines.cpp, recording in
// vulkan_record.cpp, running in vulkan_submit.cpp.
#pragma once

#include "core/device.h"
#include "vulkan/vulkan_api.h"
#include "vulkan/vulkan_counts.h"
#include "vulkan/vulkan_matrices.h"

namespace quernel::runtime::vulkan {

struct MemoryBlock;  // vulkan_blocks.h

struct Buffer {
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t bytes = 0;  // size of the buffer
  char* mapped = nullptr;

  // Its place in a shared block of memory, and its neighbours there.
  MemoryBlock* block = nullptr;
  uint64_t offset = 0, reserved = 0;
  Buffer *before = nullptr, *after = nullptr;
};

// The object behind DeviceArena::handle. An arena whose host memory is not visible to kernels is mirrored.
// Between submissions the host memory holds the valid contents; each submission copies the ranges it uses to
// the device and back.
struct Arena {
  Buffer local;            // visible to kernels
  Buffer staging;          // host-visible memory if local is not mapped and host access is needed
  char* caller = nullptr;  // the caller's memory if the device cannot use it in place
  uint64_t offset = 0;     // of the arena in `local`
  uint64_t bytes = 0;
  uint64_t counted = 0;  // bytes included in the device's memory_used
  bool read_only = false;
  // For read-only memory, which is wrapped once: its address, and the number of arenas that use it.
  const void* key = nullptr;
  uint32_t users = 0;
  bool to_be_uploaded = false;  // the device does not have it yet
  Arena* next = nullptr;

  bool mirrored() const { return caller != nullptr || staging.buffer != VK_NULL_HANDLE; }
};

inline Arena* arena_of(const DeviceRange& range) { return static_cast<Arena*>(range.arena->handle); }

inline constexpr uint32_t kWindows = QNL_SPIRV_WINDOWS;
inline constexpr uint32_t kMaxBindings = 64;  // per kernel

// For each binding of a kernel: its window, in two bits. A bit in `split`: the binding begins there and
// continues in the next windows.
struct WindowMap {
  uint64_t words[2] = {0, 0};
  uint64_t split = 0;
  void set(uint32_t binding, uint32_t window) {
    words[binding / 32] |= uint64_t{window} << (binding % 32 * 2);
  }
  uint32_t get(uint32_t binding) const { return words[binding / 32] >> (binding % 32 * 2) & 3; }
  bool operator==(const WindowMap& other) const {
    return words[0] == other.words[0] && words[1] == other.words[1] && split == other.split;
  }
};

// Pipelines of a kernel set, listed when first needed, and then made.
struct PipelineBlock {
  struct Entry {
    uint32_t kernel = 0;
    WindowMap map;
    VkPipeline pipeline = VK_NULL_HANDLE;  // null: to be made, or it could not be
    VkResult result = VK_SUCCESS;
    uint64_t begin = 0, end = 0;  // when it was made, until that is reported
  };
  static constexpr uint32_t kEntries = 60;
  PipelineBlock* next = nullptr;
  uint32_t count = 0;
  Entry entries[kEntries];
};

struct VulkanKernel {
  VkShaderModule module = VK_NULL_HANDLE;  // null until the kernel is first needed; so are the members below
  uint32_t binding_count = 0;
  uint32_t symbol_count = 0;
  bool counts_iterations = false;  // its last symbol: the most iterations of an invocation's loops
  MatrixShape matrices;
  uint64_t splittable = 0;  // bits of the bindings that may span several windows
  uint32_t words() const { return 1 + binding_count + 2 * symbol_count; }
  bool uses_push() const { return qnl_spirv_uses_push(binding_count, symbol_count) != 0; }
};

// Shared by all sessions that load the same code.
struct VulkanKernelSet : KernelSet {
  const void* code = nullptr;
  uint64_t code_bytes = 0;
  uint64_t block_bytes = 0;  // of this object including its kernels
  uint32_t users = 0;
  uint32_t kernel_count = 0;
  VulkanKernelSet* next = nullptr;
  PipelineBlock* pipelines = nullptr;
  VulkanKernel kernels[1];
};

struct VulkanRecording;

// A queue, and the objects of the device's own transfers on it. One transfer is recorded and waited for at a
// time; uploads alternate between two.
struct Queue {
  uint32_t family = 0;
  VkQueue handle = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer transfers[2] = {};
  VkFence fences[2] = {};
};

// The device table calls the functions below with the lock held (vulkan_open.cpp). The lock is released while
// a session waits for its submission or runs a callback.
struct VulkanDevice : qnl_device {
  mutable Lock lock;
  Api api;
  VkInstance instance = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  // The last one uploads constants, the first one does everything else. There are two if the device has a
  // family that only transfers and memory that the process cannot access.
  Queue queues[2];
  uint32_t queue_count = 1;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  uint64_t max_allocation = ~uint64_t{0};
  uint64_t import_alignment = 0;  // 0: the process's memory cannot be used in place
  char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + 8] = {};
  uint64_t features = 0;
  uint32_t subgroup_invocations = 0;
  MatrixShapes matrix_shapes;
  bool unified = false;  // the process can access the memory that kernels use
  uint64_t timeout = ~uint64_t{0};
  uint32_t timestamp_bits = 0;  // 0: the queue has no timestamps
  int64_t clock_offset = 0;     // from the queue's nanoseconds to the process's, as far as known
  char cache_path[4001] = {};
  void (*message)(void* user, const char* text) = nullptr;
  void* message_user = nullptr;

  Buffer staging;  // of the device's own transfers
  Buffer empty;    // bound where a kernel has no memory

  // [0]: parameters as push constants; [1]: in a uniform buffer.
  VkDescriptorSetLayout set_layouts[2] = {};
  VkPipelineLayout pipeline_layouts[2] = {};
  VkPipelineCache cache = VK_NULL_HANDLE;
  bool cache_is_stale = false;  // pipelines were created that are not in the file

  MemoryBlock* blocks = nullptr;
  uint64_t memory_limit = ~uint64_t{0};     // of the driver's memory; lowered by tests
  uint64_t most_iterations = ~uint64_t{0};  // of an invocation's loops; the driver ends longer ones
  uint64_t memory_used = 0;
  bool faulted = false;
  Arena* shared_constants = nullptr;
  bool has_uploads = false;  // some of them are still to be uploaded
  VulkanKernelSet* kernel_sets = nullptr;
  VulkanRecording* in_flight = nullptr;  // submissions not yet seen complete
  Counts counts;
  uint64_t buffers_destroyed = 0;  // older descriptor sets may refer to a destroyed buffer
};

inline VulkanDevice* vulkan(Device* device) {
  return static_cast<VulkanDevice*>(static_cast<qnl_device*>(device));
}
inline const VulkanDevice* vulkan(const Device* device) {
  return static_cast<const VulkanDevice*>(static_cast<const qnl_device*>(device));
}

// Returns a result's status; records the loss of the device.
qnl_status check(VulkanDevice* d, VkResult result);

// ---- memory
enum class Memory { kLocal, kUnified, kStaging };
enum class UsedBy { kFirstQueue, kAllQueues };
// Creates a buffer of at least these bytes in memory of that kind, not zeroed, for commands of these queues.
qnl_status create_buffer(VulkanDevice* d, uint64_t bytes, Memory kind, Buffer* buffer,
                         UsedBy used_by = UsedBy::kFirstQueue);
void destroy_buffer(VulkanDevice* d, Buffer* buffer);
// Returns true if the device has memory of kind kUnified.
bool has_unified_memory(const VulkanDevice* d);
// Return the size of the largest arena, and of the memory for all arenas.
uint64_t max_arena_bytes(const VulkanDevice* d);
uint64_t arena_memory_bytes(const VulkanDevice* d);

// Copies constants that the device does not have yet, and waits for the copies. Call before kernels run, or
// while pipelines are made.
qnl_status upload_constants(VulkanDevice* d);

// Create and destroy the command buffers, fences and staging memory of the device's own transfers.
qnl_status open_transfers(VulkanDevice* d);
void close_transfers(VulkanDevice* d);

qnl_status allocate_arena(Device* device, uint64_t bytes, bool host_access, DeviceArena* arena);
qnl_status wrap_arena(Device* device, const void* memory, uint64_t bytes, bool read_only, DeviceArena* arena);
void free_arena(Device* device, DeviceArena* arena);
qnl_status fill(Device* device, const DeviceRange& target, uint64_t bytes, uint8_t value);
qnl_status write(Device* device, const DeviceRange& target, const void* source, uint64_t bytes);
qnl_status read(Device* device, const DeviceRange& source, void* target, uint64_t bytes);
qnl_status copy(Device* device, const DeviceRange& source, const DeviceRange& target, uint64_t bytes);

// ---- code
qnl_status load_kernels(Device* device, const KernelCode& code, KernelSet** kernels, qnl_error* error);
void unload_kernels(Device* device, KernelSet* kernels);
// Call before any other use of a kernel of the set: checks and creates its module at the first call.
qnl_status need_kernel(VulkanDevice* d, VulkanKernelSet* set, uint32_t kernel, qnl_error* error);
// Lists the kernel's pipeline for that map, unless it is.
qnl_status want_pipeline(VulkanKernelSet* set, uint32_t kernel, const WindowMap& map, qnl_error* error);
// Makes the listed pipelines that do not exist, on several threads.
qnl_status make_pipelines(VulkanDevice* d, VulkanKernelSet* set, qnl_error* error);
// Returns the kernel's pipeline for that map; makes it if needed.
qnl_status find_pipeline(VulkanDevice* d, VulkanKernelSet* set, uint32_t kernel, const WindowMap& map,
                         VkPipeline* pipeline, qnl_error* error);
qnl_status open_pipeline_cache(VulkanDevice* d);
// Stores the cache if pipelines were created since it was read, and frees it.
void close_pipeline_cache(VulkanDevice* d);

// ---- running
qnl_status launch(Device* device, KernelSet* kernels, uint32_t kernel, uint64_t workgroups,
                  const DeviceRange* bindings, uint32_t count, const int64_t* symbols);
uint64_t record_bytes(const Device* device, const CommandList& list);
qnl_status record(Device* device, const CommandList& list, KernelSet* kernels, void* memory,
                  Recording** recording, qnl_error* error);
void rebind(Device* device, Recording* recording, uint32_t index);
qnl_status prepare(Device* device, Recording* recording, qnl_error* error);
void release(Device* device, Recording* recording);
qnl_status submit(Device* device, Recording* recording, uint32_t begin, uint32_t end, Event* event,
                  CommandFailure* failure);
bool event_done(Device* device, const Event* event);
qnl_status event_wait(Device* device, Event* event, uint64_t timeout_nanoseconds);
// Waits for all submissions and completes them.
qnl_status wait_idle(Device* device);

// Returns "discrete", "integrated", "virtual", "cpu" or "other".
const char* type_name(VkPhysicalDeviceType type);
void describe(const Device* device, Description* description);

// Closes a device, also one that was opened only in part.
void close_device(Device* device);

}  // namespace quernel::runtime::vulkan
