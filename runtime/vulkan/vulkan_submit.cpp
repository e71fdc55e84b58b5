// Running recordings: submissions, what is copied around them, callbacks between them, events.
#include <string.h>

#include <new>

#include "core/trace.h"
#include "platform/platform.h"
#include "vulkan/vulkan_record.h"

namespace quernel::runtime::vulkan {

namespace {

// The host's memory that the device copies from and to, beside that of a caller.
char* mapped(const Arena* arena) {
  return arena->staging.mapped != nullptr ? arena->staging.mapped : arena->local.mapped;
}

void copy_callers_memory(VulkanDevice* d, VulkanRecording* r, bool to_device) {
  uint64_t start = d->trace == nullptr ? 0 : platform::now_nanoseconds(), bytes = 0;
  for (uint32_t m = 0; m < r->mirror_count; ++m) {
    const Touch& range = r->mirrors[m];
    if (range.arena->caller == nullptr || !(to_device ? range.read : range.write)) continue;
    char *theirs = range.arena->caller + range.begin, *ours = mapped(range.arena) + range.begin;
    to_device ? memcpy(ours, theirs, range.end - range.begin) : memcpy(theirs, ours, range.end - range.begin);
    bytes += range.end - range.begin;
  }
  if (d->trace != nullptr && bytes != 0)
    report(d, to_device ? QNL_TRACE_UPLOAD : QNL_TRACE_DOWNLOAD, r->list->session, false, start,
           platform::now_nanoseconds(), bytes);
}

void complete(VulkanDevice* d, VulkanRecording* r) {
  r->pending = false;
  VulkanRecording** link = &d->in_flight;
  while (*link != r) link = &(*link)->next;
  *link = r->next;
}

enum class Waiting { kWithLock, kWithoutLock };

VkResult wait_for_fence(VulkanDevice* d, VulkanRecording* r, uint64_t timeout, Waiting how) {
  TraceScope scope(d, QNL_TRACE_WAIT, r->list->session);
  if (how == Waiting::kWithLock || timeout == 0)
    return d->api.WaitForFences(d->device, 1, &r->fence, VK_TRUE, timeout);
  r->waiting += 1;
  VkResult result;
  {
    Unguard unguard(&d->lock);
    result = d->api.WaitForFences(d->device, 1, &r->fence, VK_TRUE, timeout);
  }
  r->waiting -= 1;
  return result;
}

// Waits for the recording's submission and completes it; without the lock only for the session that has the
// recording, which keeps it alive.
qnl_status finish(VulkanDevice* d, VulkanRecording* r, uint64_t timeout, Waiting how) {
  if (!r->pending) return QNL_OK;
  if (d->faulted) return QNL_DEVICE_FAULT;
  uint64_t passed = d->timeout == platform::kForever ? 0 : platform::now_nanoseconds() - r->submitted_at;
  uint64_t left = passed < d->timeout ? d->timeout - passed : 0;
  if (d->timeout == platform::kForever) left = platform::kForever;
  uint32_t serial = r->serial;
  VkResult result = wait_for_fence(d, r, timeout < left ? timeout : left, how);
  if (d->faulted) return QNL_DEVICE_FAULT;
  if (!r->pending || r->serial != serial) return QNL_OK;  // another thread has seen it
  if (result == VK_TIMEOUT) {
    if (timeout < left) return QNL_TIMEOUT;
    d->faulted = true;  // given up
    return QNL_DEVICE_FAULT;
  }
  if (qnl_status status = check(d, result); status != QNL_OK) return status;
  complete(d, r);
  if (r->timed_begin != r->timed_end)
    if (qnl_status status = report_times(d, r, platform::now_nanoseconds()); status != QNL_OK) return status;
  copy_callers_memory(d, r, false);
  return QNL_OK;
}

// Commands without callbacks among them, submitted and not waited for.
qnl_status start(VulkanDevice* d, VulkanRecording* r, uint32_t begin, uint32_t end, CommandFailure* failure) {
  if (qnl_status status = finish(d, r, platform::kForever, Waiting::kWithoutLock); status != QNL_OK)
    return status;
  failure->command = begin;
  if (is_cancelled(*r->list)) return QNL_CANCELLED;
  while (r->waiting != 0) {  // for the last submission, which is complete: they are about to see it
    Unguard unguard(&d->lock);
    platform::spin_pause();
  }
  bool timed = is_timed(d, *r->list), with_times = timed && d->timestamp_bits != 0;
  if (with_times)
    if (qnl_status status = make_queries(d, r); status != QNL_OK) return status;
  Stretch* stretch = with_times ? &r->timed[begin] : &r->stretches[begin];
  bool stale = stretch->recorded_at == 0 || stretch->end != end;
  for (uint32_t c = begin; c < end; ++c) {
    failure->command = c;
    if (qnl_status status = refresh(d, r, c, nullptr); status != QNL_OK) return status;
    stale = stale || r->steps[c].changed_at > stretch->recorded_at;
  }
  collect_mirrors(r, begin, end);
  if (stale)
    if (qnl_status status = record_stretch(d, r, begin, end, stretch, with_times); status != QNL_OK)
      return status;
  copy_callers_memory(d, r, true);
  TraceScope scope(d, QNL_TRACE_SUBMIT, r->list->session);
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &stretch->buffer;
  VkResult result = d->api.ResetFences(d->device, 1, &r->fence);
  if (timed || d->timeout != platform::kForever) r->submitted_at = platform::now_nanoseconds();
  r->timed_begin = begin;
  r->timed_end = timed ? end : begin;
  if (result == VK_SUCCESS) result = d->api.QueueSubmit(d->queues[0].handle, 1, &info, r->fence);
  if (result != VK_SUCCESS) return check(d, result);
  d->counts.submissions += 1;
  r->serial = r->serial == ~0u ? 2 : r->serial + 1;
  r->pending = true;
  r->next = d->in_flight;
  d->in_flight = r;
  return QNL_OK;
}

// Room for copies of those bindings of a callback that the host does not reach.
qnl_status make_callback_memory(VulkanRecording* r, const Command& command) {
  uint64_t bytes = 0;
  for (uint32_t i = command.first_binding; i < command.first_binding + command.binding_count; ++i)
    if (host_address(r->list->bindings[i]) == nullptr)
      bytes += (r->list->binding_bytes[i] + 63) & ~uint64_t{63};
  if (bytes <= r->callback_bytes) return QNL_OK;
  if (r->callback_memory != nullptr) platform::free_pages(r->callback_memory, r->callback_bytes);
  r->callback_bytes = 0;
  r->callback_memory = static_cast<char*>(platform::allocate_pages(bytes));
  if (r->callback_memory == nullptr) return QNL_OUT_OF_MEMORY;
  r->callback_bytes = bytes;
  return QNL_OK;
}

qnl_status run_callback(VulkanDevice* d, VulkanRecording* r, const Command& command, int32_t* code) {
  if (command.callback.function == nullptr) return QNL_CALLBACK_MISSING;
  if (qnl_status status = make_callback_memory(r, command); status != QNL_OK) return status;
  const CommandList& list = *r->list;
  char* at = r->callback_memory;
  auto accesses = [&](uint32_t i, Access without) {
    return list.access == nullptr || list.access[i] != without;
  };
  for (uint32_t b = 0; b < command.binding_count; ++b) {
    uint32_t i = command.first_binding + b;
    r->pointers[i] = host_address(list.bindings[i]);
    if (r->pointers[i] != nullptr) continue;
    r->pointers[i] = at;
    at += (list.binding_bytes[i] + 63) & ~uint64_t{63};
    if (!accesses(i, Access::kWrite)) continue;
    qnl_status status = read(d, list.bindings[i], r->pointers[i], list.binding_bytes[i]);
    if (status != QNL_OK) return status;
  }
  uint64_t start = is_timed(d, list) ? platform::now_nanoseconds() : 0;
  {
    Unguard unguard(&d->lock);
    *code = command.callback.function(command.callback.user, r->pointers + command.first_binding,
                                      list.binding_bytes + command.first_binding, command.binding_count);
  }
  if (*code != 0) return QNL_CALLBACK_FAILED;
  if (is_timed(d, list))
    report_command(d, list, static_cast<uint32_t>(&command - list.commands), false, start,
                   platform::now_nanoseconds());
  for (uint32_t b = 0; b < command.binding_count; ++b) {
    uint32_t i = command.first_binding + b;
    if (host_address(list.bindings[i]) != nullptr || !accesses(i, Access::kRead)) continue;
    qnl_status status = write(d, list.bindings[i], r->pointers[i], list.binding_bytes[i]);
    if (status != QNL_OK) return status;
  }
  return QNL_OK;
}

// Runs commands [begin, end) on the companion CPU, while the submission of those from `first` on is running
// unless they need its results.
qnl_status run_on_companion(VulkanDevice* d, VulkanRecording* r, uint32_t first, uint32_t begin, uint32_t end,
                            CommandFailure* failure) {
  const CommandList& list = *r->list;
  uint32_t after = 0;
  for (uint32_t c = begin; c < end; ++c)
    if (list.commands[c].after > after) after = list.commands[c].after;
  if (after > first)
    if (qnl_status status = finish(d, r, platform::kForever, Waiting::kWithoutLock); status != QNL_OK)
      return status;
  if (list.companion == nullptr) return QNL_CALLBACK_MISSING;
  Event event;
  const DeviceTable& table = *list.companion->table;
  Unguard unguard(&d->lock);
  qnl_status status = table.submit(list.companion, list.companion_recording, begin, end, &event, failure);
  return status == QNL_OK ? table.event_wait(list.companion, &event, platform::kForever) : status;
}

qnl_status submit_commands(VulkanDevice* d, VulkanRecording* r, uint32_t begin, uint32_t end, Event* event,
                           CommandFailure* failure) {
  if (d->faulted) return QNL_DEVICE_FAULT;
  qnl_status status = finish(d, r, platform::kForever, Waiting::kWithoutLock);
  if (status == QNL_OK) status = upload_constants(d);
  uint32_t first = begin;
  for (uint32_t c = begin; c < end && status == QNL_OK; ++c) {
    const Command& command = r->list->commands[c];
    if (is_control(command.kind)) return QNL_INVALID_ARGUMENT;
    if (!leaves_device(command.kind)) continue;
    if (first < c) status = start(d, r, first, c, failure);
    if (command.kind == QNL_ITEM_COMPANION_DISPATCH) {
      uint32_t stop = c + 1;
      while (stop < end && r->list->commands[stop].kind == QNL_ITEM_COMPANION_DISPATCH) ++stop;
      if (status == QNL_OK) status = run_on_companion(d, r, first, c, stop, failure);
      first = stop;
      c = stop - 1;
      continue;
    }
    first = c + 1;
    if (status == QNL_OK) status = finish(d, r, platform::kForever, Waiting::kWithoutLock);
    failure->command = status == QNL_OK ? c : failure->command;
    if (status == QNL_OK && is_cancelled(*r->list)) status = QNL_CANCELLED;
    if (status == QNL_OK) status = run_callback(d, r, command, &failure->code);
  }
  if (status == QNL_OK && first < end) status = start(d, r, first, end, failure);
  if (status != QNL_OK) return status;
  event->handle = r->pending ? r : nullptr;
  event->word = r->serial;
  if (!r->pending) host_memory::event_signal(event);
  return QNL_OK;
}

}  // namespace

qnl_status submit(Device* device, Recording* recording, uint32_t begin, uint32_t end, Event* event,
                  CommandFailure* failure) {
  VulkanDevice* d = vulkan(device);
  VulkanRecording* r = vulkan(recording);
  if (d->timestamp_bits != 0 || !is_timed(device, *r->list))
    return submit_commands(d, r, begin, end, event, failure);
  // A queue without a clock: one by one, by the host's.
  qnl_status status = QNL_OK;
  for (uint32_t c = begin; c < end && status == QNL_OK; ++c) {
    Event alone;
    status = submit_commands(d, r, c, c + 1, &alone, failure);
    if (status == QNL_OK) status = event_wait(device, &alone, platform::kForever);
  }
  if (status == QNL_OK) host_memory::event_signal(event);
  return status;
}

qnl_status launch(Device* device, KernelSet* kernels, uint32_t kernel, uint64_t workgroups,
                  const DeviceRange* bindings, uint32_t count, const int64_t* symbols) {
  auto* set = static_cast<VulkanKernelSet*>(kernels);
  if (kernel >= set->kernel_count) return QNL_INVALID_ARGUMENT;
  qnl_status status = need_kernel(vulkan(device), set, kernel, nullptr);
  if (status != QNL_OK) return status;
  if (count != set->kernels[kernel].binding_count ||
      (symbols == nullptr && set->kernels[kernel].symbol_count != 0))
    return QNL_INVALID_ARGUMENT;
  uint64_t bytes[kMaxBindings];
  for (uint32_t b = 0; b < count; ++b) {
    if (!inside(bindings[b], 0)) return QNL_INVALID_ARGUMENT;
    bytes[b] = bindings[b].arena->bytes - bindings[b].offset;
  }
  Command command;
  command.kind = QNL_ITEM_DISPATCH;
  command.kernel = kernel;
  command.workgroups = workgroups;
  command.binding_count = count;
  command.symbols = symbols;
  command.symbol_count = set->kernels[kernel].symbol_count;
  CommandList list;
  list.commands = &command;
  list.command_count = 1;
  list.bindings = bindings;
  list.binding_bytes = bytes;
  list.binding_count = count;
  alignas(64) char memory[sizeof(VulkanRecording)];
  Recording* recording = nullptr;
  status = record(device, list, kernels, memory, &recording, nullptr);
  if (status != QNL_OK) return status;
  Event event;
  CommandFailure failure;
  status = submit(device, recording, 0, 1, &event, &failure);
  if (status == QNL_OK) status = event_wait(device, &event, platform::kForever);
  release(device, recording);
  return status;
}

bool event_done(Device* device, const Event* event) {
  auto* r = static_cast<VulkanRecording*>(event->handle);
  if (r == nullptr) return host_memory::event_done(event);
  if (!r->pending || r->serial != event->word) return true;
  return finish(vulkan(device), r, 0, Waiting::kWithLock) != QNL_TIMEOUT;  // a fault ends it, too
}

qnl_status event_wait(Device* device, Event* event, uint64_t timeout_nanoseconds) {
  auto* r = static_cast<VulkanRecording*>(event->handle);
  if (r == nullptr) return host_memory::event_wait(event, timeout_nanoseconds);
  if (!r->pending || r->serial != event->word) return QNL_OK;
  return finish(vulkan(device), r, timeout_nanoseconds, Waiting::kWithoutLock);
}

qnl_status wait_idle(Device* device) {
  VulkanDevice* d = vulkan(device);
  while (d->in_flight != nullptr && !d->faulted)
    if (qnl_status status = finish(d, d->in_flight, platform::kForever, Waiting::kWithLock);
        status != QNL_OK && !d->faulted)
      return status;
  if (!d->faulted) return QNL_OK;
  // A device that is lost or was given up: nothing may be freed while it might still use it.
  if (d->in_flight != nullptr) (void)d->api.DeviceWaitIdle(d->device);
  while (d->in_flight != nullptr) complete(d, d->in_flight);
  return QNL_DEVICE_FAULT;
}

}  // namespace quernel::runtime::vulkan
