// The session object behind the C interface: one entry point of a bundle, placed on a device. Everything it
// needs to run lies in one block of memory, laid out once; session_layout.cpp computes that layout and the
// arenas' placement.
#pragma once

#include <stdint.h>

#include "core/bundle.h"
#include "core/custom_op.h"
#include "core/device.h"
#include "core/submission.h"

namespace quernel::runtime {

// An input or output of the entry point.
struct Slot {
  // Of the signature, data null. The dims of an input's symbolic shape are those it has now; of an output's
  // they are -1.
  qnl_tensor tensor;
  int32_t dims[QNL_MAX_RANK];  // expressions, -1: the dim is constant
  bool symbolic;               // has such a dim
  bool has_shape;              // inputs: the dims are known
  bool implied_shape;          // inputs: they follow from symbols, the caller has not given them
  uint32_t arena;
  qnl_tensor_role role;
  bool is_set;              // inputs: has a value
  bool bound;               // uses the caller's memory
  DeviceArena bound_arena;  // wraps that memory
};

// What one session is: which entry point and variant, and how many of everything. Computed without
// allocation.
struct SessionPlan {
  uint32_t entry = 0;
  uint32_t variant = 0;
  const schema::Plan* items = nullptr;
  uint32_t arena_count = 0;
  uint32_t slot_count = 0;  // inputs, then outputs
  uint32_t input_count = 0;
  uint32_t command_count = 0;
  uint32_t binding_count = 0;  // of all commands
  uint32_t io_binding_count = 0;
  uint32_t symbol_count = 0;       // of the bundle
  uint32_t item_symbol_count = 0;  // of all commands
  uint32_t runtime_site_count = 0;
  uint32_t control_count = 0;
  uint32_t custom_count = 0;         // custom ops of all commands
  uint32_t custom_tensor_count = 0;  // their operands and results
  uint32_t alignment = QNL_DEFAULT_ALIGNMENT;
  uint64_t workspace_bytes = 0;
  uint64_t shared_bytes = 0;  // of workspaces that the host reaches, too
  uint64_t state_bytes = 0;
  uint64_t io_bytes = 0;
  uint64_t session_bytes = 0;
  uint64_t max_scratch_bytes = 0;
  uint64_t recording_bytes = 0;
  int32_t host_variant = -1;  // of the code for the processor beside the device; -1: none
  uint64_t max_host_scratch_bytes = 0;
  uint64_t host_recording_bytes = 0;
  bool host_uses_state = false;
  // Of a caller's memory for workspaces: where the shared ones begin, and all bytes.
  uint64_t shared_begin() const { return (workspace_bytes + alignment - 1) / alignment * alignment; }
  uint64_t all_workspace_bytes() const {
    return shared_bytes == 0 ? workspace_bytes : shared_begin() + shared_bytes;
  }
};

// Values of symbols, four sets of them in a session's block, one after another.
struct SymbolValues {
  int64_t* now;       // of the last run, kUnset before
  int64_t* next;      // collected for the run to come
  int64_t* declared;  // by the caller, or kUnset
  int64_t* capacity;  // that memory was made for
};

// A number of a command that depends on symbols that get their values during a run.
struct RuntimeSite {
  static constexpr uint32_t kWorkgroups = ~0u, kCopyBytes = ~0u - 1;
  uint32_t command;
  int32_t expression;
  uint32_t target;        // one of the above, or an index into the session's item symbols
  uint64_t mask;          // of its runtime symbols, each as bit `index % 64`
  uint64_t evaluated_at;  // the session's count of changes then
};

// A read_symbol, loop or branch. Controls are in the order of their commands; *_control is the first control
// that lies at or after that command.
struct Control {
  uint32_t command;
  qnl_item_kind kind;
  qnl_dtype dtype;
  int32_t symbol;
  int32_t count, condition;  // expressions
  uint32_t end, end_control;
  uint32_t else_begin, else_control;
};

// Chooses entry point and variant and sizes everything; the same for a query and for a creation. Allocates
// nothing.
qnl_status plan_session(const BundleReader& reader, Device* device, const qnl_session_options& options,
                        SessionPlan* plan, qnl_error* error);
// Bytes of a session's block: the object, then everything of which it has as many as the plan says. Sets the
// session's pointers to them; s may be null to get the size only.
uint64_t place_parts(const SessionPlan& plan, qnl_session* s);

// Sizes of arenas: as listed, or those that follow from values of the symbols, 0 where the values make no
// sense.
struct ArenaSizes {
  const uint64_t* bytes = nullptr;  // per arena of the bundle
  const int64_t* symbols = nullptr;
};

// The variant, or its host, that has the dispatch's kernel.
inline uint32_t variant_of(const SessionPlan& plan, const ItemView& item) {
  return item.on_host ? static_cast<uint32_t>(plan.host_variant) : plan.variant;
}

// Which numbers of the command follow symbols that get their values during a run: how many, and where sites
// are given, which. first_symbol: of the command's among all item symbols.
uint32_t list_runtime_sites(const BundleReader& reader, const SessionPlan& plan, uint32_t command,
                            const ItemView& item, uint32_t first_symbol, RuntimeSite* sites);

// What shares a block of memory: the plan's workspaces, but for those that the host reaches, too; these; all
// states of the bundle; the inputs' and outputs' slots.
enum class Block : uint8_t { kWorkspace, kShared, kState, kSlots };

// Places arenas one after another in their block and returns the block's bytes. ranges (per arena of the
// bundle) and arena may be null to get the size only.
uint64_t place_arenas(const BundleReader& reader, const SessionPlan& plan, Block block,
                      const ArenaSizes& sizes, DeviceRange* ranges, const DeviceArena* arena);

// Size of one arena by the symbols, as above.
uint64_t arena_size(const BundleReader& reader, uint32_t arena, const int64_t* symbols);

qnl_status find_symbol(const BundleReader& reader, const char* name, uint32_t* symbol, qnl_error* error);

// Values that memory is made for: those named, else the largest ones up to 2^16, else the smallest.
// symbols: kUnset where the caller wants the default; named ones are written over it.
qnl_status capacity_values(const BundleReader& reader, const qnl_symbol_value* named, uint32_t count,
                           int64_t* symbols, qnl_error* error);

// What an expression is for, in texts: "item 3 'conv': workgroups".
struct Subject {
#ifdef QUERNEL_WITHOUT_ERROR_TEXTS
  Subject(const char*, int64_t = -1, const char* = "", const char* = "") {}
  void append_to(Failure&) const {}
#else
  void append_to(Failure& failure) const;

  const char* what = "";
  int64_t index = -1;
  const char* name = "";
  const char* part = "";
#endif
};

// Values that are accepted: any; a dim, which is not negative; bytes, up to kMaxArenaBytes; workgroups, up to
// kMaxWorkgroups.
enum class Range : uint8_t { kAny, kDim, kBytes, kWorkgroups };

// Value of an expression, with an error that says what it is for.
qnl_status value_of(const BundleReader& reader, int32_t expression, const int64_t* symbols,
                    const Subject& subject, Range range, int64_t* value, qnl_error* error);

// QNL_SYMBOL_OUT_OF_RANGE when the symbol may not have the value. bound: values for the expression of its
// maximum.
qnl_status check_symbol(const BundleReader& reader, uint32_t symbol, int64_t value, const int64_t* bound,
                        const Subject& subject, qnl_error* error);

// Binds the symbols to the inputs' shapes, makes room, and places everything that depends on them. Sets
// `resolved`.
qnl_status resolve_symbols(qnl_session* s, qnl_error* error);
qnl_status reserve_symbols(qnl_session* s, const qnl_symbol_value* named, uint32_t count, qnl_error* error);
// Dims of an input against the ranges of the symbols that they are.
qnl_status check_shape(const qnl_session* s, const Slot& slot, const int64_t* shape, qnl_error* error);
// The slot's tensor with dims that follow from these values; for an input also from what the caller has given
// so far.
qnl_status shape_from_symbols(const qnl_session* s, const Slot& slot, const int64_t* symbols,
                              qnl_tensor* tensor, qnl_error* error);
qnl_status implied_shape(qnl_session* s, const Slot& slot, qnl_tensor* tensor, qnl_error* error);
// Gives the input slot room for `bytes`.
qnl_status make_room(qnl_session* s, const Slot& slot, uint64_t bytes, qnl_error* error);
// The numbers of commands [begin, end) that depend on what changed during the run.
qnl_status refresh_commands(qnl_session* s, uint32_t begin, uint32_t end, qnl_error* error);
// What a run needs: every input set, everything placed for the shapes, the recording prepared.
qnl_status check_ready(qnl_session* s, qnl_error* error);
// Runs all commands.
qnl_status run_plan(qnl_session* s, qnl_error* error);
// The error of a command that failed; past the last one the device's status alone.
qnl_status describe_failure(const qnl_session* s, qnl_status status, const CommandFailure& failed,
                            qnl_error* error);

// After binding `index` has changed: in the recordings.
void rebind(qnl_session* s, uint32_t index);
// Sizes and bindings of all commands, from the symbols' values where they depend on them.
qnl_status place_commands(qnl_session* s, qnl_error* error);
// Where the slot's memory is now; the arena is null when it has none.
DeviceRange slot_range(const qnl_session* s, const Slot& slot);
// Bytes that the slot's tensor takes now, at most.
uint64_t slot_extent(const qnl_session* s, const Slot& slot);
// After a slot has moved: every binding into it, in the list and in the device's recording.
void patch_bindings(qnl_session* s, const Slot& slot);
const char* role_name(qnl_tensor_role role);

}  // namespace quernel::runtime

// Zeros, when it is new, but for what place_session gives it; the same holds for what it points to.
struct qnl_session {
  const qnl_bundle* bundle;
  quernel::runtime::Device* device;
  quernel::runtime::SessionPlan plan;
  quernel::runtime::KernelSet* kernels;  // its own, or its parent's
  quernel::runtime::Recording* recording;
  quernel::runtime::CommandList list, host_list;
  // Of the processor beside the device, where the plan uses one.
  quernel::runtime::Device* host;
  quernel::runtime::KernelSet* host_kernels;
  quernel::runtime::Recording* host_recording;
  void *recording_memory, *host_recording_memory;

  quernel::runtime::DeviceArena workspace, shared, state, io;
  qnl_session* state_owner;  // whose `state` this session uses; null: its own
  qnl_session* parent;       // whose constants it uses; null: its own
  uint32_t holders;          // atomic: the application, and the children that keep what they use of this one

  quernel::runtime::DeviceRange* arenas;     // per arena of the bundle; empty when not used here
  quernel::runtime::DeviceArena* constants;  // per arena of the bundle; wraps mapped constants
  quernel::runtime::Slot* slots;
  quernel::runtime::Command* commands;
  quernel::runtime::DeviceRange* bindings;
  uint64_t* binding_bytes;
  quernel::runtime::Access* access;
  uint64_t* arena_bytes;  // per arena of the bundle: its size now; not of other plans' arenas
  uint64_t* slot_bytes;   // per arena of the bundle: room that an input or output has in `io`
  // Bindings that move when the caller binds a slot: {index of the binding, arena, offset in it}.
  struct IoBinding {
    uint32_t binding, arena;
    uint64_t offset;
  };
  IoBinding* io_bindings;

  quernel::runtime::SymbolValues symbols;
  int64_t* item_symbols;
  quernel::runtime::RuntimeSite* runtime_sites;
  quernel::runtime::Control* controls;
  quernel::runtime::CustomCall* custom_calls;  // in the order of their commands
  qnl_tensor* custom_tensors;
  bool resolved;  // everything is placed for the inputs' shapes
  // During a run: how often a symbol has changed, and when each did last; two symbols may share an entry.
  uint64_t changes;
  uint64_t changed_at[64];

  bool owns_workspace, owns_io;  // may grow
  bool checked_overlap;
  bool owns_memory;      // of this block
  qnl_event event;       // of its runs
  qnl_event* state_run;  // of the one that owns a state: the last run that uses it; atomic
};

namespace quernel::runtime {

inline const DeviceArena& state_arena(const qnl_session* s) {
  return s->state_owner != nullptr ? s->state_owner->state : s->state;
}

}  // namespace quernel::runtime
