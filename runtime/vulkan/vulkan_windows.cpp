// Which ranges of memory a dispatch sees: at most kWindows of them cover its bindings.
#include "vulkan/vulkan_windows.h"

namespace quernel::runtime::vulkan {

namespace {

// Bindings that share a window.
struct Span {
  VkBuffer buffer;
  uint64_t begin, end;
  uint64_t members;  // bits of bindings
};

bool overlap(const Span& a, const Span& b) {
  return a.buffer == b.buffer && a.begin < b.end && b.begin < a.end;
}

uint64_t joined_bytes(const Span& a, const Span& b) {
  uint64_t begin = a.begin < b.begin ? a.begin : b.begin, end = a.end > b.end ? a.end : b.end;
  return end - begin;
}

uint64_t windows_of(const Span& span, uint64_t max_bytes) {
  uint64_t bytes = span.end - span.begin, piece = split_bytes(max_bytes);
  return bytes <= max_bytes ? 1 : (bytes + piece - 1) / piece;
}

struct Spans {
  Span items[kMaxBindings];
  uint32_t count = 0;

  uint64_t windows(uint64_t max_bytes) const {
    uint64_t windows = 0;
    for (uint32_t i = 0; i < count; ++i) windows += windows_of(items[i], max_bytes);
    return windows;
  }

  // The spans stay in the order of their first bindings.
  void join(uint32_t into, uint32_t from) {
    Span& a = items[into];
    const Span& b = items[from];
    uint64_t bytes = joined_bytes(a, b);
    a.begin = a.begin < b.begin ? a.begin : b.begin;
    a.end = a.begin + bytes;
    a.members |= b.members;
    for (uint32_t i = from; i + 1 < count; ++i) items[i] = items[i + 1];
    count -= 1;
  }

  // What overlaps has to be seen through one window, so that no compiler takes it for two things.
  void join_overlapping() {
    for (uint32_t i = 0; i < count; ++i)
      for (uint32_t j = i + 1; j < count;) {
        if (overlap(items[i], items[j])) {
          join(i, j);
          j = i + 1;
        } else {
          ++j;
        }
      }
  }

  // Joins the two that become smallest together; false when none fit a window.
  bool join_nearest(uint64_t max_bytes) {
    uint32_t best_i = 0, best_j = 0;
    uint64_t best = max_bytes + 1;
    for (uint32_t i = 0; i < count; ++i)
      for (uint32_t j = i + 1; j < count; ++j)
        if (items[i].buffer == items[j].buffer && joined_bytes(items[i], items[j]) < best) {
          best = joined_bytes(items[i], items[j]);
          best_i = i;
          best_j = j;
        }
    if (best > max_bytes) return false;
    join(best_i, best_j);
    join_overlapping();
    return true;
  }
};

}  // namespace

qnl_status find_windows(const WindowLimits& limits, const WindowBinding* bindings, uint32_t count,
                        Window* windows, WindowMap* map, Failure* failure) {
  Spans spans;
  uint64_t splittable = 0;
  for (uint32_t b = 0; b < count; ++b) {
    const WindowBinding& binding = bindings[b];
    if (binding.buffer == VK_NULL_HANDLE) continue;
    uint64_t begin = binding.offset / limits.alignment * limits.alignment;
    uint64_t end = (binding.offset + (binding.bytes == 0 ? 1 : binding.bytes) + 3) / 4 * 4;
    spans.items[spans.count++] = {binding.buffer, begin, end < binding.limit ? end : binding.limit,
                                  uint64_t{1} << b};
    splittable |= uint64_t{binding.splittable} << b;
  }
  spans.join_overlapping();
  for (uint32_t i = 0; i < spans.count; ++i) {
    const Span& span = spans.items[i];
    if (span.end - span.begin <= limits.max_bytes || (span.members & ~splittable) == 0) continue;
    failure->append("its bindings need a storage buffer of {} bytes, the device's have at most {}",
                    span.end - span.begin, limits.max_bytes);
    return QNL_INVALID_ARGUMENT;
  }
  while (spans.windows(limits.max_bytes) > kWindows) {
    if (spans.join_nearest(limits.max_bytes)) continue;
    failure->append("its {} bindings need {} storage buffers of at most {} bytes, expected at most {}", count,
                    spans.windows(limits.max_bytes), limits.max_bytes, kWindows);
    return QNL_INVALID_ARGUMENT;
  }
  uint32_t used = 0;
  for (uint32_t i = 0; i < spans.count; ++i) {
    const Span& span = spans.items[i];
    for (uint32_t b = 0; b < count; ++b)
      if ((span.members >> b & 1) != 0) map->set(b, used);
    uint64_t pieces = windows_of(span, limits.max_bytes);
    if (pieces > 1) map->split |= span.members;
    uint64_t piece = pieces > 1 ? split_bytes(limits.max_bytes) : span.end - span.begin;
    for (uint64_t at = span.begin; at < span.end; at += piece)
      windows[used++] = {span.buffer, at, span.end - at < piece ? span.end - at : piece};
  }
  for (uint32_t w = used; w < kWindows; ++w) windows[w] = used == 0 ? Window{} : windows[0];
  return QNL_OK;
}

qnl_status find_placement(const VulkanDevice* d, const VulkanRecording* r, uint32_t c, Placement* placement,
                          qnl_error* error) {
  const Command& command = r->list->commands[c];
  const VkPhysicalDeviceLimits& limits = d->properties.limits;
  uint64_t splittable = r->kernels->kernels[command.kernel].splittable;
  for (uint32_t b = 0; b < command.binding_count; ++b) {
    const DeviceRange& range = r->list->bindings[command.first_binding + b];
    uint64_t bytes = r->list->binding_bytes[command.first_binding + b];
    if (!inside(range, bytes))
      return fail(error, QNL_INVALID_ARGUMENT, "item {}: binding {} lies outside its arena", c, b);
    const Arena* arena = arena_of(range);
    placement->bindings[b] = {VK_NULL_HANDLE, 0, 0, 0, false};
    if (arena != nullptr)
      placement->bindings[b] = {arena->local.buffer, arena->offset + range.offset, bytes, arena->local.bytes,
                                (splittable >> b & 1) != 0};
  }
  Failure failure(error, QNL_INVALID_ARGUMENT);
  failure.append("item {}: ", c);
  constexpr uint64_t kLoad = 16;  // bytes that an invocation loads at once
  const uint64_t least = limits.minStorageBufferOffsetAlignment;
  return find_windows({least > kLoad ? least : kLoad, limits.maxStorageBufferRange}, placement->bindings,
                      command.binding_count, placement->windows, &placement->map, &failure);
}

}  // namespace quernel::runtime::vulkan
