// The CPU device: arenas are this process's memory, kernels come from code images, dispatches run on the
// calling thread or are shared with a thread pool.
#include <string.h>

#include <new>

#include "core/trace.h"
#include "cpu/cpu_features.h"
#include "cpu/image.h"
#include "cpu/sharing_choice.h"
#include "cpu/thread_pool.h"
#include "platform/platform.h"

namespace quernel::runtime {

namespace {

struct CpuKernelSet : KernelSet {
  Image image;
  uint32_t kernel_count = 0;
};

// Lives in the memory that record was given: this, then one pointer per binding, then scratch of all threads.
struct CpuRecording : Recording {
  const CommandList* list = nullptr;
  CpuKernelSet* kernels = nullptr;
  void** bindings = nullptr;
  char* scratch = nullptr;
  uint64_t scratch_stride = 0;
  SharingChoice sharing;
};

constexpr uint64_t kFlopsPerNanosecond = 32,
                   kBytesPerNanosecond = 8;  // of one thread, deliberately optimistic

uint32_t now() { return static_cast<uint32_t>(platform::now_nanoseconds() / SharingChoice::kTimeUnit); }

struct CpuDevice : qnl_device {
  ThreadPool pool;
  uint64_t features = 0;
  size_t memory_used = 0;  // atomic
};

CpuDevice* cpu(Device* device) { return static_cast<CpuDevice*>(static_cast<qnl_device*>(device)); }
const CpuDevice* cpu(const Device* device) {
  return static_cast<const CpuDevice*>(static_cast<const qnl_device*>(device));
}

void count_memory(Device* device, uint64_t bytes) {
  __atomic_fetch_add(&cpu(device)->memory_used, static_cast<size_t>(bytes), __ATOMIC_RELAXED);
}

CpuKernelSet* cpu(KernelSet* kernels) { return static_cast<CpuKernelSet*>(kernels); }
CpuRecording* cpu(Recording* recording) { return static_cast<CpuRecording*>(recording); }

uint64_t round_up(uint64_t n) { return (n + 63) & ~uint64_t{63}; }

void properties(const Device* device, DeviceProperties* p) {
  *p = {};
  p->name = "cpu";
  p->arch = host_arch();
  p->features = cpu(device)->features;
  p->threads = cpu(device)->pool.threads();
}

uint64_t memory_used(const Device* device) {
  return __atomic_load_n(&cpu(device)->memory_used, __ATOMIC_RELAXED);
}

void close_device(Device* device) {
  CpuDevice* self = cpu(device);
  self->pool.stop();
  self->~CpuDevice();
  platform::free_pages(self, sizeof(CpuDevice));
}

qnl_status allocate_arena(Device* device, uint64_t bytes, bool, DeviceArena* arena) {
  qnl_status status = host_memory::allocate(bytes, arena);
  if (status == QNL_OK) count_memory(device, bytes);
  return status;
}

qnl_status wrap_arena(Device*, const void* memory, uint64_t bytes, bool read_only, DeviceArena* arena) {
  host_memory::wrap(memory, bytes, read_only, arena);
  return QNL_OK;
}

void free_arena(Device* device, DeviceArena* arena) { count_memory(device, 0 - host_memory::free(arena)); }

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

qnl_status load_kernels(Device* device, const KernelCode& code, KernelSet** kernels, qnl_error* error) {
  void* memory = platform::allocate_pages(sizeof(CpuKernelSet));
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "code image: no memory for its description");
  auto* set = new (memory) CpuKernelSet;
  set->kernel_count = code.kernel_count;
  qnl_status status = set->image.load(code.data, code.bytes, host_arch(), code.kernel_count, error);
  if (status != QNL_OK) {
    platform::free_pages(memory, sizeof(CpuKernelSet));
    return status;
  }
  count_memory(device, set->image.page_bytes());
  *kernels = set;
  return QNL_OK;
}

void unload_kernels(Device* device, KernelSet* kernels) {
  if (kernels == nullptr) return;
  count_memory(device, 0 - cpu(kernels)->image.page_bytes());
  cpu(kernels)->image.unload();
  platform::free_pages(kernels, sizeof(CpuKernelSet));
}

qnl_status launch(Device* device, KernelSet* kernels, uint32_t kernel, uint64_t workgroups,
                  const DeviceRange* bindings, uint32_t count, const int64_t* symbols) {
  constexpr uint32_t kMaxBindings = 64;
  void* pointers[kMaxBindings];
  if (count > kMaxBindings || kernel >= cpu(kernels)->kernel_count) return QNL_INVALID_ARGUMENT;
  for (uint32_t b = 0; b < count; ++b) {
    if (!inside(bindings[b], 0)) return QNL_INVALID_ARGUMENT;
    pointers[b] = host_address(bindings[b]);
  }
  Dispatch dispatch;
  dispatch.kernel = cpu(kernels)->image.kernel(kernel);
  dispatch.bindings = pointers;
  dispatch.symbols = symbols;
  dispatch.workgroups = workgroups;
  return cpu(device)->pool.run(dispatch) == QNL_KERNEL_OK ? QNL_OK : QNL_KERNEL_FAILED;
}

uint64_t record_bytes(const Device* device, const CommandList& list) {
  return round_up(sizeof(CpuRecording)) + round_up(uint64_t{list.binding_count} * sizeof(void*)) +
         round_up(list.max_scratch_bytes) * cpu(device)->pool.threads();
}

void rebind(Device*, Recording* recording, uint32_t index) {
  cpu(recording)->bindings[index] = host_address(cpu(recording)->list->bindings[index]);
}

qnl_status record(Device* device, const CommandList& list, KernelSet* kernels, void* memory,
                  Recording** recording, qnl_error*) {
  char* at = static_cast<char*>(memory);
  auto* r = new (at) CpuRecording;
  r->list = &list;
  r->kernels = cpu(kernels);
  at += round_up(sizeof(CpuRecording));
  r->bindings = reinterpret_cast<void**>(at);
  at += round_up(uint64_t{list.binding_count} * sizeof(void*));
  r->scratch_stride = round_up(list.max_scratch_bytes);
  r->scratch = r->scratch_stride == 0 ? nullptr : at;
  for (uint32_t b = 0; b < list.binding_count; ++b) rebind(device, r, b);
  *recording = r;
  return QNL_OK;
}

qnl_status prepare(Device*, Recording*, qnl_error*) { return QNL_OK; }
void release(Device*, Recording*) {}

// Nanoseconds of one thread. Commands whose analysis is empty are taken to be large.
uint32_t estimate(const Command& command) {
  uint64_t time = command.flops / kFlopsPerNanosecond +
                  (command.bytes_read + command.bytes_written) / kBytesPerNanosecond;
  return time - 1 >= ~uint32_t{0} ? ~uint32_t{0} : static_cast<uint32_t>(time);
}

qnl_status run_dispatch(CpuDevice* self, CpuRecording& r, const Command& command, int32_t* code) {
  Dispatch dispatch;
  dispatch.kernel = r.kernels->image.kernel(command.kernel);
  dispatch.bindings = r.bindings + command.first_binding;
  dispatch.symbols = command.symbols;
  dispatch.scratch = command.scratch_bytes == 0 ? nullptr : r.scratch;
  dispatch.scratch_stride = r.scratch_stride;
  dispatch.workgroups = command.workgroups;
  bool shared = self->pool.threads() > 1 && command.workgroups > 1 && r.sharing.shares(estimate(command));
  *code = shared ? self->pool.run(dispatch) : run_range(dispatch, 0, 0, command.workgroups);
  return *code == QNL_KERNEL_OK ? QNL_OK : QNL_KERNEL_FAILED;
}

qnl_status run_callback(const CpuRecording& r, const Command& command, int32_t* code) {
  if (command.callback.function == nullptr) return QNL_CALLBACK_MISSING;
  *code = command.callback.function(command.callback.user, r.bindings + command.first_binding,
                                    r.list->binding_bytes + command.first_binding, command.binding_count);
  return *code == 0 ? QNL_OK : QNL_CALLBACK_FAILED;
}

// Commands run in their order, each complete before the next begins, so dependencies need no further care.
qnl_status submit(Device* device, Recording* recording, uint32_t begin, uint32_t end, Event* event,
                  CommandFailure* failure) {
  CpuRecording* r = cpu(recording);
  TraceScope scope(device, QNL_TRACE_SUBMIT, r->list->session);
  bool timed = is_timed(device, *r->list);
  r->sharing.begin_run(now());
  for (uint32_t c = begin; c < end; ++c) {
    const Command& command = r->list->commands[c];
    qnl_status status = QNL_OK;
    uint64_t start = timed ? platform::now_nanoseconds() : 0;
    failure->command = c;
    if (is_cancelled(*r->list)) return QNL_CANCELLED;
    switch (command.kind) {
      case QNL_ITEM_DISPATCH:
      case QNL_ITEM_COMPANION_DISPATCH:
        status = run_dispatch(cpu(device), *r, command, &failure->code);
        break;
      case QNL_ITEM_COPY:
        host_memory::copy_strided(command, static_cast<const char*>(r->bindings[command.first_binding]),
                                  static_cast<char*>(r->bindings[command.first_binding + 1]));
        break;
      case QNL_ITEM_SYNCHRONIZE:
        break;
      case QNL_ITEM_HOST_CALLBACK:
        status = run_callback(*r, command, &failure->code);
        break;
      case QNL_ITEM_READ_SYMBOL:
      case QNL_ITEM_LOOP:
      case QNL_ITEM_BRANCH:
        return QNL_INVALID_ARGUMENT;
    }
    if (status != QNL_OK) return status;
    if (timed)
      report_command(device, *r->list, c, !leaves_device(command.kind), start, platform::now_nanoseconds());
  }
  // Runs are compared as wholes: what is shared costs the kernels after it, too.
  if (!timed && end - begin == r->list->command_count) r->sharing.end_run(now());
  host_memory::event_signal(event);
  return QNL_OK;
}

void event_signal(Device*, Event* event) { host_memory::event_signal(event); }
bool event_done(Device*, const Event* event) { return host_memory::event_done(event); }
qnl_status event_wait(Device*, Event* event, uint64_t timeout) {
  return host_memory::event_wait(event, timeout);
}
qnl_status wait_idle(Device*) { return QNL_OK; }

constexpr DeviceTable kCpuTable = {
    properties, memory_used, close_device, allocate_arena, wrap_arena, free_arena,   fill,      write,
    read,       copy,        load_kernels, unload_kernels, launch,     record_bytes, record,    rebind,
    prepare,    release,     submit,       event_signal,   event_done, event_wait,   wait_idle,
};

}  // namespace
}  // namespace quernel::runtime

extern "C" qnl_status qnl_device_open_cpu(const qnl_cpu_options* options, qnl_device** device,
                                          qnl_error* error) {
  using namespace quernel::runtime;
  if (device == nullptr) return fail(error, QNL_INVALID_ARGUMENT, "device: expected a place for the result");
  *device = nullptr;
  uint32_t threads = options == nullptr || options->threads == 0 ? 1 : options->threads;
  if (threads > kMaxThreads)
    return fail(error, QNL_INVALID_ARGUMENT, "threads: expected 1 to {}, found {}", kMaxThreads, threads);
  void* memory = quernel::platform::allocate_pages(sizeof(CpuDevice));
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "device: no memory for it");
  auto* self = new (memory) CpuDevice;
  self->table = &kCpuTable;
  self->features = host_features();
  if (options != nullptr && options->feature_mask != 0) self->features &= options->feature_mask;
  if (!self->pool.start(threads)) {
    quernel::platform::free_pages(memory, sizeof(CpuDevice));
    return fail(error, QNL_THREAD_FAILED, "device: could not start {} threads", threads - 1);
  }
  *device = self;
  return QNL_OK;
}
