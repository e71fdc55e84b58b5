// The one interface between the core and everything that executes: a table of functions that each device
// fills in. The core calls a device only through it; null/ is the smallest complete implementation, to be
// copied.
#pragma once

#include <stdint.h>

#include "core/bundle_reader.h"
#include "core/failure.h"
#include "core/lock.h"

namespace quernel::runtime {

class Description;
struct DeviceTable;
struct SubmissionThread;

// Every device object begins with this.
struct Device {
  const DeviceTable* table;
  qnl_trace_hook trace = nullptr;  // core/trace.h
  void* trace_user = nullptr;
  mutable Lock trace_lock;             // one hook at a time
  SubmissionThread* thread = nullptr;  // core/submission.h; null: it has none
  Device* host = nullptr;              // the companion CPU; null: none is known
};

// Memory a device can compute with.
struct DeviceArena {
  // Its address when the calling process can reach it, else null. Between submissions what lies there is what
  // counts, also where the device computes with a copy.
  void* host = nullptr;
  uint64_t bytes = 0;
  void* handle = nullptr;  // the device's own
};

struct DeviceRange {
  const DeviceArena* arena = nullptr;
  uint64_t offset = 0;
};

struct DeviceProperties {
  const char* name = nullptr;
  uint32_t arch = QNL_ARCH_NONE;  // QNL_ARCH_NONE accepts the variants of any architecture
  uint64_t features = 0;
  CodeFormat code_format = CodeFormat::kElfImage;
  uint32_t threads = 1;
  uint64_t max_binding_bytes = ~uint64_t{0};
  uint32_t arena_alignment = QNL_DEFAULT_ALIGNMENT;
  uint64_t max_arena_bytes = ~uint64_t{0};
  uint64_t memory_bytes = ~uint64_t{0};  // that arenas can be made of, all together
  uint64_t identity = 0;                 // of hardware and driver, where they are not this process's
  bool is_software = false;              // a driver that computes on the CPU
  bool has_queue = false;                // submit does not wait for what it submits
};

struct KernelCode {
  const void* data = nullptr;
  uint64_t bytes = 0;
  uint32_t arch = QNL_ARCH_NONE;
  uint32_t kernel_count = 0;
};

// Loaded code. A device derives its own type from it.
struct KernelSet {};

struct HostCallback {
  qnl_host_callback function = nullptr;
  void* user = nullptr;
};

// One item of a plan, ready for a device: ranges instead of arena indices.
// With on_host it is of kind host_callback, and the list's host gets it as it gets a dispatch.
struct Command : Work {
  uint32_t first_binding = 0;        // into CommandList::bindings
  uint64_t scratch_bytes = 0;        // per thread
  const int64_t* symbols = nullptr;  // that the kernel gets; null when it has none
  HostCallback callback;
};

// A plan as the session built it; it stays in place for as long as a recording of it exists. Between
// submissions the session may change workgroups, copy_bytes, binding_bytes and the symbols' values. Commands
// of the kinds read_symbol, loop and branch are the session's: a device never gets them.
struct Recording;

struct CommandList {
  const Command* commands = nullptr;
  uint32_t command_count = 0;
  const DeviceRange* bindings = nullptr;
  const uint64_t* binding_bytes = nullptr;
  uint32_t binding_count = 0;
  uint64_t max_scratch_bytes = 0;  // of all commands
  const Access* access = nullptr;  // per binding what its command does with it; null: it may do anything
  const qnl_session* session = nullptr;  // whose plan it is; may be null
  // Not null: gets the time of each command, which then run one after another (core/trace.h).
  qnl_profile_hook profile = nullptr;
  void* profile_user = nullptr;
  const uint32_t* cancelled = nullptr;  // atomic; may be null. Not 0: what has not begun is not to begin
  // The processor that commands with on_host run on, and its recording of this list; null where none does.
  // Their bindings have host addresses.
  Device* host = nullptr;
  Recording* host_recording = nullptr;
};

inline bool is_cancelled(const CommandList& list) {
  return list.cancelled != nullptr && __atomic_load_n(list.cancelled, __ATOMIC_RELAXED) != 0;
}

// A command list in the device's own form, replayed by submit. A device derives its own type from it.
struct Recording {};

// A point in a device's work. word: 0 pending, 1 done, others the device's; handle is the device's own.
struct Event {
  uint32_t word = 0;
  void* handle = nullptr;
};

// Where and why a submission failed.
struct CommandFailure {
  uint32_t command = 0;
  int32_t code = 0;  // of a kernel or callback
};

// Functions return QNL_OK or a code; those given an error also write its text. No function but
// allocate_arena, wrap_arena, load_kernels, record, prepare and the opening of the device allocates memory.
// They may be called from several threads at once; an arena or a recording is used by one at a time, an event
// waited for by any number.
struct DeviceTable {
  void (*properties)(const Device* device, DeviceProperties* properties);
  uint64_t (*memory_used)(const Device* device);
  void (*close)(Device* device);

  // Zero-filled memory, aligned to arena_alignment and at least to 4096 when bytes >= 4096. host_access: it
  // gets a host address on every device; else only where that costs nothing.
  qnl_status (*allocate_arena)(Device* device, uint64_t bytes, bool host_access, DeviceArena* arena);
  // Uses existing memory of this process, which stays the caller's, as an arena. read_only memory is never
  // written.
  qnl_status (*wrap_arena)(Device* device, const void* memory, uint64_t bytes, bool read_only,
                           DeviceArena* arena);
  // Frees what either of the two made, which no submission in flight uses; an empty arena is ignored.
  void (*free_arena)(Device* device, DeviceArena* arena);

  // Each range is checked: QNL_INVALID_ARGUMENT when it leaves its arena. They do not wait for submissions in
  // flight that use the range, which is the caller's to do.
  qnl_status (*fill)(Device* device, const DeviceRange& target, uint64_t bytes, uint8_t value);
  qnl_status (*write)(Device* device, const DeviceRange& target, const void* source, uint64_t bytes);
  qnl_status (*read)(Device* device, const DeviceRange& source, void* target, uint64_t bytes);
  qnl_status (*copy)(Device* device, const DeviceRange& source, const DeviceRange& target, uint64_t bytes);

  // code stays in place while the set is loaded.
  qnl_status (*load_kernels)(Device* device, const KernelCode& code, KernelSet** kernels, qnl_error* error);
  void (*unload_kernels)(Device* device, KernelSet* kernels);

  // Runs one kernel now and waits for it. bindings: `count` ranges; symbols may be null.
  qnl_status (*launch)(Device* device, KernelSet* kernels, uint32_t kernel, uint64_t workgroups,
                       const DeviceRange* bindings, uint32_t count, const int64_t* symbols);

  // Memory that record needs for this list, of which only the counts and max_scratch_bytes are looked at;
  // then the recording itself, made in that memory (64-byte aligned).
  uint64_t (*record_bytes)(const Device* device, const CommandList& list);
  qnl_status (*record)(Device* device, const CommandList& list, KernelSet* kernels, void* memory,
                       Recording** recording, qnl_error* error);
  // Binding `index` of the list has been changed; takes effect with the next submit.
  void (*rebind)(Device* device, Recording* recording, uint32_t index);
  // After changes: makes what the next submit would have to make, and says in the error what is wrong.
  // Commands with bindings that have no arena yet are left out.
  qnl_status (*prepare)(Device* device, Recording* recording, qnl_error* error);
  // Releases what the device holds for it beyond the memory.
  void (*release)(Device* device, Recording* recording);
  // Executes commands [begin, end) in order of their dependencies and signals the event when they are
  // complete. A device without a queue completes them before it returns. event is given pending.
  // While commands are timed, each is reported (report_command) by the time the event is done. Submissions
  // run in their order; QNL_CANCELLED where is_cancelled has kept a command from beginning.
  qnl_status (*submit)(Device* device, Recording* recording, uint32_t begin, uint32_t end, Event* event,
                       CommandFailure* failure);

  void (*event_signal)(Device* device, Event* event);
  bool (*event_done)(Device* device, const Event* event);
  // QNL_TIMEOUT when the event is still pending after that time; ~0: for ever.
  qnl_status (*event_wait)(Device* device, Event* event, uint64_t timeout_nanoseconds);
  // Returns when everything submitted is complete; QNL_DEVICE_FAULT when the device has faulted.
  qnl_status (*wait_idle)(Device* device);
  // Adds what the properties do not say (core/describe.h); may be null.
  void (*describe)(const Device* device, Description* description) = nullptr;
};

// True when [offset, offset + bytes) lies inside the range's arena.
inline bool inside(const DeviceRange& range, uint64_t bytes) {
  return range.arena != nullptr && bytes <= range.arena->bytes && range.offset <= range.arena->bytes - bytes;
}

inline char* host_address(const DeviceRange& range) {
  return range.arena == nullptr || range.arena->host == nullptr
             ? nullptr
             : static_cast<char*>(range.arena->host) + range.offset;
}

// Copies between arenas of two devices (copy_state.cpp): within one the device does it, without the host
// where its memory is its own; else through memory of the host, in place where one of the arenas is there.
qnl_status copy_between(Device* from, const DeviceRange& source, Device* to, const DeviceRange& target,
                        uint64_t bytes);

// Devices whose memory is this process's share these: arenas are pages, transfers are copies in host memory.
namespace host_memory {
qnl_status allocate(uint64_t bytes, DeviceArena* arena);
void wrap(const void* memory, uint64_t bytes, bool read_only, DeviceArena* arena);
// Returns the bytes given back: 0 for wrapped memory.
uint64_t free(DeviceArena* arena);
qnl_status fill(const DeviceRange& target, uint64_t bytes, uint8_t value);
qnl_status write(const DeviceRange& target, const void* source, uint64_t bytes);
qnl_status read(const DeviceRange& source, void* target, uint64_t bytes);
qnl_status copy(const DeviceRange& source, const DeviceRange& target, uint64_t bytes);
// The strided copy of a command between two addresses.
void copy_strided(const Command& command, const char* source, char* target);

void event_signal(Event* event);
bool event_done(const Event* event);
qnl_status event_wait(Event* event, uint64_t timeout_nanoseconds);
}  // namespace host_memory

}  // namespace quernel::runtime

// The opaque types of the C interface.
struct qnl_device : quernel::runtime::Device {};
