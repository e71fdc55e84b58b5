#include "core/device.h"

#include <string.h>

#include "core/submission.h"
#include "platform/platform.h"

namespace quernel::runtime::host_memory {
namespace {
// DeviceArena::handle of memory that is ours to write: pages to be freed, or the caller's.
char kPages, kWrapped, kReadOnly;

bool writable(const DeviceRange& range, uint64_t bytes) {
  return inside(range, bytes) && range.arena->handle != &kReadOnly;
}
}  // namespace

qnl_status allocate(uint64_t bytes, DeviceArena* arena) {
  *arena = {};
  if (bytes == 0) return QNL_OK;
  void* pages = platform::allocate_pages(bytes);
  if (pages == nullptr) return QNL_OUT_OF_MEMORY;
  *arena = {pages, bytes, &kPages};
  return QNL_OK;
}

void wrap(const void* memory, uint64_t bytes, bool read_only, DeviceArena* arena) {
  *arena = {const_cast<void*>(memory), bytes, read_only ? &kReadOnly : &kWrapped};
}

uint64_t free(DeviceArena* arena) {
  uint64_t bytes = 0;
  if (arena->handle == &kPages) {
    bytes = arena->bytes;
    platform::free_pages(arena->host, bytes);
  }
  *arena = {};
  return bytes;
}

qnl_status fill(const DeviceRange& target, uint64_t bytes, uint8_t value) {
  if (!writable(target, bytes)) return QNL_INVALID_ARGUMENT;
  if (bytes > 0) memset(host_address(target), value, bytes);
  return QNL_OK;
}

qnl_status write(const DeviceRange& target, const void* source, uint64_t bytes) {
  if (!writable(target, bytes)) return QNL_INVALID_ARGUMENT;
  if (bytes > 0) memmove(host_address(target), source, bytes);
  return QNL_OK;
}

qnl_status read(const DeviceRange& source, void* target, uint64_t bytes) {
  if (!inside(source, bytes)) return QNL_INVALID_ARGUMENT;
  if (bytes > 0) memmove(target, host_address(source), bytes);
  return QNL_OK;
}

qnl_status copy(const DeviceRange& source, const DeviceRange& target, uint64_t bytes) {
  if (!inside(source, bytes) || !writable(target, bytes)) return QNL_INVALID_ARGUMENT;
  if (bytes > 0) memmove(host_address(target), host_address(source), bytes);
  return QNL_OK;
}

void copy_strided(const Command& command, const char* source, char* target) {
  if (command.copy_bytes == 0) return;
  uint64_t index[kMaxCopyLoops] = {};
  for (;;) {
    memmove(target, source, command.copy_bytes);
    uint32_t l = command.copy_loop_count;  // advance the innermost loop, carrying outwards
    for (;;) {
      if (l == 0) return;
      const CopyLoop& loop = command.copy_loops[--l];
      source += loop.source_stride;
      target += loop.target_stride;
      if (++index[l] < loop.count) break;
      source -= loop.source_stride * loop.count;
      target -= loop.target_stride * loop.count;
      index[l] = 0;
    }
  }
}

namespace {
constexpr uint32_t kPending = 0, kDone = 1,
                   kAwaited = 2;  // of Event::word; awaited: pending, and someone sleeps
}

// The system is asked to wake only when someone sleeps, which a device that completes before it returns never
// sees.
void event_signal(Event* event) {
  if (__atomic_exchange_n(&event->word, kDone, __ATOMIC_ACQ_REL) == kAwaited)
    platform::wake(&event->word, ~0u >> 1);
}

bool event_done(const Event* event) { return __atomic_load_n(&event->word, __ATOMIC_ACQUIRE) == kDone; }

qnl_status event_wait(Event* event, uint64_t timeout_nanoseconds) {
  if (event_done(event)) return QNL_OK;
  uint32_t* word = &event->word;
  uint64_t begin = platform::now_nanoseconds();
  while (!event_done(event)) {
    uint64_t left = platform::kForever;
    if (timeout_nanoseconds != platform::kForever) {
      uint64_t passed = platform::now_nanoseconds() - begin;
      if (passed >= timeout_nanoseconds) return QNL_TIMEOUT;
      left = timeout_nanoseconds - passed;
    }
    uint32_t pending = kPending;
    __atomic_compare_exchange_n(word, &pending, kAwaited, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    platform::park(word, kAwaited, left);
  }
  return QNL_OK;
}

}  // namespace quernel::runtime::host_memory

using quernel::runtime::DeviceProperties;

extern "C" {

void qnl_device_close(qnl_device* device) {
  if (device == nullptr) return;
  if (device->thread != nullptr) device->thread->stop(device->thread);
  device->table->close(device);
}

void qnl_device_get_info(const qnl_device* device, qnl_device_info* info) {
  DeviceProperties properties;
  device->table->properties(device, &properties);
  *info = {properties.name,
           static_cast<qnl_arch>(properties.arch),
           properties.features,
           properties.threads,
           device->table->memory_used(device),
           properties.memory_bytes,
           properties.max_arena_bytes,
           properties.max_binding_bytes};
}

}  // extern "C"
