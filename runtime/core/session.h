// The session object behind the C interface: one entry point of a bundle, placed on a device. Everything it
// needs to run lies in one block of memory, laid out once; session_layout.cpp computes that layout and the
// arenas' placement.
#pragma once

#include <stdint.h>

#include "core/bundle.h"
#include "core/device.h"

namespace quernel::runtime {

// An input or output of the entry point.
struct Slot {
  qnl_tensor tensor = {};  // of the signature, data null
  uint32_t arena = 0;
  qnl_tensor_role role = QNL_INPUT;
  bool is_set = false;      // inputs: has a value
  bool bound = false;       // uses the caller's memory
  DeviceArena bound_arena;  // wraps that memory
};

// What one session is: which entry point and variant, and how many of everything. Computed without
// allocation.
struct SessionPlan {
  uint32_t entry = 0;
  uint32_t variant = 0;
  uint32_t arena_count = 0;
  uint32_t slot_count = 0;  // inputs, then outputs
  uint32_t input_count = 0;
  uint32_t command_count = 0;
  uint32_t binding_count = 0;  // of all commands
  uint32_t io_binding_count = 0;
  uint32_t alignment = QNL_DEFAULT_ALIGNMENT;
  uint64_t workspace_bytes = 0;
  uint64_t state_bytes = 0;
  uint64_t io_bytes = 0;
  uint64_t session_bytes = 0;
  uint64_t max_scratch_bytes = 0;
  uint64_t recording_bytes = 0;
};

// Offsets in the session's block, after the object itself.
struct SessionLayout {
  uint64_t arenas = 0, constants = 0, slots = 0, commands = 0, bindings = 0, binding_bytes = 0,
           io_bindings = 0, recording = 0, end = 0;
};

// Chooses entry point and variant and sizes everything; the same for a query and for a creation. Allocates
// nothing.
qnl_status plan_session(const BundleReader& reader, Device* device, const qnl_session_options& options,
                        SessionPlan* plan, qnl_error* error);
SessionLayout layout_session(const SessionPlan& plan);

// Places the arenas of one lifetime that the plan uses one after another in a block and returns the block's
// bytes. workspace: those of the plan; state: all of the bundle; input: the inputs' and outputs' slots.
// ranges (per arena of the bundle) and block may be null to get the size only.
uint64_t place_arenas(const BundleReader& reader, const SessionPlan& plan, ArenaKind lifetime,
                      DeviceRange* ranges, const DeviceArena* block);

}  // namespace quernel::runtime

struct qnl_session {
  const qnl_bundle* bundle = nullptr;
  quernel::runtime::Device* device = nullptr;
  quernel::runtime::SessionPlan plan;
  quernel::runtime::KernelSet* kernels = nullptr;
  quernel::runtime::Recording* recording = nullptr;
  quernel::runtime::CommandList list;

  quernel::runtime::DeviceArena workspace, state, io;
  qnl_session* state_owner = nullptr;  // whose `state` this session uses; null: its own

  quernel::runtime::DeviceRange* arenas = nullptr;     // per arena of the bundle; empty when not used here
  quernel::runtime::DeviceArena* constants = nullptr;  // per arena of the bundle; wraps mapped constants
  quernel::runtime::Slot* slots = nullptr;
  quernel::runtime::Command* commands = nullptr;
  quernel::runtime::DeviceRange* bindings = nullptr;
  uint64_t* binding_bytes = nullptr;
  // Bindings that move when the caller binds a slot: {index of the binding, arena, offset in it}.
  struct IoBinding {
    uint32_t binding, arena;
    uint64_t offset;
  };
  IoBinding* io_bindings = nullptr;

  bool checked_overlap = false;
  bool owns_memory = false;  // of this block
  qnl_profile_hook profile = nullptr;
  void* profile_user = nullptr;
};
