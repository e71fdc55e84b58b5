// The only interface between the core and the devices: a table of functions that each device fills in. null/
// is the smallest complete implementation; copy it to start a new device.
#pragma once

#include <stdint.h>

#include "core/bundle_reader.h"
#include "core/failure.h"
#include "core/lock.h"

namespace quernel::runtime {

class Description;
struct DeviceTable;
struct SubmissionThread;

// The first member of every device object.
struct Device {
  const DeviceTable* table;
  qnl_trace_hook trace = nullptr;  // core/trace.h
  void* trace_user = nullptr;
  mutable Lock trace_lock;             // serialises calls of the hook
  SubmissionThread* thread = nullptr;  // core/submission.h; null: the device has no thread
  Device* companion = nullptr;         // the companion CPU; null: none was given
};

// Memory that a device computes with.
struct DeviceArena {
  // Its address if the calling process can access it, else null. Between submissions the contents at this
  // address are the valid ones, also if the device computes with a copy.
  void* host = nullptr;
  uint64_t bytes = 0;
  void* handle = nullptr;  // owned by the device
};

struct DeviceRange {
  const DeviceArena* arena = nullptr;
  uint64_t offset = 0;
};

struct DeviceProperties {
  const char* name = nullptr;
  uint32_t arch = QNL_ARCH_NONE;  // QNL_ARCH_NONE: accepts variants of every architecture
  uint64_t features = 0;
  CodeFormat code_format = CodeFormat::kElfImage;
  uint32_t threads = 1;
  uint64_t max_binding_bytes = ~uint64_t{0};
  uint32_t arena_alignment = QNL_DEFAULT_ALIGNMENT;
  uint64_t max_arena_bytes = ~uint64_t{0};
  uint64_t memory_bytes = ~uint64_t{0};  // for all arenas together
  uint64_t identity = 0;                 // hash of hardware and driver; 0: they are this process's
  bool is_software = false;              // its driver computes on the CPU
  bool has_queue = false;                // submit returns before the commands are complete
};

struct KernelCode {
  const void* data = nullptr;
  uint64_t bytes = 0;
  uint32_t arch = QNL_ARCH_NONE;
  uint32_t kernel_count = 0;
};

// Loaded code. Each device derives its own type from it.
struct KernelSet {};

struct HostCallback {
  qnl_host_callback function = nullptr;
  void* user = nullptr;
};

// One item of a plan, prepared for a device: ranges replace arena indices.
struct Command : Work {
  uint32_t first_binding = 0;        // index into CommandList::bindings
  uint64_t scratch_bytes = 0;        // per thread
  const int64_t* symbols = nullptr;  // the kernel's symbol values; null if it has none
  HostCallback callback;
};

// A plan as the session built it. It stays in place as long as a recording of it exists. Between submissions
// the session may change workgroups, copy_bytes, binding_bytes and the symbols' values. A device never
// executes commands of kind read_symbol, loop or branch: the session does.
struct Recording;

struct CommandList {
  const Command* commands = nullptr;
  uint32_t command_count = 0;
  const DeviceRange* bindings = nullptr;
  const uint64_t* binding_bytes = nullptr;
  uint32_t binding_count = 0;
  uint64_t max_scratch_bytes = 0;        // the maximum over all commands
  const Access* access = nullptr;        // per binding: how its command accesses it; null: in any way
  const qnl_session* session = nullptr;  // the session of the plan; may be null
  // Not null: receives the time of each command; commands then run one after another (core/trace.h).
  qnl_profile_hook profile = nullptr;
  void* profile_user = nullptr;
  // Atomic; may be null. Not 0: commands that have not begun are skipped.
  const uint32_t* cancelled = nullptr;
  // The companion CPU that runs commands of kind companion_dispatch, and its recording of this list; null if
  // there is no such command. Their bindings have host addresses.
  Device* companion = nullptr;
  Recording* companion_recording = nullptr;
};

inline bool is_cancelled(const CommandList& list) {
  return list.cancelled != nullptr && __atomic_load_n(list.cancelled, __ATOMIC_RELAXED) != 0;
}

// A command list in the device's own form; submit replays it. Each device derives its own type from it.
struct Recording {};

// A point in a device's work. word: 0 pending, 1 done; other values and handle belong to the device.
struct Event {
  uint32_t word = 0;
  void* handle = nullptr;
};

// The command at which a submission failed, and why.
struct CommandFailure {
  uint32_t command = 0;
  int32_t code = 0;  // returned by a kernel or callback
};

// Functions return QNL_OK or an error code; those with an `error` parameter also write its text. Memory is
// allocated by opening a device, allocate_arena, wrap_arena, load_kernels, record and prepare. A Vulkan
// device also allocates in launch, and in submit for what it needs first there (command buffers, times,
// copies for callbacks). Several threads may call the functions at once. One thread at a time uses an arena
// or a recording; any number may wait for an event.
struct DeviceTable {
  void (*properties)(const Device* device, DeviceProperties* properties);
  uint64_t (*memory_used)(const Device* device);
  void (*close)(Device* device);

  // Allocates zero-filled memory, aligned to arena_alignment, and at least to 4096 if bytes >= 4096.
  // host_access: it has a host address on every device; otherwise only if that costs nothing.
  qnl_status (*allocate_arena)(Device* device, uint64_t bytes, bool host_access, DeviceArena* arena);
  // Uses existing memory of this process as an arena; the caller keeps owning it. read_only memory is never
  // written.
  qnl_status (*wrap_arena)(Device* device, const void* memory, uint64_t bytes, bool read_only,
                           DeviceArena* arena);
  // Frees an arena of either function; no submission in flight may use it. An empty arena is ignored.
  void (*free_arena)(Device* device, DeviceArena* arena);

  // Check each range: QNL_INVALID_ARGUMENT if it leaves its arena. The caller must first wait for submissions
  // in flight that use the range.
  qnl_status (*fill)(Device* device, const DeviceRange& target, uint64_t bytes, uint8_t value);
  qnl_status (*write)(Device* device, const DeviceRange& target, const void* source, uint64_t bytes);
  qnl_status (*read)(Device* device, const DeviceRange& source, void* target, uint64_t bytes);
  qnl_status (*copy)(Device* device, const DeviceRange& source, const DeviceRange& target, uint64_t bytes);

  // code stays in place while the set is loaded.
  qnl_status (*load_kernels)(Device* device, const KernelCode& code, KernelSet** kernels, qnl_error* error);
  void (*unload_kernels)(Device* device, KernelSet* kernels);

  // Runs one kernel now and waits for it. bindings: `count` ranges. symbols may be null.
  qnl_status (*launch)(Device* device, KernelSet* kernels, uint32_t kernel, uint64_t workgroups,
                       const DeviceRange* bindings, uint32_t count, const int64_t* symbols);

  // record_bytes returns the memory that record needs for this list; it reads only the counts and
  // max_scratch_bytes. record creates the recording in that memory (64-byte aligned).
  uint64_t (*record_bytes)(const Device* device, const CommandList& list);
  qnl_status (*record)(Device* device, const CommandList& list, KernelSet* kernels, void* memory,
                       Recording** recording, qnl_error* error);
  // Call after binding `index` of the list has changed; takes effect with the next submit.
  void (*rebind)(Device* device, Recording* recording, uint32_t index);
  // Call after changes: does the next submit's preparation in advance, and reports its errors. Commands with
  // bindings that have no arena yet are skipped.
  qnl_status (*prepare)(Device* device, Recording* recording, qnl_error* error);
  // Releases the device's resources of the recording, not its memory.
  void (*release)(Device* device, Recording* recording);
  // Executes commands [begin, end) in the order of their dependencies, then signals the event, which must be
  // pending. A device without a queue completes them before it returns. If commands are timed, each is
  // reported (report_command) before the event is done. Submissions run in order. Returns QNL_CANCELLED if
  // is_cancelled kept a command from beginning.
  qnl_status (*submit)(Device* device, Recording* recording, uint32_t begin, uint32_t end, Event* event,
                       CommandFailure* failure);

  void (*event_signal)(Device* device, Event* event);
  bool (*event_done)(Device* device, const Event* event);
  // Returns QNL_TIMEOUT if the event is still pending after that time; ~0: no limit.
  qnl_status (*event_wait)(Device* device, Event* event, uint64_t timeout_nanoseconds);
  // Returns when all submissions are complete; QNL_DEVICE_FAULT if the device has faulted.
  qnl_status (*wait_idle)(Device* device);
  // Adds what the properties do not tell (core/describe.h); may be null.
  void (*describe)(const Device* device, Description* description) = nullptr;
};

// Returns true if [offset, offset + bytes) lies inside the range's arena.
inline bool inside(const DeviceRange& range, uint64_t bytes) {
  return range.arena != nullptr && bytes <= range.arena->bytes && range.offset <= range.arena->bytes - bytes;
}

inline char* host_address(const DeviceRange& range) {
  return range.arena == nullptr || range.arena->host == nullptr
             ? nullptr
             : static_cast<char*>(range.arena->host) + range.offset;
}

// Copies between arenas of one or two devices (copy_state.cpp). On one device, that device copies, within its
// own memory if it is separate. Between two devices, the copy uses the host address of either arena, else a
// buffer in host memory.
qnl_status copy_between(Device* from, const DeviceRange& source, Device* to, const DeviceRange& target,
                        uint64_t bytes);

// Shared by devices that compute with this process's memory: arenas are pages, transfers are copies in host
// memory.
namespace host_memory {
qnl_status allocate(uint64_t bytes, DeviceArena* arena);
void wrap(const void* memory, uint64_t bytes, bool read_only, DeviceArena* arena);
// Returns the number of bytes freed: 0 for wrapped memory.
uint64_t free(DeviceArena* arena);
qnl_status fill(const DeviceRange& target, uint64_t bytes, uint8_t value);
qnl_status write(const DeviceRange& target, const void* source, uint64_t bytes);
qnl_status read(const DeviceRange& source, void* target, uint64_t bytes);
qnl_status copy(const DeviceRange& source, const DeviceRange& target, uint64_t bytes);
// Executes the command's strided copy between two addresses.
void copy_strided(const Command& command, const char* source, char* target);

void event_signal(Event* event);
bool event_done(const Event* event);
qnl_status event_wait(Event* event, uint64_t timeout_nanoseconds);
}  // namespace host_memory

}  // namespace quernel::runtime

// The opaque device type of the C interface.
struct qnl_device : quernel::runtime::Device {};
