#include "vulkan/vulkan_blocks.h"

#include <new>

#include "platform/platform.h"

namespace quernel::runtime::vulkan {

// One allocation. Its buffers are a list in the order of their offsets; what lies between them is free.
struct MemoryBlock {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  char* mapped = nullptr;
  uint64_t bytes = 0;
  uint64_t used = 0;
  uint32_t type = 0;
  bool is_shared = false;  // more than one buffer may be in it
  Buffer* first = nullptr;
  MemoryBlock* next = nullptr;
};

namespace {

// The first block of a type is small, and each further one as large as all before it, so that few sessions
// take little memory and many take few blocks. A large buffer gets an allocation of its own, which goes when
// it does.
constexpr uint64_t kFirstBytes = uint64_t{1} << 20, kLargestBytes = uint64_t{64} << 20;
constexpr uint64_t kOwnBytes = uint64_t{16} << 20;
constexpr uint64_t kUnit = 256, kPage = 4096;

uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

void delete_block(VulkanDevice* d, MemoryBlock* block) {
  d->api.FreeMemory(d->device, block->memory, nullptr);  // unmaps it
  d->counts.allocations -= 1;
  d->counts.allocated_bytes -= block->bytes;
  platform::free_pages(block, sizeof(MemoryBlock));
}

qnl_status new_block(VulkanDevice* d, const void* next, uint64_t bytes, uint32_t type, bool mapped,
                     bool is_shared, MemoryBlock** result) {
  // Memory that is imported could be copied as well; what is left of the driver's allocations is for others.
  uint64_t most = d->properties.limits.maxMemoryAllocationCount;
  if (next != nullptr) most = most * 3 / 4;
  if (d->counts.allocations >= most || bytes > d->memory_limit - d->counts.allocated_bytes)
    return QNL_OUT_OF_MEMORY;
  void* pages = platform::allocate_pages(sizeof(MemoryBlock));
  if (pages == nullptr) return QNL_OUT_OF_MEMORY;
  VkMemoryAllocateInfo info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, next, bytes, type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkResult made = d->api.AllocateMemory(d->device, &info, nullptr, &memory);
  if (made != VK_SUCCESS) {
    platform::free_pages(pages, sizeof(MemoryBlock));
    return check(d, made);
  }
  auto* block = new (pages) MemoryBlock;
  block->memory = memory;
  block->bytes = bytes;
  block->type = type;
  block->is_shared = is_shared;
  d->counts.allocations += 1;
  d->counts.allocated_bytes += bytes;
  void* address = nullptr;
  if (mapped) made = d->api.MapMemory(d->device, memory, 0, VK_WHOLE_SIZE, 0, &address);
  if (made != VK_SUCCESS) {
    delete_block(d, block);
    return check(d, made);
  }
  block->mapped = static_cast<char*>(address);
  block->next = d->blocks;
  d->blocks = block;
  *result = block;
  return QNL_OK;
}

// Where the block has room: behind which buffer (null: at its beginning), and at which offset.
bool find_room(const MemoryBlock& block, uint64_t bytes, uint64_t alignment, Buffer** after,
               uint64_t* offset) {
  if (bytes > block.bytes - block.used) return false;
  uint64_t begin = 0;
  *after = nullptr;
  for (Buffer* next = block.first;; next = next->after) {
    *offset = round_up(begin, alignment);
    uint64_t end = next == nullptr ? block.bytes : next->offset;
    if (*offset <= end && bytes <= end - *offset) return true;
    if (next == nullptr) return false;
    *after = next;
    begin = next->offset + next->reserved;
  }
}

void place(MemoryBlock* block, Buffer* after, uint64_t offset, uint64_t bytes, Buffer* buffer) {
  buffer->block = block;
  buffer->offset = offset;
  buffer->reserved = bytes;
  buffer->before = after;
  buffer->after = after == nullptr ? block->first : after->after;
  (after == nullptr ? block->first : after->after) = buffer;
  if (buffer->after != nullptr) buffer->after->before = buffer;
  block->used += bytes;
  if (block->mapped != nullptr) buffer->mapped = block->mapped + offset;
}

qnl_status bind(VulkanDevice* d, Buffer* buffer) {
  return check(d, d->api.BindBufferMemory(d->device, buffer->buffer, buffer->block->memory, buffer->offset));
}

bool is_alike(const MemoryBlock& block, uint32_t type, bool mapped) {
  return block.is_shared && block.type == type && (block.mapped != nullptr) == mapped;
}

// A new block for a buffer of these bytes, larger where the driver has that much.
qnl_status add_shared_block(VulkanDevice* d, uint64_t bytes, uint32_t type, bool mapped,
                            MemoryBlock** block) {
  uint64_t size = 0;
  for (const MemoryBlock* other = d->blocks; other != nullptr; other = other->next)
    if (is_alike(*other, type, mapped)) size += other->bytes;
  if (size < kFirstBytes) size = kFirstBytes;
  if (size > kLargestBytes) size = kLargestBytes;
  uint64_t heap = d->memory.memoryHeaps[d->memory.memoryTypes[type].heapIndex].size;
  if (size > heap / 16) size = heap / 16;
  if (size > bytes && new_block(d, nullptr, size, type, mapped, true, block) == QNL_OK) return QNL_OK;
  if (d->faulted) return QNL_DEVICE_FAULT;
  return new_block(d, nullptr, bytes, type, mapped, true, block);
}

// An empty one of the smallest size is kept, so that a session that is made again and again allocates once.
bool is_kept(const VulkanDevice* d, const MemoryBlock& block) {
  if (!block.is_shared || block.bytes != kFirstBytes) return false;
  for (const MemoryBlock* other = d->blocks; other != nullptr; other = other->next)
    if (other != &block && other->first == nullptr && is_alike(*other, block.type, block.mapped != nullptr))
      return false;
  return true;
}

}  // namespace

qnl_status bind_shared_memory(VulkanDevice* d, const VkMemoryRequirements& needs, uint32_t type, bool mapped,
                              Buffer* buffer) {
  uint64_t bytes = round_up(needs.size, kUnit);
  if (bytes >= kOwnBytes) return bind_own_memory(d, nullptr, bytes, type, mapped, buffer);
  uint64_t alignment = bytes >= kPage ? kPage : kUnit;  // what arenas promise
  if (alignment < needs.alignment) alignment = needs.alignment;
  Buffer* after = nullptr;
  uint64_t offset = 0;
  for (MemoryBlock* block = d->blocks; block != nullptr; block = block->next) {
    if (!is_alike(*block, type, mapped) || !find_room(*block, bytes, alignment, &after, &offset)) continue;
    place(block, after, offset, bytes, buffer);
    return bind(d, buffer);
  }
  MemoryBlock* block = nullptr;
  if (qnl_status status = add_shared_block(d, bytes, type, mapped, &block); status != QNL_OK) return status;
  place(block, nullptr, 0, bytes, buffer);
  return bind(d, buffer);
}

qnl_status bind_own_memory(VulkanDevice* d, const void* next, uint64_t bytes, uint32_t type, bool mapped,
                           Buffer* buffer) {
  MemoryBlock* block = nullptr;
  qnl_status status = new_block(d, next, bytes, type, mapped, false, &block);
  if (status != QNL_OK) return status;
  place(block, nullptr, 0, bytes, buffer);
  return bind(d, buffer);
}

void release_memory(VulkanDevice* d, Buffer* buffer) {
  MemoryBlock* block = buffer->block;
  if (block == nullptr) return;
  (buffer->before == nullptr ? block->first : buffer->before->after) = buffer->after;
  if (buffer->after != nullptr) buffer->after->before = buffer->before;
  block->used -= buffer->reserved;
  buffer->block = nullptr;
  if (block->first != nullptr || is_kept(d, *block)) return;
  MemoryBlock** link = &d->blocks;
  while (*link != block) link = &(*link)->next;
  *link = block->next;
  delete_block(d, block);
}

void free_blocks(VulkanDevice* d) {
  while (d->blocks != nullptr) {
    MemoryBlock* next = d->blocks->next;
    delete_block(d, d->blocks);
    d->blocks = next;
  }
}

}  // namespace quernel::runtime::vulkan
