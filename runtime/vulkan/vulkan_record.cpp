#include "vulkan/vulkan_record.h"

#include <string.h>

#include <new>
#include <type_traits>

#include "core/trace.h"
#include "platform/platform.h"
#include "vulkan/vulkan_windows.h"

namespace quernel::runtime::vulkan {

namespace {

uint64_t align_64(uint64_t n) { return (n + 63) & ~uint64_t{63}; }

Access access_of(const CommandList& list, uint32_t binding) {
  return list.access == nullptr ? Access::kReadWrite : list.access[binding];
}

// Everything of the block, in one place: sizes when base is null.
uint64_t lay_out(VulkanRecording* r, char* base, uint64_t words) {
  const CommandList& list = *r->list;
  uint64_t at = 0;
  auto take = [&](auto** place, uint64_t count) {
    using Type = std::remove_reference_t<decltype(**place)>;
    *place = base == nullptr ? nullptr : reinterpret_cast<Type*>(base + at);
    at = align_64(at + count * sizeof(Type));
  };
  uint32_t* first_word = nullptr;
  take(&r->steps, list.command_count);
  take(&r->stretches, list.command_count);
  take(&r->timed, list.command_count);
  take(&r->command_of, list.binding_count);
  take(&r->touches, 3 * uint64_t{list.binding_count});  // commands', and mirrors' before and after
  take(&r->mirrors, list.binding_count);
  take(&r->pointers, list.binding_count);
  take(&first_word, words);
  if (base == nullptr) return at;
  for (uint32_t c = 0; c < list.command_count; ++c) {
    new (&r->steps[c]) Step;
    new (&r->stretches[c]) Stretch;
    new (&r->timed[c]) Stretch;
    const Command& command = list.commands[c];
    for (uint32_t b = 0; b < command.binding_count; ++b) r->command_of[command.first_binding + b] = c;
    if (command.kind != QNL_ITEM_DISPATCH) continue;
    r->steps[c].words = first_word;
    first_word += r->kernels->kernels[command.kernel].words();
  }
  return at;
}

// What the dispatches of a list need.
struct Needs {
  uint32_t dispatches = 0, uniforms = 0;
  uint64_t words = 0, uniform_bytes = 0;
};

uint64_t uniform_stride(const VulkanDevice* d, const VulkanKernel& kernel) {
  uint64_t unit = d->properties.limits.minUniformBufferOffsetAlignment;
  if (unit < 16) unit = 16;
  return (uint64_t{kernel.words()} * 4 + unit - 1) / unit * unit;
}

qnl_status count_needs(VulkanDevice* d, const CommandList& list, VulkanKernelSet* set, Needs* needs,
                       qnl_error* error) {
  for (uint32_t c = 0; c < list.command_count; ++c) {
    const Command& command = list.commands[c];
    if (command.kind != QNL_ITEM_DISPATCH) continue;
    if (command.kernel >= set->kernel_count)
      return fail(error, QNL_MALFORMED_IMAGE, "item {}: expected a kernel below {}, found {}", c,
                  set->kernel_count, command.kernel);
    if (qnl_status status = need_kernel(d, set, command.kernel, error); status != QNL_OK) return status;
    const VulkanKernel& kernel = set->kernels[command.kernel];
    if (command.binding_count != kernel.binding_count || command.symbol_count != kernel.symbol_count)
      return fail(error, QNL_MALFORMED_IMAGE,
                  "item {}: its kernel takes {} bindings and {} symbols, the item has {} and {}", c,
                  kernel.binding_count, kernel.symbol_count, command.binding_count, command.symbol_count);
    needs->dispatches += 1;
    needs->words += kernel.words();
    if (kernel.uses_push()) continue;
    needs->uniforms += 1;
    needs->uniform_bytes += uniform_stride(d, kernel);
  }
  return QNL_OK;
}

qnl_status allocate_sets(VulkanDevice* d, VulkanRecording* r, const Needs& needs) {
  if (needs.dispatches == 0) return QNL_OK;
  VkDescriptorPoolSize sizes[2] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, needs.dispatches * kWindows},
                                   {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, needs.uniforms}};
  VkDescriptorPoolCreateInfo pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.maxSets = needs.dispatches;
  pool.poolSizeCount = needs.uniforms == 0 ? 1 : 2;
  pool.pPoolSizes = sizes;
  qnl_status status = check(d, d->api.CreateDescriptorPool(d->device, &pool, nullptr, &r->descriptors));
  if (status == QNL_OK && needs.uniform_bytes != 0)
    status = create_buffer(d, needs.uniform_bytes, Memory::kStaging, &r->uniforms);
  uint64_t next_uniform = 0;
  for (uint32_t c = 0; c < r->list->command_count && status == QNL_OK; ++c) {
    const Command& command = r->list->commands[c];
    if (command.kind != QNL_ITEM_DISPATCH) continue;
    const VulkanKernel& kernel = r->kernels->kernels[command.kernel];
    bool uniform = !kernel.uses_push();
    VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                        r->descriptors, 1, &d->set_layouts[uniform ? 1 : 0]};
    status = check(d, d->api.AllocateDescriptorSets(d->device, &info, &r->steps[c].set));
    if (!uniform || status != QNL_OK) continue;
    r->steps[c].uniform_offset = next_uniform;
    VkDescriptorBufferInfo buffer = {r->uniforms.buffer, next_uniform, uniform_stride(d, kernel)};
    VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = r->steps[c].set;
    write.dstBinding = 1;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    write.pBufferInfo = &buffer;
    d->api.UpdateDescriptorSets(d->device, 1, &write, 0, nullptr);
    next_uniform += uniform_stride(d, kernel);
  }
  return status;
}

qnl_status create_objects(VulkanDevice* d, VulkanRecording* r, const Needs& needs) {
  VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                  VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, d->queues[0].family};
  VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkResult result = d->api.CreateCommandPool(d->device, &pool, nullptr, &r->pool);
  if (result == VK_SUCCESS) result = d->api.CreateFence(d->device, &fence, nullptr, &r->fence);
  if (result != VK_SUCCESS) return check(d, result);
  return allocate_sets(d, r, needs);
}

void write_descriptors(VulkanDevice* d, const qnl_session* session, Step* step) {
  VkDescriptorBufferInfo buffers[kWindows];
  for (uint32_t w = 0; w < kWindows; ++w) {
    const Window& window = step->windows[w];
    buffers[w] = {window.buffer, window.offset, window.bytes};
    if (window.buffer == VK_NULL_HANDLE) buffers[w] = {d->empty.buffer, 0, VK_WHOLE_SIZE};
  }
  VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = step->set;
  write.descriptorCount = kWindows;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers;
  TraceScope scope(d, QNL_TRACE_DESCRIPTORS, session);
  d->api.UpdateDescriptorSets(d->device, 1, &write, 0, nullptr);
  d->counts.descriptor_updates += 1;
  step->destroyed = d->buffers_destroyed;
}

bool same(const Window* a, const Window* b) {
  for (uint32_t w = 0; w < kWindows; ++w)
    if (a[w].buffer != b[w].buffer || a[w].offset != b[w].offset || a[w].bytes != b[w].bytes) return false;
  return true;
}

// After bindings of a dispatch have moved.
qnl_status place(VulkanDevice* d, VulkanRecording* r, uint32_t c, qnl_error* error) {
  const Command& command = r->list->commands[c];
  Step& step = r->steps[c];
  Placement p;
  qnl_status status = find_placement(d, r, c, &p, error);
  if (status == QNL_OK) status = find_pipeline(d, r->kernels, command.kernel, p.map, &step.pipeline, error);
  if (status != QNL_OK) return status;
  // A new buffer may have the handle of one that was destroyed: the set still names that one.
  if (!same(p.windows, step.windows) || step.changed_at == 0 || step.destroyed != d->buffers_destroyed) {
    memcpy(step.windows, p.windows, sizeof p.windows);
    write_descriptors(d, r->list->session, &step);
  }
  for (uint32_t b = 0; b < command.binding_count; ++b)
    step.words[1 + b] = static_cast<uint32_t>(p.bindings[b].offset - p.windows[p.map.get(b)].offset);
  return QNL_OK;
}

// Symbols change without notice; true when they have.
bool refresh_symbols(const VulkanKernel& kernel, const Command& command, uint32_t* words) {
  bool changed = false;
  uint32_t* at = words + 1 + kernel.binding_count;
  for (uint32_t s = 0; s < kernel.symbol_count; ++s, at += 2) {
    auto value = static_cast<uint64_t>(command.symbols[s]);
    uint32_t low = static_cast<uint32_t>(value), high = static_cast<uint32_t>(value >> 32);
    changed = changed || at[0] != low || at[1] != high;
    at[0] = low;
    at[1] = high;
  }
  return changed;
}

// The strided copy as one without loops that could be part of its runs.
Command simplified(const Command& command) {
  Command copy = command;
  while (copy.copy_loop_count > 0) {
    const CopyLoop& inner = copy.copy_loops[copy.copy_loop_count - 1];
    if (inner.count != 1 &&
        (inner.source_stride != copy.copy_bytes || inner.target_stride != copy.copy_bytes))
      break;
    copy.copy_bytes *= inner.count;
    copy.copy_loop_count -= 1;
  }
  return copy;
}

// Copies within one arena may not overlap, unless they change nothing.
enum class CopyKind { kNothing, kCopy, kOverlapping };
CopyKind copy_kind(const VulkanRecording* r, const Command& command) {
  const DeviceRange& source = r->list->bindings[command.first_binding];
  const DeviceRange& target = r->list->bindings[command.first_binding + 1];
  if (command.copy_bytes == 0) return CopyKind::kNothing;
  for (uint32_t l = 0; l < command.copy_loop_count; ++l)
    if (command.copy_loops[l].count == 0) return CopyKind::kNothing;
  if (arena_of(source) != arena_of(target)) return CopyKind::kCopy;
  uint64_t source_end = command.copy_bytes, target_end = command.copy_bytes;
  bool same = source.offset == target.offset;
  for (uint32_t l = 0; l < command.copy_loop_count; ++l) {
    const CopyLoop& loop = command.copy_loops[l];
    source_end += (loop.count - 1) * loop.source_stride;
    target_end += (loop.count - 1) * loop.target_stride;
    same = same && loop.source_stride == loop.target_stride;
  }
  if (same) return CopyKind::kNothing;
  bool apart = source.offset + source_end <= target.offset || target.offset + target_end <= source.offset;
  return apart ? CopyKind::kCopy : CopyKind::kOverlapping;
}

qnl_status refresh_copy(VulkanRecording* r, uint32_t c, qnl_error* error) {
  const Command& command = r->list->commands[c];
  Step& step = r->steps[c];
  if (!step.moved && step.copy_bytes == command.copy_bytes) return QNL_OK;
  for (uint32_t b = 0; b < 2; ++b)
    if (!inside(r->list->bindings[command.first_binding + b], 0))
      return fail(error, QNL_INVALID_ARGUMENT, "item {}: binding {} lies outside its arena", c, b);
  if (copy_kind(r, command) == CopyKind::kOverlapping)
    return fail(error, QNL_INVALID_ARGUMENT,
                "item {}: expected a copy between ranges that do not overlap, this device cannot do others",
                c);
  step.copy_bytes = command.copy_bytes;
  step.moved = false;
  step.changed_at = ++r->changes;
  return QNL_OK;
}

// ---- into command buffers

class Writer {
 public:
  Writer(VulkanDevice* d, VulkanRecording* r, VkCommandBuffer buffer, bool with_times)
      : d_(d), r_(r), buffer_(buffer), with_times_(with_times) {
    r->touch_count = 0;
  }

  void barrier(VkPipelineStageFlags before, VkAccessFlags written, VkPipelineStageFlags after,
               VkAccessFlags used) {
    VkMemoryBarrier memory = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, written, used};
    d_->api.CmdPipelineBarrier(buffer_, before, after, 0, 1, &memory, 0, nullptr, 0, nullptr);
  }

  // Waits for what has been recorded since the last one.
  void synchronize() {
    if (r_->touch_count == 0) return;
    barrier(kStages, kWrites, kStages, kWrites | kReads);
    d_->counts.barriers += 1;
    r_->touch_count = 0;
  }

  // Where commands are timed, everything recorded so far is complete at this point.
  void time() {
    if (!with_times_) return;
    synchronize();
    record_time(d_, r_, buffer_);
  }

  // Before the command that touches this range is recorded; all of a command's come before its `touch`.
  void wait_for(const Touch& next) {
    for (uint32_t t = 0; t < r_->touch_count; ++t) {
      const Touch& touch = r_->touches[t];
      if (touch.arena == next.arena && touch.begin < next.end && next.begin < touch.end &&
          (touch.write || next.write))
        return synchronize();
    }
  }
  void touch(const Touch& touch) { r_->touches[r_->touch_count++] = touch; }

  void order(const Command& command) {
    for (uint32_t pass = 0; pass < 2; ++pass)
      for (uint32_t b = 0; b < command.binding_count; ++b) {
        uint32_t index = command.first_binding + b;
        const DeviceRange& range = r_->list->bindings[index];
        Arena* arena = arena_of(range);
        if (arena == nullptr) continue;
        Touch next = {arena, range.offset, range.offset + r_->list->binding_bytes[index],
                      access_of(*r_->list, index) != Access::kRead};
        pass == 0 ? wait_for(next) : touch(next);
      }
  }

  void mirror(bool to_device) {
    for (uint32_t pass = 0; pass < 2; ++pass)
      for (uint32_t m = 0; m < r_->mirror_count; ++m) {
        Touch touched = r_->mirrors[m];
        const Arena* arena = touched.arena;
        if (arena->staging.buffer == VK_NULL_HANDLE) continue;
        if (!(to_device ? touched.read : touched.write)) continue;
        touched.write = to_device;
        if (pass == 0) {
          wait_for(touched);
          continue;
        }
        touch(touched);
        VkBufferCopy region = {touched.begin, touched.begin, touched.end - touched.begin};
        d_->api.CmdCopyBuffer(buffer_, to_device ? arena->staging.buffer : arena->local.buffer,
                              to_device ? arena->local.buffer : arena->staging.buffer, 1, &region);
      }
  }

  void dispatch(uint32_t c) {
    const Command& command = r_->list->commands[c];
    const Step& step = r_->steps[c];
    const VulkanKernel& kernel = r_->kernels->kernels[command.kernel];
    if (command.workgroups == 0) return;
    order(command);
    if (pipeline_ != step.pipeline)
      d_->api.CmdBindPipeline(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, step.pipeline);
    pipeline_ = step.pipeline;
    bool push = kernel.uses_push();
    VkPipelineLayout layout = d_->pipeline_layouts[push ? 0 : 1];
    d_->api.CmdBindDescriptorSets(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &step.set, 0,
                                  nullptr);
    if (push)
      d_->api.CmdPushConstants(buffer_, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel.words() * 4,
                               step.words);
    uint64_t max_x = d_->properties.limits.maxComputeWorkGroupCount[0];
    uint64_t x = command.workgroups < max_x ? command.workgroups : max_x;
    uint64_t y = (command.workgroups + x - 1) / x;
    d_->api.CmdDispatch(buffer_, static_cast<uint32_t>(x), static_cast<uint32_t>(y), 1);
  }

  void copy(const Command& original) {
    if (copy_kind(r_, original) != CopyKind::kCopy) return;
    order(original);
    Command command = simplified(original);
    const DeviceRange& source = r_->list->bindings[command.first_binding];
    const DeviceRange& target = r_->list->bindings[command.first_binding + 1];
    uint64_t from = arena_of(source)->offset + source.offset, to = arena_of(target)->offset + target.offset;
    uint64_t index[kMaxCopyLoops] = {};
    VkBufferCopy regions[kRegions];
    uint32_t count = 0;
    auto flush = [&] {
      if (count > 0)
        d_->api.CmdCopyBuffer(buffer_, arena_of(source)->local.buffer, arena_of(target)->local.buffer, count,
                              regions);
      count = 0;
    };
    for (;;) {
      if (count == kRegions) flush();
      regions[count++] = {from, to, command.copy_bytes};
      uint32_t l = command.copy_loop_count;
      for (;;) {
        if (l == 0) return flush();
        const CopyLoop& loop = command.copy_loops[--l];
        from += loop.source_stride;
        to += loop.target_stride;
        if (++index[l] < loop.count) break;
        from -= loop.source_stride * loop.count;
        to -= loop.target_stride * loop.count;
        index[l] = 0;
      }
    }
  }

  static constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  static constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  static constexpr VkAccessFlags kReads =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT;

 private:
  static constexpr uint32_t kRegions = 128;
  VulkanDevice* d_;
  VulkanRecording* r_;
  VkCommandBuffer buffer_;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  bool with_times_;
};

}  // namespace

qnl_status refresh(VulkanDevice* d, VulkanRecording* r, uint32_t c, qnl_error* error) {
  const Command& command = r->list->commands[c];
  Step& step = r->steps[c];
  if (command.kind == QNL_ITEM_COPY) return refresh_copy(r, c, error);
  if (command.kind != QNL_ITEM_DISPATCH) return QNL_OK;
  const VkPhysicalDeviceLimits& limits = d->properties.limits;
  uint64_t most = uint64_t{limits.maxComputeWorkGroupCount[0]} * limits.maxComputeWorkGroupCount[1];
  if (most > ~uint32_t{0}) most = ~uint32_t{0};
  if (command.workgroups > most)
    return fail(error, QNL_INVALID_ARGUMENT, "item {}: expected at most {} workgroups, found {}", c, most,
                command.workgroups);
  const VulkanKernel& kernel = r->kernels->kernels[command.kernel];
  if (kernel.counts_iterations && command.workgroups != 0) {
    auto iterations = static_cast<uint64_t>(command.symbols[kernel.symbol_count - 1]);
    if (iterations > d->most_iterations)
      return fail(
          error, QNL_SYMBOL_OUT_OF_RANGE,
          "item {}: its loops run {} times for these sizes, and the driver of '{}' ends loops after {} "
          "without an error; run it on the CPU, or compile it for known sizes (--dim)",
          c, iterations, d->properties.deviceName, d->most_iterations);
  }
  auto workgroups = static_cast<uint32_t>(command.workgroups);
  bool changed = step.words[0] != workgroups;
  step.words[0] = workgroups;
  if (step.moved) {
    if (qnl_status status = place(d, r, c, error); status != QNL_OK) return status;
    step.moved = false;
    changed = true;
  }
  if (changed) step.changed_at = ++r->changes;
  // No submission is on its way: what the uniform buffer holds needs no recording.
  changed = refresh_symbols(kernel, command, step.words) || changed;
  if (changed && !kernel.uses_push())
    memcpy(r->uniforms.mapped + step.uniform_offset, step.words, kernel.words() * 4);
  return QNL_OK;
}

// With the ranges that it overlaps it becomes one.
static void add_mirror(VulkanRecording* r, Touch touch) {
  for (uint32_t m = 0; m < r->mirror_count;) {
    const Touch& other = r->mirrors[m];
    if (other.arena != touch.arena || other.begin >= touch.end || touch.begin >= other.end) {
      ++m;
      continue;
    }
    // What has been written in this submission need not be there before it.
    bool within = other.begin <= touch.begin && touch.end <= other.end;
    touch.read = other.read || (touch.read && !within);
    if (other.begin < touch.begin) touch.begin = other.begin;
    if (other.end > touch.end) touch.end = other.end;
    touch.write = touch.write || other.write;
    r->mirrors[m] = r->mirrors[--r->mirror_count];
    m = 0;
  }
  r->mirrors[r->mirror_count++] = touch;
}

void collect_mirrors(VulkanRecording* r, uint32_t begin, uint32_t end) {
  r->mirror_count = 0;
  for (uint32_t c = begin; c < end; ++c) {
    const Command& command = r->list->commands[c];
    if (command.kind != QNL_ITEM_DISPATCH && command.kind != QNL_ITEM_COPY) continue;
    // What it reads comes before what it writes, perhaps at the same place.
    for (uint32_t pass = 0; pass < 2; ++pass)
      for (uint32_t i = command.first_binding; i < command.first_binding + command.binding_count; ++i) {
        Access access = access_of(*r->list, i);
        bool read = access != Access::kWrite;
        if (read != (pass == 0)) continue;
        const DeviceRange& range = r->list->bindings[i];
        uint64_t bytes = r->list->binding_bytes[i];
        Arena* arena = arena_of(range);
        if (arena == nullptr || bytes == 0 || !arena->mirrored()) continue;
        add_mirror(r, {arena, range.offset, range.offset + bytes, access != Access::kRead, read});
      }
  }
}

qnl_status record_stretch(VulkanDevice* d, VulkanRecording* r, uint32_t begin, uint32_t end, Stretch* stretch,
                          bool with_times) {
  TraceScope scope(d, QNL_TRACE_RECORD, r->list->session);
  if (stretch->buffer == VK_NULL_HANDLE) {
    VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, r->pool,
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    qnl_status status = check(d, d->api.AllocateCommandBuffers(d->device, &info, &stretch->buffer));
    if (status != QNL_OK) return status;
  }
  stretch->recorded_at = 0;
  VkCommandBufferBeginInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  qnl_status status = check(d, d->api.BeginCommandBuffer(stretch->buffer, &info));
  if (status != QNL_OK) return status;
  d->counts.recordings += 1;
  Writer writer(d, r, stretch->buffer, with_times);
  // After earlier submissions and before the host looks at results; within, only where commands conflict.
  writer.barrier(Writer::kStages | VK_PIPELINE_STAGE_HOST_BIT, Writer::kWrites | VK_ACCESS_HOST_WRITE_BIT,
                 Writer::kStages, Writer::kReads | Writer::kWrites);
  if (with_times) begin_times(d, r, end - begin, stretch->buffer);
  writer.time();
  writer.mirror(true);
  writer.time();
  for (uint32_t c = begin; c < end; ++c) {
    const Command& command = r->list->commands[c];
    if (command.kind == QNL_ITEM_DISPATCH) writer.dispatch(c);
    if (command.kind == QNL_ITEM_COPY) writer.copy(command);
    if (command.kind == QNL_ITEM_SYNCHRONIZE) writer.synchronize();
    writer.time();
  }
  writer.mirror(false);
  writer.time();
  writer.barrier(Writer::kStages, Writer::kWrites, VK_PIPELINE_STAGE_HOST_BIT,
                 VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  status = check(d, d->api.EndCommandBuffer(stretch->buffer));
  if (status != QNL_OK) return status;
  stretch->end = end;
  stretch->recorded_at = r->changes;
  return QNL_OK;
}

uint64_t record_bytes(const Device*, const CommandList&) { return sizeof(VulkanRecording); }

qnl_status record(Device* device, const CommandList& list, KernelSet* kernels, void* memory,
                  Recording** recording, qnl_error* error) {
  VulkanDevice* d = vulkan(device);
  auto* set = static_cast<VulkanKernelSet*>(kernels);
  Needs needs;
  if (qnl_status status = count_needs(d, list, set, &needs, error); status != QNL_OK) return status;
  auto* r = new (memory) VulkanRecording;
  r->list = &list;
  r->kernels = set;
  r->block_bytes = lay_out(r, nullptr, needs.words);
  qnl_status status = QNL_OK;
  if (r->block_bytes > 0) {
    r->block = static_cast<char*>(platform::allocate_pages(r->block_bytes));
    if (r->block == nullptr) status = QNL_OUT_OF_MEMORY;
  }
  if (status == QNL_OK && r->block != nullptr) lay_out(r, r->block, needs.words);
  if (status == QNL_OK) status = create_objects(d, r, needs);
  if (status != QNL_OK) {
    release(device, r);
    return fail(error, status, "session: its commands cannot be recorded, {}", qnl_status_text(status));
  }
  *recording = r;
  return QNL_OK;
}

void rebind(Device*, Recording* recording, uint32_t index) {
  VulkanRecording* r = vulkan(recording);
  r->steps[r->command_of[index]].moved = true;
}

qnl_status prepare(Device* device, Recording* recording, qnl_error* error) {
  VulkanDevice* d = vulkan(device);
  VulkanRecording* r = vulkan(recording);
  if (r->pending)
    if (qnl_status status = wait_idle(device); status != QNL_OK) return status;
  auto is_bound = [&](const Command& command) {
    for (uint32_t b = 0; b < command.binding_count; ++b)
      if (r->list->bindings[command.first_binding + b].arena == nullptr) return false;
    return true;  // else the caller has not bound an input or output yet
  };
  // Pipelines come first, all of them at once.
  for (uint32_t c = 0; c < r->list->command_count; ++c) {
    const Command& command = r->list->commands[c];
    if (command.kind != QNL_ITEM_DISPATCH || !r->steps[c].moved || !is_bound(command)) continue;
    Placement p;
    qnl_status status = find_placement(d, r, c, &p, error);
    if (status == QNL_OK) status = want_pipeline(r->kernels, command.kernel, p.map, error);
    if (status != QNL_OK) return status;
  }
  if (qnl_status status = make_pipelines(d, r->kernels, error); status != QNL_OK) return status;
  for (uint32_t c = 0; c < r->list->command_count; ++c) {
    if (!is_bound(r->list->commands[c])) continue;
    if (qnl_status status = refresh(d, r, c, error); status != QNL_OK) return status;
  }
  return QNL_OK;
}

void release(Device* device, Recording* recording) {
  VulkanDevice* d = vulkan(device);
  VulkanRecording* r = vulkan(recording);
  if (r->pending) (void)!wait_idle(device);
  d->api.DestroyFence(d->device, r->fence, nullptr);
  d->api.DestroyQueryPool(d->device, r->queries, nullptr);
  d->api.DestroyCommandPool(d->device, r->pool, nullptr);
  d->api.DestroyDescriptorPool(d->device, r->descriptors, nullptr);
  destroy_buffer(d, &r->uniforms);
  if (r->callback_memory != nullptr) platform::free_pages(r->callback_memory, r->callback_bytes);
  if (r->block != nullptr) platform::free_pages(r->block, r->block_bytes);
  r->~VulkanRecording();
}

}  // namespace quernel::runtime::vulkan
