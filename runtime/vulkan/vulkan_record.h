// A command list in Vulkan's form. Descriptor sets are allocated once; command buffers are recorded when
// first needed, replayed, and recorded anew only after something in them has changed.
#pragma once

#include "vulkan/vulkan_device.h"

namespace quernel::runtime::vulkan {

// A range of a buffer that a kernel sees.
struct Window {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A command as it was last looked at.
struct Step {
  VkDescriptorSet set = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  Window windows[kWindows];
  uint32_t* words = nullptr;  // the kernel's parameters
  uint64_t uniform_offset = 0;
  uint64_t copy_bytes = 0;
  uint64_t changed_at = 0;  // the recording's count of changes then
  uint64_t destroyed = 0;   // the device's count of destroyed buffers when the set was written
  bool moved = true;        // a binding has changed since
};

// Commands [begin, end) in one command buffer; `begin` is where it stands in its table.
struct Stretch {
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  uint32_t end = 0;
  uint64_t recorded_at = 0;  // the recording's count of changes then
};

// What commands touch since the last barrier, and what is copied around a submission.
struct Touch {
  Arena* arena;
  uint64_t begin, end;  // in the arena
  bool write;
  bool read = false;  // mirrors: what lies there before matters
};

struct VulkanRecording : Recording {
  const CommandList* list = nullptr;
  VulkanKernelSet* kernels = nullptr;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  Buffer uniforms;

  char* block = nullptr;  // of what follows
  uint64_t block_bytes = 0;
  Step* steps = nullptr;
  Stretch* stretches = nullptr;    // of several commands
  Stretch* timed = nullptr;        // with a timestamp after each command
  uint32_t* command_of = nullptr;  // per binding
  Touch* touches = nullptr;
  Touch* mirrors = nullptr;  // of the submission in flight
  uint32_t touch_count = 0, mirror_count = 0;
  void** pointers = nullptr;  // for callbacks

  uint64_t changes = 1;
  char* callback_memory = nullptr;  // copies of bindings that the host does not reach
  uint64_t callback_bytes = 0;

  VkQueryPool queries = VK_NULL_HANDLE;     // made when commands are first timed
  uint32_t query_count = 0;                 // recorded so far
  uint32_t timed_begin = 0, timed_end = 0;  // of the submission in flight; equal: it is not timed

  bool pending = false;
  uint32_t waiting = 0;  // threads that wait for the fence without the device's lock
  uint32_t serial = 1;
  uint64_t submitted_at = 0;
  VulkanRecording* next = nullptr;
};

inline VulkanRecording* vulkan(Recording* recording) { return static_cast<VulkanRecording*>(recording); }

// Brings the step up to date with its command: windows, pipeline, descriptors, parameters.
qnl_status refresh(VulkanDevice* d, VulkanRecording* r, uint32_t command, qnl_error* error);
// The ranges of mirrored arenas that commands [begin, end) use, into r->mirrors.
void collect_mirrors(VulkanRecording* r, uint32_t begin, uint32_t end);
// Records the stretch; refreshed and with its mirrors collected.
qnl_status record_stretch(VulkanDevice* d, VulkanRecording* r, uint32_t begin, uint32_t end, Stretch* stretch,
                          bool with_times);

// ---- times of commands
qnl_status make_queries(VulkanDevice* d, VulkanRecording* r);
// Before a stretch of that many commands is recorded, then after each of its parts.
void begin_times(VulkanDevice* d, VulkanRecording* r, uint32_t commands, VkCommandBuffer buffer);
void record_time(VulkanDevice* d, VulkanRecording* r, VkCommandBuffer buffer);
// Of the timed submission, once it is complete.
qnl_status report_times(VulkanDevice* d, VulkanRecording* r, uint64_t complete);

}  // namespace quernel::runtime::vulkan
