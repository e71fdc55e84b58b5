// Arenas of the Vulkan device, and transfers to and from them.
#include <string.h>

#include <initializer_list>
#include <new>

#include "core/trace.h"
#include "platform/platform.h"
#include "vulkan/vulkan_blocks.h"

namespace quernel::runtime::vulkan {

namespace {

constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;
constexpr uint64_t kStagingBytes = uint64_t{8} << 20;
// Kernels may read whole words, and fills write them.
constexpr uint64_t kBufferUnit = 256;

uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// The first type among `allowed` with all of `needs` that also has `prefers`, else without; ~0: none.
uint32_t find_type(const VulkanDevice* d, uint32_t allowed, VkMemoryPropertyFlags needs,
                   VkMemoryPropertyFlags prefers) {
  for (VkMemoryPropertyFlags wanted : {needs | prefers, needs})
    for (uint32_t t = 0; t < d->memory.memoryTypeCount; ++t)
      if ((allowed >> t & 1) != 0 && (d->memory.memoryTypes[t].propertyFlags & wanted) == wanted) return t;
  return ~0u;
}

uint32_t find_type(const VulkanDevice* d, uint32_t allowed, Memory kind) {
  switch (kind) {
    case Memory::kLocal: {
      uint32_t type = find_type(d, allowed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0);
      return type != ~0u ? type : find_type(d, allowed, 0, 0);
    }
    case Memory::kUnified:
      return find_type(d, allowed, kMapped | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                       VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    case Memory::kStaging:
      return find_type(d, allowed, kMapped, VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
  }
  return ~0u;
}

// A buffer over memory of this process. QNL_OUT_OF_MEMORY where the driver does not take it.
qnl_status import_buffer(VulkanDevice* d, char* memory, uint64_t bytes, Buffer* buffer) {
  VkExternalMemoryBufferCreateInfo external = {VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = bytes;
  info.usage = kUsage;
  buffer->bytes = bytes;
  qnl_status status = check(d, d->api.CreateBuffer(d->device, &info, nullptr, &buffer->buffer));
  if (status != QNL_OK) return status;
  VkMemoryHostPointerPropertiesEXT properties = {VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  VkMemoryRequirements needs;
  d->api.GetBufferMemoryRequirements(d->device, buffer->buffer, &needs);
  VkResult result = d->api.GetMemoryHostPointerPropertiesEXT(
      d->device, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, memory, &properties);
  VkImportMemoryHostPointerInfoEXT import = {VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr,
                                             VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, memory};
  uint32_t type = find_type(d, needs.memoryTypeBits & properties.memoryTypeBits, kMapped, 0);
  status = QNL_OUT_OF_MEMORY;
  if (result == VK_SUCCESS && needs.size <= bytes && type != ~0u)
    status = bind_own_memory(d, &import, bytes, type, false, buffer);
  if (status != QNL_OK) destroy_buffer(d, buffer);
  return status;
}

Arena* new_arena() {
  void* memory = platform::allocate_pages(sizeof(Arena));
  return memory == nullptr ? nullptr : new (memory) Arena;
}

void delete_arena(VulkanDevice* d, Arena* arena) {
  d->memory_used -= arena->counted;
  destroy_buffer(d, &arena->local);
  destroy_buffer(d, &arena->staging);
  platform::free_pages(arena, sizeof(Arena));
}

// ---- the device's own transfers, in one of a queue's two command buffers

qnl_status begin_transfer(VulkanDevice* d, const Queue& queue, uint32_t which) {
  VkCommandBuffer buffer = queue.transfers[which];
  VkCommandBufferBeginInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                   VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  qnl_status status = check(d, d->api.BeginCommandBuffer(buffer, &info));
  if (status != QNL_OK) return status;
  VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
                             VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
  d->api.CmdPipelineBarrier(buffer, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                            &barrier, 0, nullptr, 0, nullptr);
  return QNL_OK;
}

qnl_status submit_transfer(VulkanDevice* d, const Queue& queue, uint32_t which) {
  VkCommandBuffer buffer = queue.transfers[which];
  VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                             VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT};
  d->api.CmdPipelineBarrier(buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                            &barrier, 0, nullptr, 0, nullptr);
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &buffer;
  VkResult result = d->api.EndCommandBuffer(buffer);
  if (result == VK_SUCCESS) result = d->api.ResetFences(d->device, 1, &queue.fences[which]);
  if (result == VK_SUCCESS) result = d->api.QueueSubmit(queue.handle, 1, &info, queue.fences[which]);
  d->counts.transfers += 1;
  return check(d, result);
}

// What the transfer has written is then visible to later submissions to any queue, without a semaphore. The
// specification: a fence's first access scope is all memory access of the device ("Fences"), which makes
// writes available; the second access scope of vkQueueSubmit is the same ("Host Write Ordering Guarantees"),
// which makes them visible.
qnl_status wait_transfer(VulkanDevice* d, const Queue& queue, uint32_t which) {
  VkResult result = d->api.WaitForFences(d->device, 1, &queue.fences[which], VK_TRUE, d->timeout);
  if (result == VK_TIMEOUT) result = VK_ERROR_DEVICE_LOST;  // given up
  return check(d, result);
}

qnl_status end_transfer(VulkanDevice* d) {
  qnl_status status = submit_transfer(d, d->queues[0], 0);
  return status == QNL_OK ? wait_transfer(d, d->queues[0], 0) : status;
}

qnl_status copy_buffer(VulkanDevice* d, const Buffer& source, uint64_t from, const Buffer& target,
                       uint64_t to, uint64_t bytes) {
  qnl_status status = begin_transfer(d, d->queues[0], 0);
  if (status != QNL_OK) return status;
  VkBufferCopy region = {from, to, bytes};
  d->api.CmdCopyBuffer(d->queues[0].transfers[0], source.buffer, target.buffer, 1, &region);
  return end_transfer(d);
}

// While the queue copies one half of the staging memory, the next piece comes into the other one. Requires
// that no submission to another queue uses the arena meanwhile.
qnl_status upload(VulkanDevice* d, const Queue& queue, Arena* arena, uint64_t offset, const char* source,
                  uint64_t bytes) {
  constexpr uint64_t kHalf = kStagingBytes / 2;
  qnl_status status = QNL_OK;
  bool copies[2] = {};
  uint32_t half = 0;
  auto wait = [&](uint32_t which) {
    if (!copies[which]) return;
    copies[which] = false;
    qnl_status waited = wait_transfer(d, queue, which);
    if (status == QNL_OK) status = waited;
  };
  for (uint64_t at = 0; at < bytes && status == QNL_OK; at += kHalf, half ^= 1) {
    uint64_t piece = bytes - at < kHalf ? bytes - at : kHalf;
    wait(half);
    if (status != QNL_OK) break;
    memcpy(d->staging.mapped + half * kHalf, source + at, piece);
    status = begin_transfer(d, queue, half);
    if (status != QNL_OK) break;
    VkBufferCopy region = {half * kHalf, arena->offset + offset + at, piece};
    d->api.CmdCopyBuffer(queue.transfers[half], d->staging.buffer, arena->local.buffer, 1, &region);
    status = submit_transfer(d, queue, half);
    copies[half] = status == QNL_OK;
  }
  wait(half);
  wait(half ^ 1);
  return status;
}

qnl_status download(VulkanDevice* d, const Arena* arena, uint64_t offset, char* target, uint64_t bytes) {
  qnl_status status = QNL_OK;
  for (uint64_t at = 0; at < bytes && status == QNL_OK; at += kStagingBytes) {
    uint64_t piece = bytes - at < kStagingBytes ? bytes - at : kStagingBytes;
    status = copy_buffer(d, arena->local, arena->offset + offset + at, d->staging, 0, piece);
    if (status == QNL_OK) memcpy(target + at, d->staging.mapped, piece);
  }
  return status;
}

qnl_status fill_local(VulkanDevice* d, Arena* arena, uint64_t offset, uint64_t bytes, uint8_t value) {
  // Whole words can be filled; the bytes before and after them are copied.
  uint64_t begin = arena->offset + offset, end = begin + bytes;
  uint64_t first = round_up(begin, 4), last = end / 4 * 4;
  if (first >= last) first = last = end;
  memset(d->staging.mapped, value, 8);
  qnl_status status = begin_transfer(d, d->queues[0], 0);
  if (status != QNL_OK) return status;
  VkBufferCopy regions[2];
  uint32_t count = 0;
  if (begin < first) regions[count++] = {0, begin, first - begin};
  if (last < end) regions[count++] = {0, last, end - last};
  if (first < last)
    d->api.CmdFillBuffer(d->queues[0].transfers[0], arena->local.buffer, first, last - first,
                         value * 0x01010101u);
  if (count > 0)
    d->api.CmdCopyBuffer(d->queues[0].transfers[0], d->staging.buffer, arena->local.buffer, count, regions);
  return end_transfer(d);
}

qnl_status ready(const VulkanDevice* d) { return d->faulted ? QNL_DEVICE_FAULT : QNL_OK; }

bool writable(const DeviceRange& range, uint64_t bytes) {
  return inside(range, bytes) && (range.arena->handle == nullptr || !arena_of(range)->read_only);
}

// Gives an arena buffers of its own.
qnl_status make_local(VulkanDevice* d, uint64_t bytes, bool host_access, UsedBy used_by, Arena* arena) {
  arena->bytes = bytes;
  qnl_status status =
      create_buffer(d, bytes, d->unified ? Memory::kUnified : Memory::kLocal, &arena->local, used_by);
  if (status == QNL_OK && !d->unified && host_access)
    status = create_buffer(d, bytes, Memory::kStaging, &arena->staging);
  if (status != QNL_OK) return status;
  arena->counted = bytes;
  d->memory_used += bytes;
  return QNL_OK;
}

// Uses the pages that hold this memory in place.
bool import_memory(VulkanDevice* d, const void* memory, uint64_t bytes, Arena* arena) {
  if (!d->unified || d->import_alignment == 0) return false;
  auto address = reinterpret_cast<uintptr_t>(memory);
  uint64_t before = address % d->import_alignment;
  arena->bytes = bytes;
  arena->offset = before;
  char* first = const_cast<char*>(static_cast<const char*>(memory)) - before;
  if (import_buffer(d, first, round_up(before + bytes, d->import_alignment), &arena->local) == QNL_OK)
    return true;
  arena->offset = 0;
  return false;
}

qnl_status wrap_constants(VulkanDevice* d, const void* memory, uint64_t bytes, Arena** result) {
  for (Arena* arena = d->shared_constants; arena != nullptr; arena = arena->next) {
    if (arena->key != memory || arena->bytes != bytes) continue;
    arena->users += 1;
    *result = arena;
    return QNL_OK;
  }
  Arena* arena = new_arena();
  if (arena == nullptr) return QNL_OUT_OF_MEMORY;
  qnl_status status = QNL_OK;
  if (!import_memory(d, memory, bytes, arena)) {
    status = make_local(d, bytes, false, UsedBy::kAllQueues, arena);
    if (status == QNL_OK) arena->to_be_uploaded = d->has_uploads = true;
  }
  if (status != QNL_OK) {
    delete_arena(d, arena);
    return status;
  }
  arena->read_only = true;
  arena->key = memory;
  arena->users = 1;
  arena->next = d->shared_constants;
  d->shared_constants = arena;
  *result = arena;
  return QNL_OK;
}

}  // namespace

qnl_status upload_constants(VulkanDevice* d) {
  if (!d->has_uploads) return QNL_OK;
  const Queue& queue = d->queues[d->queue_count - 1];
  for (Arena* arena = d->shared_constants; arena != nullptr; arena = arena->next) {
    if (!arena->to_be_uploaded) continue;
    TraceScope scope(d, QNL_TRACE_UPLOAD, nullptr, arena->bytes);
    const auto* source = static_cast<const char*>(arena->key);
    if (d->unified)
      memcpy(arena->local.mapped, source, arena->bytes);
    else if (qnl_status status = upload(d, queue, arena, 0, source, arena->bytes); status != QNL_OK)
      return status;
    arena->to_be_uploaded = false;
    d->counts.uploads += 1;
  }
  d->has_uploads = false;
  return QNL_OK;
}

bool has_unified_memory(const VulkanDevice* d) { return find_type(d, ~0u, Memory::kUnified) != ~0u; }

uint64_t max_arena_bytes(const VulkanDevice* d) { return d->max_allocation - kBufferUnit; }

uint64_t arena_memory_bytes(const VulkanDevice* d) {
  uint32_t type = find_type(d, ~0u, d->unified ? Memory::kUnified : Memory::kLocal);
  return type == ~0u ? 0 : d->memory.memoryHeaps[d->memory.memoryTypes[type].heapIndex].size;
}

qnl_status create_buffer(VulkanDevice* d, uint64_t bytes, Memory kind, Buffer* buffer, UsedBy used_by) {
  if (bytes > max_arena_bytes(d)) return QNL_OUT_OF_MEMORY;
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = round_up(bytes, kBufferUnit);
  info.usage = kUsage;
  // Shared, because handing over the ownership would take a submission to the first queue for each upload.
  const uint32_t families[] = {d->queues[0].family, d->queues[1].family};
  if (used_by == UsedBy::kAllQueues && d->queue_count == 2) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = 2;
    info.pQueueFamilyIndices = families;
  }
  qnl_status status = check(d, d->api.CreateBuffer(d->device, &info, nullptr, &buffer->buffer));
  if (status != QNL_OK) return status;
  buffer->bytes = info.size;
  VkMemoryRequirements needs;
  d->api.GetBufferMemoryRequirements(d->device, buffer->buffer, &needs);
  uint32_t type = find_type(d, needs.memoryTypeBits, kind);
  if (type != ~0u && needs.size > d->memory.memoryHeaps[d->memory.memoryTypes[type].heapIndex].size)
    type = ~0u;
  status =
      type == ~0u ? QNL_OUT_OF_MEMORY : bind_shared_memory(d, needs, type, kind != Memory::kLocal, buffer);
  if (status != QNL_OK) destroy_buffer(d, buffer);
  return status;
}

void destroy_buffer(VulkanDevice* d, Buffer* buffer) {
  d->api.DestroyBuffer(d->device, buffer->buffer, nullptr);
  d->buffers_destroyed += 1;
  release_memory(d, buffer);
  buffer->~Buffer();
  new (buffer) Buffer;
}

qnl_status allocate_arena(Device* device, uint64_t bytes, bool host_access, DeviceArena* arena) {
  VulkanDevice* d = vulkan(device);
  *arena = {};
  if (d->faulted) return QNL_DEVICE_FAULT;
  if (bytes == 0) return QNL_OK;
  Arena* a = new_arena();
  if (a == nullptr) return QNL_OUT_OF_MEMORY;
  qnl_status status = make_local(d, bytes, host_access, UsedBy::kFirstQueue, a);
  char* host = a->local.mapped != nullptr ? a->local.mapped : a->staging.mapped;
  if (status == QNL_OK && host != nullptr) memset(host, 0, bytes);
  if (status == QNL_OK && a->local.mapped == nullptr) status = fill_local(d, a, 0, bytes, 0);
  if (status != QNL_OK) {
    delete_arena(d, a);
    return status;
  }
  *arena = {host, bytes, a};
  return QNL_OK;
}

qnl_status wrap_arena(Device* device, const void* memory, uint64_t bytes, bool read_only,
                      DeviceArena* arena) {
  VulkanDevice* d = vulkan(device);
  *arena = {};
  if (d->faulted) return QNL_DEVICE_FAULT;
  auto* host = const_cast<char*>(static_cast<const char*>(memory));
  if (bytes == 0) {
    *arena = {host, 0, nullptr};
    return QNL_OK;
  }
  Arena* a = nullptr;
  qnl_status status = QNL_OK;
  if (read_only) {
    status = wrap_constants(d, memory, bytes, &a);
    if (status != QNL_OK) return status;
  } else {
    a = new_arena();
    if (a == nullptr) return QNL_OUT_OF_MEMORY;
    if (!import_memory(d, memory, bytes, a)) {
      a->caller = host;
      status = make_local(d, bytes, true, UsedBy::kFirstQueue, a);
    }
    if (status != QNL_OK) {
      delete_arena(d, a);
      return status;
    }
  }
  *arena = {host, bytes, a};
  return QNL_OK;
}

void free_arena(Device* device, DeviceArena* arena) {
  VulkanDevice* d = vulkan(device);
  auto* a = static_cast<Arena*>(arena->handle);
  *arena = {};
  if (a == nullptr) return;
  if (a->key != nullptr) {
    if (--a->users != 0) return;
    Arena** link = &d->shared_constants;
    while (*link != a) link = &(*link)->next;
    *link = a->next;
  }
  delete_arena(d, a);
}

qnl_status fill(Device* device, const DeviceRange& target, uint64_t bytes, uint8_t value) {
  VulkanDevice* d = vulkan(device);
  if (!writable(target, bytes)) return QNL_INVALID_ARGUMENT;
  if (qnl_status status = ready(d); status != QNL_OK || bytes == 0) return status;
  TraceScope scope(d, QNL_TRACE_COPY, nullptr, bytes);
  char* host = host_address(target);
  if (host == nullptr) return fill_local(d, arena_of(target), target.offset, bytes, value);
  memset(host, value, bytes);
  return QNL_OK;
}

qnl_status write(Device* device, const DeviceRange& target, const void* source, uint64_t bytes) {
  VulkanDevice* d = vulkan(device);
  if (!writable(target, bytes)) return QNL_INVALID_ARGUMENT;
  if (qnl_status status = ready(d); status != QNL_OK || bytes == 0) return status;
  TraceScope scope(d, QNL_TRACE_UPLOAD, nullptr, bytes);
  char* host = host_address(target);
  if (host == nullptr)
    return upload(d, d->queues[0], arena_of(target), target.offset, static_cast<const char*>(source), bytes);
  memmove(host, source, bytes);
  return QNL_OK;
}

qnl_status read(Device* device, const DeviceRange& source, void* target, uint64_t bytes) {
  VulkanDevice* d = vulkan(device);
  if (!inside(source, bytes)) return QNL_INVALID_ARGUMENT;
  if (qnl_status status = ready(d); status != QNL_OK || bytes == 0) return status;
  TraceScope scope(d, QNL_TRACE_DOWNLOAD, nullptr, bytes);
  char* host = host_address(source);
  if (host == nullptr) return download(d, arena_of(source), source.offset, static_cast<char*>(target), bytes);
  memmove(target, host, bytes);
  return QNL_OK;
}

qnl_status copy(Device* device, const DeviceRange& source, const DeviceRange& target, uint64_t bytes) {
  VulkanDevice* d = vulkan(device);
  if (!inside(source, bytes) || !writable(target, bytes)) return QNL_INVALID_ARGUMENT;
  char *from_host = host_address(source), *to_host = host_address(target);
  if (from_host != nullptr && to_host == nullptr) return write(device, target, from_host, bytes);
  if (from_host == nullptr && to_host != nullptr) return read(device, source, to_host, bytes);
  if (qnl_status status = ready(d); status != QNL_OK || bytes == 0) return status;
  TraceScope scope(d, QNL_TRACE_COPY, nullptr, bytes);
  if (from_host != nullptr) {
    memmove(to_host, from_host, bytes);
    return QNL_OK;
  }
  Arena *from = arena_of(source), *to = arena_of(target);
  uint64_t a = source.offset, b = target.offset;
  uint64_t distance = a > b ? a - b : b - a;
  if (from != to || distance >= bytes)
    return copy_buffer(d, from->local, from->offset + a, to->local, to->offset + b, bytes);
  // One over the other: in pieces, from the end that is not overwritten first.
  qnl_status status = QNL_OK;
  for (uint64_t done = 0; done < bytes && status == QNL_OK;) {
    uint64_t piece = bytes - done < kStagingBytes ? bytes - done : kStagingBytes;
    uint64_t at = a > b ? done : bytes - done - piece;
    status = copy_buffer(d, from->local, from->offset + a + at, d->staging, 0, piece);
    if (status == QNL_OK) status = copy_buffer(d, d->staging, 0, to->local, to->offset + b + at, piece);
    done += piece;
  }
  return status;
}

qnl_status open_transfers(VulkanDevice* d) {
  for (uint32_t q = 0; q < d->queue_count; ++q) {
    Queue& queue = d->queues[q];
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                    VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queue.family};
    VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkResult result = d->api.CreateCommandPool(d->device, &pool, nullptr, &queue.pool);
    VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, queue.pool,
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 2};
    if (result == VK_SUCCESS) result = d->api.AllocateCommandBuffers(d->device, &info, queue.transfers);
    for (VkFence& made : queue.fences)
      if (result == VK_SUCCESS) result = d->api.CreateFence(d->device, &fence, nullptr, &made);
    if (result != VK_SUCCESS) return check(d, result);
  }
  qnl_status status = create_buffer(d, 4, Memory::kStaging, &d->empty);
  if (status != QNL_OK || d->unified) return status;
  return create_buffer(d, kStagingBytes, Memory::kStaging, &d->staging, UsedBy::kAllQueues);
}

void close_transfers(VulkanDevice* d) {
  destroy_buffer(d, &d->staging);
  destroy_buffer(d, &d->empty);
  free_blocks(d);
  for (const Queue& queue : d->queues) {
    for (VkFence fence : queue.fences) d->api.DestroyFence(d->device, fence, nullptr);
    d->api.DestroyCommandPool(d->device, queue.pool, nullptr);
  }
}

}  // namespace quernel::runtime::vulkan
