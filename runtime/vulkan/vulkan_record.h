// A command list in Vulkan's form. Descriptor sets are allocated once. Command buffers are recorded at their
// first submission and replayed. They are recorded again only after one of their commands has changed.
//
// `changes` counts changes of the recording. Each Step keeps the count of its last change, each Stretch the
// count at which it was recorded; a Stretch is stale if one of its steps has changed since. `serial` counts
// submissions: the event of a submission holds it, so that a later submission shows that the earlier one is
// complete.
#pragma once

#include "vulkan/vulkan_device.h"

namespace quernel::runtime::vulkan {

// A range of a buffer, visible to a kernel.
struct Window {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A command in the state in which it was last refreshed.
struct Step {
  VkDescriptorSet set = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  Window windows[kWindows];
  uint32_t* words = nullptr;  // the kernel's parameters: workgroups, offsets, symbols
  uint64_t uniform_offset = 0;
  uint64_t copy_bytes = 0;
  uint64_t changed_at = 0;  // the recording's `changes` at the step's last change; 0: never refreshed
  uint64_t destroyed = 0;   // the device's buffers_destroyed when the set was written
  bool moved = true;        // a binding has changed since the last refresh
};

// A segment: commands [begin, end) in one command buffer. `begin` is its index in its table.
struct Stretch {
  VkCommandBuffer buffer = VK_NULL_HANDLE;
  uint32_t end = 0;
  uint64_t recorded_at = 0;  // the recording's `changes` when it was recorded; 0: not recorded
};

// A range that commands have accessed since the last barrier, or a range that is copied around a submission.
struct Touch {
  Arena* arena;
  uint64_t begin, end;  // bytes in the arena
  bool write;
  bool read = false;  // of mirrors: the contents before the submission are needed
};

struct VulkanRecording : Recording {
  const CommandList* list = nullptr;
  VulkanKernelSet* kernels = nullptr;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  Buffer uniforms;

  char* block = nullptr;  // memory of the following tables
  uint64_t block_bytes = 0;
  Step* steps = nullptr;
  Stretch* stretches = nullptr;    // segments without timestamps, by their first command
  Stretch* timed = nullptr;        // segments with a timestamp after each command, likewise
  uint32_t* command_of = nullptr;  // per binding: the index of its command
  Touch* touches = nullptr;
  Touch* mirrors = nullptr;  // ranges copied around the submission in flight
  uint32_t touch_count = 0, mirror_count = 0;
  void** pointers = nullptr;  // a callback's arguments, per binding

  uint64_t changes = 1;
  char* callback_memory = nullptr;  // copies of bindings without a host address
  uint64_t callback_bytes = 0;

  VkQueryPool queries = VK_NULL_HANDLE;  // created when commands are first timed
  uint32_t query_count = 0;              // queries recorded so far
  uint32_t timed_begin = 0,
           timed_end = 0;  // timed commands of the submission in flight; equal: it is not timed

  bool pending = false;
  uint32_t waiting = 0;  // threads waiting for the fence without the device's lock
  uint32_t serial = 1;
  uint64_t submitted_at = 0;
  VulkanRecording* next = nullptr;
};

inline VulkanRecording* vulkan(Recording* recording) { return static_cast<VulkanRecording*>(recording); }

// Updates the step from its command: windows, pipeline, descriptors, parameters.
qnl_status refresh(VulkanDevice* d, VulkanRecording* r, uint32_t command, qnl_error* error);
// Fills r->mirrors with the ranges of mirrored arenas that commands [begin, end) access.
void collect_mirrors(VulkanRecording* r, uint32_t begin, uint32_t end);
// Records the segment. Requires refreshed commands and collected mirrors.
qnl_status record_stretch(VulkanDevice* d, VulkanRecording* r, uint32_t begin, uint32_t end, Stretch* stretch,
                          bool with_times);

// ---- times of commands. make_queries creates the query pool if there is none.
qnl_status make_queries(VulkanDevice* d, VulkanRecording* r);
// begin_times is recorded before a segment of that many commands, record_time after each of its parts.
void begin_times(VulkanDevice* d, VulkanRecording* r, uint32_t commands, VkCommandBuffer buffer);
void record_time(VulkanDevice* d, VulkanRecording* r, VkCommandBuffer buffer);
// Reports the commands' times of a timed submission. Requires that it is complete. `complete`: the time at
// which that was seen.
qnl_status report_times(VulkanDevice* d, VulkanRecording* r, uint64_t complete);

}  // namespace quernel::runtime::vulkan
