// The session object behind the C interface: one entry point of a bundle, placed on a device. Everything it
// needs to run is in one block of memory, laid out once. session_layout.cpp computes that layout and the
// placement of the arenas.
#pragma once

#include <stdint.h>

#include "core/bundle.h"
#include "core/custom_op.h"
#include "core/device.h"
#include "core/submission.h"

namespace quernel::runtime {

// An input or output of the entry point.
struct Slot {
  // As in the signature, data null. For an input of symbolic shape the dims are the current ones; for an
  // output they are -1.
  qnl_tensor tensor;
  int32_t dims[QNL_MAX_RANK];  // indices of expressions; -1: the dim is constant
  bool symbolic;               // has a dim with an expression
  bool has_shape;              // inputs: the dims are known
  bool implied_shape;          // inputs: the dims follow from symbols, not from the caller
  uint32_t arena;
  qnl_tensor_role role;
  bool is_set;              // inputs: has a value
  bool bound;               // uses the caller's memory
  DeviceArena bound_arena;  // wraps that memory
};

// Sizes of one session: its entry point and variant, and the number of everything in it. Computed without
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
  uint64_t shared_bytes = 0;  // of workspaces that the companion CPU uses, too
  uint64_t state_bytes = 0;
  uint64_t io_bytes = 0;
  uint64_t session_bytes = 0;
  uint64_t max_scratch_bytes = 0;
  uint64_t recording_bytes = 0;
  int32_t companion_variant = -1;  // of the companion CPU's code; -1: none
  uint64_t max_companion_scratch_bytes = 0;
  uint64_t companion_recording_bytes = 0;
  bool companion_uses_state = false;
  // The caller's workspace memory: where the shared workspaces begin, and all its bytes.
  uint64_t shared_begin() const { return (workspace_bytes + alignment - 1) / alignment * alignment; }
  uint64_t all_workspace_bytes() const {
    return shared_bytes == 0 ? workspace_bytes : shared_begin() + shared_bytes;
  }
};

// Values of symbols: four arrays in a session's block, one after another.
struct SymbolValues {
  int64_t* now;       // of the last run; kUnset before the first
  int64_t* next;      // collected for the next run
  int64_t* declared;  // set by the caller, or kUnset
  int64_t* capacity;  // values that memory was allocated for
};

// A number of a command that depends on runtime symbols.
struct RuntimeSite {
  static constexpr uint32_t kWorkgroups = ~0u, kCopyBytes = ~0u - 1;
  uint32_t command;
  int32_t expression;
  uint32_t target;        // one of the constants above, or an index into the session's item symbols
  uint64_t mask;          // its runtime symbols, each as bit `index % 64`
  uint64_t evaluated_at;  // the session's `changes` at the last evaluation
};

// A read_symbol, loop or branch. Controls are in the order of their commands; *_control is the first control
// at or after that command.
struct Control {
  uint32_t command;
  qnl_item_kind kind;
  qnl_dtype dtype;
  int32_t symbol;
  int32_t count, condition;  // indices of expressions
  uint32_t end, end_control;
  uint32_t else_begin, else_control;
};

// Chooses entry point and variant and computes all sizes, both for a query and for a creation. Allocates
// nothing.
qnl_status plan_session(const BundleReader& reader, Device* device, const qnl_session_options& options,
                        SessionPlan* plan, qnl_error* error);
// Returns the bytes of a session's block: the object, then its arrays, with the plan's lengths. Sets the
// session's pointers to them; s may be null to get the size only.
uint64_t place_parts(const SessionPlan& plan, qnl_session* s);

// Sizes of arenas: either listed, or computed from symbol values. A size whose expression fails or is
// negative is 0; one that overflows is above kMaxArenaBytes.
struct ArenaSizes {
  const uint64_t* bytes = nullptr;  // per arena of the bundle
  const int64_t* symbols = nullptr;
};

// Returns the variant with the dispatch's kernel: the session's, or its companion code.
inline uint32_t variant_of(const SessionPlan& plan, const ItemView& item) {
  return item.kind == QNL_ITEM_COMPANION_DISPATCH ? static_cast<uint32_t>(plan.companion_variant)
                                                  : plan.variant;
}

// Lists the command's numbers that depend on runtime symbols, and returns how many there are. sites may be
// null. first_symbol: index of the command's first number among all item symbols.
uint32_t list_runtime_sites(const BundleReader& reader, const SessionPlan& plan, uint32_t command,
                            const ItemView& item, uint32_t first_symbol, RuntimeSite* sites);

// A block of memory that arenas share: the plan's workspaces that only the device uses; those that the
// companion CPU uses, too; all states of the bundle; the slots of inputs and outputs.
enum class Block : uint8_t { kWorkspace, kShared, kState, kSlots };

// Places arenas one after another in their block and returns the block's bytes. ranges (per arena of the
// bundle) and arena may be null to get the size only.
uint64_t place_arenas(const BundleReader& reader, const SessionPlan& plan, Block block,
                      const ArenaSizes& sizes, DeviceRange* ranges, const DeviceArena* arena);

// Returns the size of one arena for these symbol values, as above.
uint64_t arena_size(const BundleReader& reader, uint32_t arena, const int64_t* symbols);

qnl_status find_symbol(const BundleReader& reader, const char* name, uint32_t* symbol, qnl_error* error);

// Chooses the values to allocate memory for: the named ones, else a symbol's maximum if it is at most 2^16,
// else its minimum. symbols: kUnset where the default is wanted; named values overwrite it.
qnl_status capacity_values(const BundleReader& reader, const qnl_symbol_value* named, uint32_t count,
                           int64_t* symbols, qnl_error* error);

// The subject of an expression in texts: "item 3 'conv': workgroups".
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

// The accepted values: any; kDim: not negative; kBytes: up to kMaxArenaBytes; kWorkgroups: up to
// kMaxWorkgroups.
enum class Range : uint8_t { kAny, kDim, kBytes, kWorkgroups };

// Computes the value of an expression; an error names the subject.
qnl_status value_of(const BundleReader& reader, int32_t expression, const int64_t* symbols,
                    const Subject& subject, Range range, int64_t* value, qnl_error* error);

// Returns QNL_SYMBOL_OUT_OF_RANGE if the symbol may not have the value. bound: values for the expression of
// its maximum.
qnl_status check_symbol(const BundleReader& reader, uint32_t symbol, int64_t value, const int64_t* bound,
                        const Subject& subject, qnl_error* error);

// Sets the symbols from the inputs' shapes, makes room, and places everything that depends on them. Sets
// `resolved`.
qnl_status resolve_symbols(qnl_session* s, qnl_error* error);
qnl_status reserve_symbols(qnl_session* s, const qnl_symbol_value* named, uint32_t count, qnl_error* error);
// Checks the dims of an input against the ranges of their symbols.
qnl_status check_shape(const qnl_session* s, const Slot& slot, const int64_t* shape, qnl_error* error);
// Describe the slot's tensor with the dims that follow from these values; implied_shape does so for an input,
// from what the caller has set so far.
qnl_status shape_from_symbols(const qnl_session* s, const Slot& slot, const int64_t* symbols,
                              qnl_tensor* tensor, qnl_error* error);
qnl_status implied_shape(qnl_session* s, const Slot& slot, qnl_tensor* tensor, qnl_error* error);
// Makes room for `bytes` in the input slot.
qnl_status make_room(qnl_session* s, const Slot& slot, uint64_t bytes, qnl_error* error);
// Updates the numbers of commands [begin, end) that depend on symbols changed during the run.
qnl_status refresh_commands(qnl_session* s, uint32_t begin, uint32_t end, qnl_error* error);
// Prepares a run: checks that every input is set, places everything for the shapes, prepares the recording.
qnl_status check_ready(qnl_session* s, qnl_error* error);
// Runs all commands.
qnl_status run_plan(qnl_session* s, qnl_error* error);
// Describes the error of a failed command; past the last command, only the device's status.
qnl_status describe_failure(const qnl_session* s, qnl_status status, const CommandFailure& failed,
                            qnl_error* error);

// Call after binding `index` has changed: updates the recordings.
void rebind(qnl_session* s, uint32_t index);
// Computes sizes and bindings of all commands, from symbol values where they depend on them.
qnl_status place_commands(qnl_session* s, qnl_error* error);
// Returns the slot's current memory; the arena is null if there is none.
DeviceRange slot_range(const qnl_session* s, const Slot& slot);
// Returns the most bytes that the slot's tensor takes now.
uint64_t slot_extent(const qnl_session* s, const Slot& slot);
// Call after a slot has moved: updates every binding into it, in the list and in the device's recording.
void patch_bindings(qnl_session* s, const Slot& slot);
const char* role_name(qnl_tensor_role role);

}  // namespace quernel::runtime

// Created as zeros, except what place_session sets; so is the memory it points to.
struct qnl_session {
  const qnl_bundle* bundle;
  quernel::runtime::Device* device;
  quernel::runtime::SessionPlan plan;
  quernel::runtime::KernelSet* kernels;  // its own, or its parent's
  quernel::runtime::Recording* recording;
  quernel::runtime::CommandList list, companion_list;
  // For the companion CPU, if the plan uses one.
  quernel::runtime::Device* companion;
  quernel::runtime::KernelSet* companion_kernels;
  quernel::runtime::Recording* companion_recording;
  void *recording_memory, *companion_recording_memory;

  quernel::runtime::DeviceArena workspace, shared, state, io;
  qnl_session* state_owner;  // the session whose `state` this one uses; null: its own
  qnl_session* parent;       // the session whose constants this one uses; null: its own
  uint32_t holders;          // atomic: the application, and the children that use this session's resources

  quernel::runtime::DeviceRange* arenas;     // per arena of the bundle; empty if not used here
  quernel::runtime::DeviceArena* constants;  // per arena of the bundle; wraps mapped constants
  quernel::runtime::Slot* slots;
  quernel::runtime::Command* commands;
  quernel::runtime::DeviceRange* bindings;
  uint64_t* binding_bytes;
  quernel::runtime::Access* access;
  uint64_t* arena_bytes;  // per arena of the bundle: its current size, for this plan's arenas
  uint64_t* slot_bytes;   // per arena of the bundle: room of an input or output in `io`
  // Bindings that move when the caller binds a slot: index of the binding, arena, offset in the arena.
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
  // During a run: the number of symbol changes, and the last change of each symbol; two symbols may share an
  // entry.
  uint64_t changes;
  uint64_t changed_at[64];

  bool owns_workspace, owns_io;  // whether these blocks may grow
  bool checked_overlap;
  bool owns_memory;      // whether the runtime allocated this block
  qnl_event event;       // of its runs
  qnl_event* state_run;  // for the owner of a state: the last run that uses it; atomic
};

namespace quernel::runtime {

inline const DeviceArena& state_arena(const qnl_session* s) {
  return s->state_owner != nullptr ? s->state_owner->state : s->state;
}

}  // namespace quernel::runtime
