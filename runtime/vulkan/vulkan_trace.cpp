// Times of commands by the device's clock: a timestamp after each command of a timed stretch, read when its
// submission is complete.
#include "core/trace.h"
#include "vulkan/vulkan_record.h"

namespace quernel::runtime::vulkan {

namespace {

// Queries of a stretch: its begin, the end of what is copied in front, the end of each command, the end of
// what is copied behind.
uint32_t query_count(uint32_t commands) { return commands + 3; }
constexpr uint32_t kChunk = 64;  // of queries read at once

uint64_t nanoseconds(const VulkanDevice* d, uint64_t ticks) {
  if (d->timestamp_bits < 64) ticks &= (uint64_t{1} << d->timestamp_bits) - 1;
  return static_cast<uint64_t>(static_cast<double>(ticks) * double{d->properties.limits.timestampPeriod});
}

qnl_status read_queries(VulkanDevice* d, const VulkanRecording* r, uint32_t first, uint32_t count,
                        uint64_t* ticks) {
  return check(d,
               d->api.GetQueryPoolResults(d->device, r->queries, first, count, count * sizeof *ticks, ticks,
                                          sizeof *ticks, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
}

uint64_t mirrored_bytes(const VulkanRecording* r, bool to_device) {
  uint64_t bytes = 0;
  for (uint32_t m = 0; m < r->mirror_count; ++m)
    if (r->mirrors[m].arena->staging.buffer != VK_NULL_HANDLE &&
        (to_device ? r->mirrors[m].read : r->mirrors[m].write))
      bytes += r->mirrors[m].end - r->mirrors[m].begin;
  return bytes;
}

// Nothing begins before it is submitted or ends after it is seen complete: among the offsets that satisfy
// this the one that needs the least change.
void place_clock(VulkanDevice* d, uint64_t submitted, uint64_t begin, uint64_t end, uint64_t complete) {
  auto least = static_cast<int64_t>(submitted - begin), most = static_cast<int64_t>(complete - end);
  if (d->clock_offset < least) d->clock_offset = least;
  if (d->clock_offset > most) d->clock_offset = most;
}

}  // namespace

qnl_status make_queries(VulkanDevice* d, VulkanRecording* r) {
  if (r->queries != VK_NULL_HANDLE) return QNL_OK;
  VkQueryPoolCreateInfo info = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = query_count(r->list->command_count);
  return check(d, d->api.CreateQueryPool(d->device, &info, nullptr, &r->queries));
}

void begin_times(VulkanDevice* d, VulkanRecording* r, uint32_t commands, VkCommandBuffer buffer) {
  d->api.CmdResetQueryPool(buffer, r->queries, 0, query_count(commands));
  r->query_count = 0;
}

void record_time(VulkanDevice* d, VulkanRecording* r, VkCommandBuffer buffer) {
  d->api.CmdWriteTimestamp(buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, r->queries, r->query_count++);
}

qnl_status report_times(VulkanDevice* d, VulkanRecording* r, uint64_t complete) {
  const CommandList& list = *r->list;
  if (d->timestamp_bits == 0) {  // a stretch of one command then
    report_command(d, list, r->timed_begin, true, r->submitted_at, complete);
    return QNL_OK;
  }
  uint32_t last = query_count(r->timed_end - r->timed_begin) - 1;
  uint64_t ticks[kChunk];
  qnl_status status = read_queries(d, r, 0, 1, ticks);
  if (status == QNL_OK) status = read_queries(d, r, last, 1, ticks + 1);
  if (status != QNL_OK) return status;
  // Where the counter has wrapped around since the begin, times are those since then.
  uint64_t base = ticks[0];
  auto since_begin = [&](uint64_t tick) { return nanoseconds(d, tick - base); };
  uint64_t begin = nanoseconds(d, base);
  place_clock(d, r->submitted_at, begin, begin + since_begin(ticks[1]), complete);
  uint64_t host = begin + static_cast<uint64_t>(d->clock_offset), from = host;
  for (uint32_t first = 1; first <= last; first += kChunk) {
    uint32_t count = last + 1 - first < kChunk ? last + 1 - first : kChunk;
    if (status = read_queries(d, r, first, count, ticks); status != QNL_OK) return status;
    for (uint32_t q = first; q < first + count; ++q) {
      uint64_t to = host + since_begin(ticks[q - first]);
      if (q != 1 && q != last) {
        report_command(d, list, r->timed_begin + q - 2, true, from, to);
      } else if (uint64_t bytes = mirrored_bytes(r, q == 1); bytes != 0) {
        report(d, q == 1 ? QNL_TRACE_UPLOAD : QNL_TRACE_DOWNLOAD, list.session, true, from, to, bytes);
      }
      from = to;
    }
  }
  return QNL_OK;
}

}  // namespace quernel::runtime::vulkan
