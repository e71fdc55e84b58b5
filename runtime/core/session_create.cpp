// Creating and destroying sessions: memory of each lifetime, code, bindings, recording.
#include <string.h>

#include "core/session.h"
#include "platform/platform.h"

using quernel::runtime::Access;
using quernel::runtime::ArenaKind;
using quernel::runtime::ArenaSizes;
using quernel::runtime::ArenaView;
using quernel::runtime::BindingView;
using quernel::runtime::Block;
using quernel::runtime::BundleReader;
using quernel::runtime::Command;
using quernel::runtime::Control;
using quernel::runtime::CustomCall;
using quernel::runtime::Device;
using quernel::runtime::DeviceArena;
using quernel::runtime::DeviceRange;
using quernel::runtime::fail;
using quernel::runtime::is_control;
using quernel::runtime::is_dispatch;
using quernel::runtime::ItemView;
using quernel::runtime::KernelCode;
using quernel::runtime::KernelSet;
using quernel::runtime::kUnset;
using quernel::runtime::place_commands;
using quernel::runtime::RuntimeSite;
using quernel::runtime::SessionPlan;
using quernel::runtime::Slot;
using quernel::runtime::VariantView;
using quernel::runtime::Work;
namespace platform = quernel::platform;

namespace {

qnl_status check_memory(const char* what, const void* memory, uint64_t has, uint64_t needs,
                        uint32_t alignment, qnl_error* error) {
  if (has < needs)
    return fail(error, QNL_MEMORY_TOO_SMALL, "{} memory: expected {} bytes, found {}", what, needs, has);
  if (reinterpret_cast<uintptr_t>(memory) % alignment != 0)
    return fail(error, QNL_MISALIGNED, "{} memory: expected {}-byte alignment", what, alignment);
  return QNL_OK;
}

// The block itself and the object at its beginning.
qnl_status place_session(const SessionPlan& plan, const qnl_session_options& options, qnl_session** session,
                         qnl_error* error) {
  void* memory = options.session_memory;
  if (memory != nullptr) {
    qnl_status status = check_memory("session", memory, options.session_memory_bytes, plan.session_bytes,
                                     QNL_DEFAULT_ALIGNMENT, error);
    if (status != QNL_OK) return status;
    memset(memory, 0, plan.session_bytes);
  } else {
    memory = platform::allocate_pages(plan.session_bytes);
    if (memory == nullptr)
      return fail(error, QNL_OUT_OF_MEMORY, "session: no memory for {} bytes", plan.session_bytes);
  }
  auto* s = static_cast<qnl_session*>(memory);
  s->owns_memory = options.session_memory == nullptr;
  s->plan = plan;
  s->holders = 1;
  s->event.session = s;
  s->event.word = 1;
  quernel::runtime::place_parts(plan, s);
  for (uint32_t i = 0; i < 4 * plan.symbol_count; ++i) s->symbols.now[i] = kUnset;
  *session = s;
  return QNL_OK;
}

// One lifetime's memory: the caller's, checked, or the device's.
qnl_status make_block(Device* device, const char* what, void* memory, uint64_t has, uint64_t needs,
                      uint32_t alignment, bool host_access, DeviceArena* block, qnl_error* error) {
  if (memory != nullptr) {
    if (qnl_status status = check_memory(what, memory, has, needs, alignment, error); status != QNL_OK)
      return status;
    return device->table->wrap_arena(device, memory, needs, false, block);
  }
  qnl_status status = device->table->allocate_arena(device, needs, host_access, block);
  if (status != QNL_OK) return fail(error, status, "{}: no memory for {} bytes", what, needs);
  return QNL_OK;
}

// Sizes that no symbol changes, and the room that inputs and outputs get.
void size_arenas(qnl_session* s) {
  const BundleReader& reader = s->bundle->reader;
  for (uint32_t a = 0; a < s->plan.arena_count; ++a) {
    ArenaView arena = reader.arena(a);
    s->arena_bytes[a] = arena.bytes_expression < 0 ? arena.bytes : 0;
  }
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    uint32_t a = s->slots[i].arena;
    s->slot_bytes[a] = quernel::runtime::arena_size(reader, a, s->symbols.capacity);
  }
}

// A caller's memory holds first what the device alone uses.
qnl_status make_workspaces(qnl_session* s, const qnl_session_options& o, qnl_error* error) {
  const SessionPlan& p = s->plan;
  auto* memory = static_cast<char*>(o.workspace_memory);
  if (memory != nullptr)
    if (qnl_status status = check_memory("workspace", memory, o.workspace_memory_bytes,
                                         p.all_workspace_bytes(), p.alignment, error);
        status != QNL_OK)
      return status;
  qnl_status status = make_block(s->device, "workspace", memory, o.workspace_memory_bytes, p.workspace_bytes,
                                 p.alignment, false, &s->workspace, error);
  if (status != QNL_OK || p.shared_bytes == 0) return status;
  return make_block(s->device, "workspace", memory == nullptr ? nullptr : memory + p.shared_begin(),
                    p.shared_bytes, p.shared_bytes, p.alignment, true, &s->shared, error);
}

// What a child uses of its parent stays as long as the child.
qnl_status join_parent(qnl_session* s, const qnl_session_options& o, qnl_error* error) {
  if (o.parent == nullptr)
    return o.share_state == 0 ? QNL_OK
                              : fail(error, QNL_INVALID_ARGUMENT, "state: expected a parent, found none");
  if (o.parent->bundle != s->bundle || o.parent->device != s->device)
    return fail(error, QNL_INVALID_ARGUMENT, "parent: has another bundle or device");
  __atomic_fetch_add(&o.parent->holders, 1u, __ATOMIC_RELAXED);
  s->parent = o.parent;
  if (o.parent->plan.variant == s->plan.variant) s->kernels = o.parent->kernels;
  return QNL_OK;
}

qnl_status place_memory(qnl_session* s, const qnl_session_options& o, qnl_error* error) {
  const SessionPlan& p = s->plan;
  const BundleReader& reader = s->bundle->reader;
  const ArenaSizes capacity = {nullptr, s->symbols.capacity};
  s->owns_workspace = o.workspace_memory == nullptr;
  s->owns_io = o.io_memory == nullptr;
  qnl_status status = make_workspaces(s, o, error);
  if (status != QNL_OK) return status;
  place_arenas(reader, p, Block::kWorkspace, capacity, s->arenas, &s->workspace);
  place_arenas(reader, p, Block::kShared, capacity, s->arenas, &s->shared);

  const DeviceArena* state = &s->state;
  if (o.share_state != 0) {
    s->state_owner = s->parent->state_owner != nullptr ? s->parent->state_owner : s->parent;
    state = &s->state_owner->state;
  } else {
    status = make_block(s->device, "state", o.state_memory, o.state_memory_bytes, p.state_bytes, p.alignment,
                        p.companion_uses_state, &s->state, error);
    if (status != QNL_OK) return status;
  }
  place_arenas(reader, p, Block::kState, capacity, s->arenas, state);

  if (o.io_bound_by_caller == 0) {
    status = make_block(s->device, "input and output", o.io_memory, o.io_memory_bytes, p.io_bytes,
                        p.alignment, true, &s->io, error);
    if (status != QNL_OK) return status;
    place_arenas(reader, p, Block::kSlots, capacity, s->arenas, &s->io);
  }
  if (s->parent != nullptr) s->constants = s->parent->constants;
  for (uint32_t a = 0; a < p.arena_count; ++a) {
    ArenaView arena = reader.arena(a);
    if (arena.kind != ArenaKind::kConstants) continue;
    s->arenas[a] = {&s->constants[a], 0};
    if (s->parent != nullptr) continue;
    status = s->device->table->wrap_arena(s->device, arena.contents, arena.bytes, true, &s->constants[a]);
    if (status != QNL_OK) return fail(error, status, "constants: the device cannot use them");
  }
  return QNL_OK;
}

void describe_slots(qnl_session* s) {
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    Slot& slot = s->slots[i];
    slot.role = i < s->plan.input_count ? QNL_INPUT : QNL_OUTPUT;
    uint32_t index = i < s->plan.input_count ? i : i - s->plan.input_count;
    s->bundle->reader.tensor(s->plan.entry, slot.role, index, &slot.tensor, &slot.arena, nullptr);
    for (uint32_t d = 0; d < QNL_MAX_RANK; ++d) {
      slot.dims[d] = s->bundle->reader.dim_expression(s->plan.entry, slot.role, index, d);
      slot.symbolic = slot.symbolic || slot.dims[d] >= 0;
    }
    slot.has_shape = !slot.symbolic;
  }
}

// Once all controls are listed: where to go on after a body.
void link_controls(qnl_session* s) {
  for (uint32_t i = 0; i < s->plan.control_count; ++i) {
    Control& control = s->controls[i];
    uint32_t next = i + 1;
    while (control.kind == QNL_ITEM_BRANCH && next < s->plan.control_count &&
           s->controls[next].command < control.else_begin)
      ++next;
    control.else_control = next;
    while (next < s->plan.control_count && s->controls[next].command < control.end) ++next;
    control.end_control = next;
  }
}

// What no symbol changes; place_commands does the rest.
void build_commands(qnl_session* s) {
  const BundleReader& reader = s->bundle->reader;
  const SessionPlan& p = s->plan;
  uint32_t next = 0, next_io = 0, next_symbol = 0, next_site = 0, next_control = 0;
  for (uint32_t c = 0; c < p.command_count; ++c) {
    ItemView item = reader.item(p.items, c);
    Command& command = s->commands[c];
    static_cast<Work&>(command) = item;
    command.first_binding = next;
    if (is_dispatch(item.kind))
      command.scratch_bytes = reader.kernel(variant_of(p, item), item.kernel).scratch_bytes;
    if (item.symbol_count > 0) command.symbols = s->item_symbols + next_symbol;
    next_site += list_runtime_sites(reader, p, c, item, next_symbol, s->runtime_sites + next_site);
    next_symbol += item.symbol_count;
    if (is_control(item.kind))
      s->controls[next_control++] = {c,
                                     item.kind,
                                     item.dtype,
                                     item.symbol,
                                     item.count_expression,
                                     item.condition_expression,
                                     item.end,
                                     0,
                                     item.else_begin,
                                     0};
    for (uint32_t b = 0; b < item.binding_count; ++b, ++next) {
      BindingView binding = reader.binding(p.items, c, b);
      ArenaKind kind = reader.arena(binding.arena).kind;
      if (kind == ArenaKind::kInput || kind == ArenaKind::kOutput)
        s->io_bindings[next_io++] = {next, binding.arena, binding.offset};
      s->access[next] = binding.access;
    }
  }
  link_controls(s);
  s->list = {s->commands,     p.command_count,     s->bindings, s->binding_bytes,
             p.binding_count, p.max_scratch_bytes, s->access,   s};
  s->list.cancelled = &s->event.cancelled;
}

// The functions behind the plan's custom ops.
qnl_status bind_custom_ops(qnl_session* s, const qnl_session_options& options, qnl_error* error) {
  uint32_t next = 0, next_tensor = 0;
  for (uint32_t c = 0; c < s->plan.command_count && next < s->plan.custom_count; ++c) {
    ItemView item = s->bundle->reader.item(s->plan.items, c);
    if (item.signature[0] == '\0') continue;
    const qnl_custom_op* op = nullptr;
    if (qnl_status status = find_custom_op(item, options, &op, error); status != QNL_OK) return status;
    Command& command = s->commands[c];
    CustomCall* call = &s->custom_calls[next++];
    prepare_custom_call(item, *op, s->custom_tensors + next_tensor, command.symbols, call);
    next_tensor += item.binding_count;
    command.callback = {quernel::runtime::run_custom_call, call};
  }
  return QNL_OK;
}

qnl_status load_code(const qnl_session* s, Device* device, uint32_t index, KernelSet** kernels,
                     qnl_error* error) {
  VariantView variant = s->bundle->reader.variant(index);
  KernelCode code = {variant.code, variant.code_bytes, variant.arch, variant.kernel_count};
  return device->table->load_kernels(device, code, kernels, error);
}

// Loads and records the companion CPU's commands, which the device's recording runs with its own.
qnl_status set_up_companion(qnl_session* s, void* memory, qnl_error* error) {
  qnl_status status = load_code(s, s->companion, static_cast<uint32_t>(s->plan.companion_variant),
                                &s->companion_kernels, error);
  if (status != QNL_OK) return status;
  s->companion_list = s->list;
  s->companion_list.max_scratch_bytes = s->plan.max_companion_scratch_bytes;
  status = s->companion->table->record(s->companion, s->companion_list, s->companion_kernels, memory,
                                       &s->companion_recording, error);
  s->list.companion = s->companion;
  s->list.companion_recording = s->companion_recording;
  return status;
}

qnl_status set_up(qnl_session* s, const qnl_session_options& options, qnl_error* error) {
  qnl_status status =
      capacity_values(s->bundle->reader, options.symbols, options.symbol_count, s->symbols.capacity, error);
  if (status != QNL_OK) return status;
  if (status = join_parent(s, options, error); status != QNL_OK) return status;
  describe_slots(s);
  size_arenas(s);
  if (status = place_memory(s, options, error); status != QNL_OK) return status;
  if (s->kernels == nullptr) status = load_code(s, s->device, s->plan.variant, &s->kernels, error);
  if (status != QNL_OK) return status;
  build_commands(s);
  if (status = bind_custom_ops(s, options, error); status != QNL_OK) return status;
  if (s->plan.companion_variant >= 0)
    if (status = set_up_companion(s, s->companion_recording_memory, error); status != QNL_OK) return status;
  status =
      s->device->table->record(s->device, s->list, s->kernels, s->recording_memory, &s->recording, error);
  if (status != QNL_OK) return status;
  s->resolved = s->plan.symbol_count == 0;
  if (s->resolved && (status = place_commands(s, error)) != QNL_OK) return status;
  if (s->resolved && (status = s->device->table->prepare(s->device, s->recording, error)) != QNL_OK)
    return status;
  return s->state_owner != nullptr ? QNL_OK : qnl_session_reset_state(s, error);
}

// Everything that the session holds, and its block.
void release(qnl_session* session) {
  Device* device = session->device;
  if (session->recording != nullptr) device->table->release(device, session->recording);
  if (session->parent == nullptr || session->parent->kernels != session->kernels)
    device->table->unload_kernels(device, session->kernels);
  if (Device* companion = session->companion; companion != nullptr) {
    if (session->companion_recording != nullptr)
      companion->table->release(companion, session->companion_recording);
    companion->table->unload_kernels(companion, session->companion_kernels);
  }
  auto free = [device](DeviceArena* arena) { device->table->free_arena(device, arena); };
  for (uint32_t i = 0; i < session->plan.slot_count; ++i) free(&session->slots[i].bound_arena);
  for (uint32_t a = 0; a < session->plan.arena_count && session->parent == nullptr; ++a)
    free(&session->constants[a]);
  free(&session->workspace);
  free(&session->shared);
  free(&session->state);
  free(&session->io);
  uint64_t bytes = session->plan.session_bytes;
  bool owns = session->owns_memory;
  if (owns) platform::free_pages(session, bytes);
}

}  // namespace

extern "C" {

qnl_status qnl_session_query(const qnl_bundle* bundle, qnl_device* device, const qnl_session_options* options,
                             qnl_requirements* requirements, qnl_error* error) {
  if (bundle == nullptr || device == nullptr || requirements == nullptr)
    return fail(error, QNL_INVALID_ARGUMENT,
                "session: expected a bundle, a device and a place for the result");
  qnl_session_options defaults = {};
  const qnl_session_options& o = options == nullptr ? defaults : *options;
  SessionPlan plan;
  if (qnl_status status = plan_session(bundle->reader, device, o, &plan, error); status != QNL_OK)
    return status;
  *requirements = {plan.variant,
                   plan.alignment,
                   plan.session_bytes,
                   plan.all_workspace_bytes(),
                   o.share_state != 0 ? 0 : plan.state_bytes,
                   o.io_bound_by_caller != 0 ? 0 : plan.io_bytes,
                   bundle->reader.constants_bytes(),
                   bundle->reader.variant(plan.variant).code_bytes};
  return QNL_OK;
}

qnl_status qnl_session_create(const qnl_bundle* bundle, qnl_device* device,
                              const qnl_session_options* options, qnl_session** session, qnl_error* error) {
  if (bundle == nullptr || device == nullptr || session == nullptr)
    return fail(error, QNL_INVALID_ARGUMENT,
                "session: expected a bundle, a device and a place for the result");
  *session = nullptr;
  qnl_session_options defaults = {};
  const qnl_session_options& o = options == nullptr ? defaults : *options;
  SessionPlan plan;
  if (qnl_status status = plan_session(bundle->reader, device, o, &plan, error); status != QNL_OK)
    return status;
  qnl_session* s = nullptr;
  if (qnl_status status = place_session(plan, o, &s, error); status != QNL_OK) return status;
  s->bundle = bundle;
  s->device = device;
  if (plan.companion_variant >= 0) s->companion = device->companion;
  if (qnl_status status = set_up(s, o, error); status != QNL_OK) {
    qnl_session_destroy(s);
    return status;
  }
  *session = s;
  return QNL_OK;
}

void qnl_session_destroy(qnl_session* session) {
  if (session == nullptr) return;
  if (session->event.finish != nullptr) {
    qnl_session_cancel(session);
    session->event.finish(&session->event);
    session->event.lock.lock();  // until the thread that ended the run has left it
    session->event.lock.unlock();
  }
  while (session != nullptr && __atomic_sub_fetch(&session->holders, 1u, __ATOMIC_ACQ_REL) == 0) {
    qnl_session* parent = session->parent;
    release(session);
    session = parent;
  }
}

}  // extern "C"
