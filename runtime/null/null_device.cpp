// The null device: the smallest complete device, to be copied when adding one. It accepts the variants of any
// architecture, keeps real arenas, checks every range it is given, counts what it is asked to launch, and
// computes nothing: outputs keep their zeros.
#include <new>

#include "core/trace.h"
#include "null/null_device.h"
#include "platform/platform.h"

namespace quernel::runtime {

namespace {

// A device keeps here what it made of the code: pipelines, addresses… The null device keeps the count.
struct NullKernelSet : KernelSet {
  uint32_t kernel_count = 0;
};

// A device keeps here its command buffer. The null device keeps what it needs to check.
struct NullRecording : Recording {
  const CommandList* list = nullptr;
  const NullKernelSet* kernels = nullptr;
};

struct NullDevice : qnl_device {
  mutable Lock lock;  // for what follows
  uint64_t memory_used = 0;
  null::Counts counts;
  bool faulted = false;
};

NullDevice* self_of(Device* device) { return static_cast<NullDevice*>(static_cast<qnl_device*>(device)); }
const NullDevice* self_of(const Device* device) {
  return static_cast<const NullDevice*>(static_cast<const qnl_device*>(device));
}

void properties(const Device*, DeviceProperties* p) {
  *p = {};
  p->name = "null";
}

uint64_t memory_used(const Device* device) {
  Guard guard(&self_of(device)->lock);
  return self_of(device)->memory_used;
}

void close_device(Device* device) {
  self_of(device)->~NullDevice();
  platform::free_pages(self_of(device), sizeof(NullDevice));
}

qnl_status allocate_arena(Device* device, uint64_t bytes, bool, DeviceArena* arena) {
  qnl_status status = host_memory::allocate(bytes, arena);
  Guard guard(&self_of(device)->lock);
  if (status == QNL_OK) self_of(device)->memory_used += bytes;
  return status;
}

qnl_status wrap_arena(Device*, const void* memory, uint64_t bytes, bool read_only, DeviceArena* arena) {
  host_memory::wrap(memory, bytes, read_only, arena);
  return QNL_OK;
}

void free_arena(Device* device, DeviceArena* arena) {
  Guard guard(&self_of(device)->lock);
  self_of(device)->memory_used -= host_memory::free(arena);
}

qnl_status fill(Device* device, const DeviceRange& target, uint64_t bytes, uint8_t value) {
  TraceScope scope(device, QNL_TRACE_COPY, nullptr, bytes);
  return host_memory::fill(target, bytes, value);
}
qnl_status write(Device* device, const DeviceRange& target, const void* source, uint64_t bytes) {
  TraceScope scope(device, QNL_TRACE_UPLOAD, nullptr, bytes);
  return host_memory::write(target, source, bytes);
}
qnl_status read(Device* device, const DeviceRange& source, void* target, uint64_t bytes) {
  TraceScope scope(device, QNL_TRACE_DOWNLOAD, nullptr, bytes);
  return host_memory::read(source, target, bytes);
}
qnl_status copy(Device* device, const DeviceRange& source, const DeviceRange& target, uint64_t bytes) {
  TraceScope scope(device, QNL_TRACE_COPY, nullptr, bytes);
  return host_memory::copy(source, target, bytes);
}

qnl_status load_kernels(Device*, const KernelCode& code, KernelSet** kernels, qnl_error* error) {
  void* memory = platform::allocate_pages(sizeof(NullKernelSet));
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "kernels: no memory for their description");
  auto* set = new (memory) NullKernelSet;
  set->kernel_count = code.kernel_count;
  *kernels = set;
  return QNL_OK;
}

void unload_kernels(Device*, KernelSet* kernels) { platform::free_pages(kernels, sizeof(NullKernelSet)); }

// What a launch must satisfy: a kernel that exists and bindings inside their arenas.
bool valid_launch(const NullKernelSet& kernels, uint32_t kernel, const DeviceRange* bindings,
                  const uint64_t* bytes, uint32_t count) {
  if (kernel >= kernels.kernel_count) return false;
  for (uint32_t b = 0; b < count; ++b)
    if (!inside(bindings[b], bytes == nullptr ? 0 : bytes[b])) return false;
  return true;
}

qnl_status launch(Device* device, KernelSet* kernels, uint32_t kernel, uint64_t workgroups,
                  const DeviceRange* bindings, uint32_t count, const int64_t*) {
  Guard guard(&self_of(device)->lock);
  if (self_of(device)->faulted) return QNL_DEVICE_FAULT;
  if (!valid_launch(*static_cast<NullKernelSet*>(kernels), kernel, bindings, nullptr, count))
    return QNL_INVALID_ARGUMENT;
  self_of(device)->counts.launches += 1;
  self_of(device)->counts.workgroups += workgroups;
  return QNL_OK;
}

uint64_t record_bytes(const Device*, const CommandList&) { return sizeof(NullRecording); }

qnl_status record(Device*, const CommandList& list, KernelSet* kernels, void* memory, Recording** recording,
                  qnl_error*) {
  auto* r = new (memory) NullRecording;
  r->list = &list;
  r->kernels = static_cast<NullKernelSet*>(kernels);
  *recording = r;
  return QNL_OK;
}

void rebind(Device*, Recording*, uint32_t) {}
qnl_status prepare(Device*, Recording*, qnl_error*) { return QNL_OK; }
void release(Device*, Recording*) {}

qnl_status submit(Device* device, Recording* recording, uint32_t begin, uint32_t end, Event* event,
                  CommandFailure* failure) {
  const auto* r = static_cast<NullRecording*>(recording);
  NullDevice* self = self_of(device);
  Guard guard(&self->lock);
  if (self->faulted) return QNL_DEVICE_FAULT;
  TraceScope scope(device, QNL_TRACE_SUBMIT, r->list->session);
  for (uint32_t c = begin; c < end; ++c) {
    const Command& command = r->list->commands[c];
    failure->command = c;
    if (is_cancelled(*r->list)) return QNL_CANCELLED;
    if (command.kind == QNL_ITEM_DISPATCH) {
      if (!valid_launch(*r->kernels, command.kernel, r->list->bindings + command.first_binding,
                        r->list->binding_bytes + command.first_binding, command.binding_count))
        return QNL_INVALID_ARGUMENT;
      self->counts.launches += 1;
      self->counts.workgroups += command.workgroups;
    } else if (command.kind == QNL_ITEM_COPY) {
      self->counts.copies += 1;
    } else if (command.kind == QNL_ITEM_HOST_CALLBACK && command.callback.function == nullptr) {
      return QNL_CALLBACK_MISSING;
    } else if (is_control(command.kind)) {
      return QNL_INVALID_ARGUMENT;
    }
    if (is_timed(device, *r->list)) {
      uint64_t now = platform::now_nanoseconds();
      report_command(device, *r->list, c, true, now, now);
    }
  }
  self->counts.submissions += 1;
  host_memory::event_signal(event);
  return QNL_OK;
}

void event_signal(Device*, Event* event) { host_memory::event_signal(event); }
bool event_done(Device*, const Event* event) { return host_memory::event_done(event); }
qnl_status event_wait(Device*, Event* event, uint64_t timeout) {
  return host_memory::event_wait(event, timeout);
}
qnl_status wait_idle(Device* device) {
  Guard guard(&self_of(device)->lock);
  return self_of(device)->faulted ? QNL_DEVICE_FAULT : QNL_OK;
}

constexpr DeviceTable kNullTable = {
    properties, memory_used, close_device, allocate_arena, wrap_arena, free_arena,   fill,      write,
    read,       copy,        load_kernels, unload_kernels, launch,     record_bytes, record,    rebind,
    prepare,    release,     submit,       event_signal,   event_done, event_wait,   wait_idle,
};

}  // namespace

namespace null {
Counts counts(const qnl_device* device) {
  Guard guard(&self_of(device)->lock);
  return self_of(device)->counts;
}
void inject_fault(qnl_device* device) {
  Guard guard(&self_of(device)->lock);
  self_of(device)->faulted = true;
}
}  // namespace null

}  // namespace quernel::runtime

extern "C" qnl_status qnl_device_open_null(qnl_device** device, qnl_error* error) {
  using namespace quernel::runtime;
  if (device == nullptr) return fail(error, QNL_INVALID_ARGUMENT, "device: expected a place for the result");
  void* memory = quernel::platform::allocate_pages(sizeof(NullDevice));
  *device = nullptr;
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "device: no memory for it");
  auto* self = new (memory) NullDevice;
  self->table = &kNullTable;
  *device = self;
  return QNL_OK;
}
