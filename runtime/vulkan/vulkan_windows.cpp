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

struct Spans {
  Span items[kMaxBindings];
  uint32_t count = 0;

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
  for (uint32_t b = 0; b < count; ++b) {
    const WindowBinding& binding = bindings[b];
    if (binding.buffer == VK_NULL_HANDLE) continue;
    uint64_t begin = binding.offset / limits.alignment * limits.alignment;
    uint64_t end = (binding.offset + (binding.bytes == 0 ? 1 : binding.bytes) + 3) / 4 * 4;
    spans.items[spans.count++] = {binding.buffer, begin, end < binding.limit ? end : binding.limit,
                                  uint64_t{1} << b};
  }
  spans.join_overlapping();
  while (spans.count > kWindows) {
    if (spans.join_nearest(limits.max_bytes)) continue;
    failure->append("its {} bindings need {} storage buffers of at most {} bytes, expected at most {}", count,
                    spans.count, limits.max_bytes, kWindows);
    return QNL_INVALID_ARGUMENT;
  }
  for (uint32_t w = 0; w < spans.count; ++w) {
    const Span& span = spans.items[w];
    if (span.end - span.begin > limits.max_bytes) {
      failure->append("its bindings need a storage buffer of {} bytes, the device's have at most {}",
                      span.end - span.begin, limits.max_bytes);
      return QNL_INVALID_ARGUMENT;
    }
    windows[w] = {span.buffer, span.begin, span.end - span.begin};
    for (uint32_t b = 0; b < count; ++b)
      if ((span.members >> b & 1) != 0) map->set(b, w);
  }
  for (uint32_t w = spans.count; w < kWindows; ++w) windows[w] = spans.count == 0 ? Window{} : windows[0];
  return QNL_OK;
}

}  // namespace quernel::runtime::vulkan
