// Creating and destroying sessions: memory of each lifetime, code, bindings, recording.
#include <string.h>

#include <new>

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
using quernel::runtime::ItemView;
using quernel::runtime::KernelCode;
using quernel::runtime::KernelSet;
using quernel::runtime::kUnset;
using quernel::runtime::place_commands;
using quernel::runtime::RuntimeSite;
using quernel::runtime::SessionLayout;
using quernel::runtime::SessionPlan;
using quernel::runtime::Slot;
using quernel::runtime::VariantView;
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
  auto* s = new (memory) qnl_session;
  s->owns_memory = options.session_memory == nullptr;
  s->plan = plan;
  s->event.session = s;
  char* base = static_cast<char*>(memory);
  SessionLayout layout = quernel::runtime::layout_session(plan);
  s->arenas = reinterpret_cast<DeviceRange*>(base + layout.arenas);
  s->constants = reinterpret_cast<DeviceArena*>(base + layout.constants);
  s->arena_bytes = reinterpret_cast<uint64_t*>(base + layout.arena_bytes);
  s->slot_bytes = reinterpret_cast<uint64_t*>(base + layout.slot_bytes);
  s->slots = reinterpret_cast<Slot*>(base + layout.slots);
  s->commands = reinterpret_cast<Command*>(base + layout.commands);
  s->bindings = reinterpret_cast<DeviceRange*>(base + layout.bindings);
  s->binding_bytes = reinterpret_cast<uint64_t*>(base + layout.binding_bytes);
  s->access = reinterpret_cast<quernel::runtime::Access*>(base + layout.access);
  s->io_bindings = reinterpret_cast<qnl_session::IoBinding*>(base + layout.io_bindings);
  auto* symbols = reinterpret_cast<int64_t*>(base + layout.symbols);
  for (uint32_t i = 0; i < 4 * plan.symbol_count; ++i) symbols[i] = kUnset;
  s->symbols = {symbols, symbols + plan.symbol_count, symbols + 2 * plan.symbol_count,
                symbols + 3 * plan.symbol_count};
  s->item_symbols = reinterpret_cast<int64_t*>(base + layout.item_symbols);
  s->runtime_sites = reinterpret_cast<RuntimeSite*>(base + layout.runtime_sites);
  s->controls = reinterpret_cast<Control*>(base + layout.controls);
  s->custom_calls = reinterpret_cast<CustomCall*>(base + layout.custom_calls);
  s->custom_tensors = reinterpret_cast<qnl_tensor*>(base + layout.custom_tensors);
  for (uint32_t i = 0; i < plan.custom_count; ++i) new (&s->custom_calls[i]) CustomCall;
  for (uint32_t i = 0; i < plan.runtime_site_count; ++i) new (&s->runtime_sites[i]) RuntimeSite;
  for (uint32_t i = 0; i < plan.control_count; ++i) new (&s->controls[i]) Control;
  for (uint32_t a = 0; a < plan.arena_count; ++a) new (&s->arenas[a]) DeviceRange;
  for (uint32_t a = 0; a < plan.arena_count; ++a) new (&s->constants[a]) DeviceArena;
  for (uint32_t i = 0; i < plan.slot_count; ++i) new (&s->slots[i]) Slot;
  for (uint32_t c = 0; c < plan.command_count; ++c) new (&s->commands[c]) Command;
  for (uint32_t b = 0; b < plan.binding_count; ++b) new (&s->bindings[b]) DeviceRange;
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
  if (o.share_state_with != nullptr) {
    const qnl_session* owner = o.share_state_with;
    s->state_owner = owner->state_owner != nullptr ? owner->state_owner : o.share_state_with;
    if (owner->bundle != s->bundle || owner->device != s->device)
      return fail(error, QNL_INVALID_ARGUMENT, "session: shares state with one of another bundle or device");
    state = &s->state_owner->state;
  } else {
    status = make_block(s->device, "state", o.state_memory, o.state_memory_bytes, p.state_bytes, p.alignment,
                        p.host_uses_state, &s->state, error);
    if (status != QNL_OK) return status;
  }
  place_arenas(reader, p, Block::kState, capacity, s->arenas, state);

  if (o.io_bound_by_caller == 0) {
    status = make_block(s->device, "input and output", o.io_memory, o.io_memory_bytes, p.io_bytes,
                        p.alignment, true, &s->io, error);
    if (status != QNL_OK) return status;
    place_arenas(reader, p, Block::kSlots, capacity, s->arenas, &s->io);
  }
  for (uint32_t a = 0; a < p.arena_count; ++a) {
    ArenaView arena = reader.arena(a);
    if (arena.kind != ArenaKind::kConstants) continue;
    status = s->device->table->wrap_arena(s->device, arena.contents, arena.bytes, true, &s->constants[a]);
    if (status != QNL_OK) return fail(error, status, "constants: the device cannot use them");
    s->arenas[a] = {&s->constants[a], 0};
  }
  return QNL_OK;
}

void describe_slots(qnl_session* s) {
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    Slot& slot = s->slots[i];
    slot.role = i < s->plan.input_count ? QNL_INPUT : QNL_OUTPUT;
    uint32_t index = i < s->plan.input_count ? i : i - s->plan.input_count;
    s->bundle->reader.tensor(s->plan.entry, slot.role, index, &slot.tensor, &slot.arena, nullptr);
    for (uint32_t d = 0; d < slot.tensor.rank; ++d) {
      slot.dims[d] = s->bundle->reader.dim_expression(s->plan.entry, slot.role, index, d);
      slot.symbolic = slot.symbolic || slot.dims[d] >= 0;
    }
    slot.has_shape = !slot.symbolic;
  }
}

// Which of the command's numbers follow the symbols during a run.
void list_runtime_sites(qnl_session* s, uint32_t c, const ItemView& item, uint32_t first_symbol,
                        uint32_t* next) {
  const BundleReader& reader = s->bundle->reader;
  auto add = [&](int32_t expression, uint32_t target) {
    if (reader.uses_runtime_symbols(expression))
      s->runtime_sites[(*next)++] = {c, expression, target, reader.runtime_mask(expression), 0};
  };
  add(item.workgroups_expression, RuntimeSite::kWorkgroups);
  add(item.copy_bytes_expression, RuntimeSite::kCopyBytes);
  for (uint32_t i = 0; i < item.symbol_count; ++i)
    add(reader.item_symbol(s->plan.entry, s->plan.variant, c, i), first_symbol + i);
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
    ItemView item = reader.item(p.entry, p.variant, c);
    Command& command = s->commands[c];
    command.kind = item.on_host ? QNL_ITEM_HOST_CALLBACK : item.kind;
    command.on_host = item.on_host;
    command.after = item.after;
    command.kernel = item.kernel;
    command.workgroups = item.workgroups;
    command.first_binding = next;
    command.binding_count = item.binding_count;
    if (item.kind == QNL_ITEM_DISPATCH)
      command.scratch_bytes = reader.kernel(variant_of(p, item), item.kernel).scratch_bytes;
    command.flops = item.flops;
    command.bytes_read = item.bytes_read;
    command.bytes_written = item.bytes_written;
    command.copy_bytes = item.copy_bytes;
    command.copy_loop_count = item.copy_loop_count;
    memcpy(command.copy_loops, item.copy_loops, sizeof item.copy_loops);
    if (item.symbol_count > 0) command.symbols = s->item_symbols + next_symbol;
    command.symbol_count = item.symbol_count;
    list_runtime_sites(s, c, item, next_symbol, &next_site);
    next_symbol += item.symbol_count;
    if (item.kind > QNL_ITEM_HOST_CALLBACK)
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
      BindingView binding = reader.binding(p.entry, p.variant, c, b);
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
    ItemView item = s->bundle->reader.item(s->plan.entry, s->plan.variant, c);
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

// The commands of the processor beside the device, which the device's recording runs with its own.
qnl_status set_up_host(qnl_session* s, void* memory, qnl_error* error) {
  qnl_status status =
      load_code(s, s->host, static_cast<uint32_t>(s->plan.host_variant), &s->host_kernels, error);
  if (status != QNL_OK) return status;
  s->host_list = s->list;
  s->host_list.max_scratch_bytes = s->plan.max_host_scratch_bytes;
  status = s->host->table->record(s->host, s->host_list, s->host_kernels, memory, &s->host_recording, error);
  s->list.host = s->host;
  s->list.host_recording = s->host_recording;
  return status;
}

qnl_status set_up(qnl_session* s, const qnl_session_options& options, qnl_error* error) {
  qnl_status status =
      capacity_values(s->bundle->reader, options.symbols, options.symbol_count, s->symbols.capacity, error);
  if (status != QNL_OK) return status;
  describe_slots(s);
  size_arenas(s);
  if (status = place_memory(s, options, error); status != QNL_OK) return status;
  if (status = load_code(s, s->device, s->plan.variant, &s->kernels, error); status != QNL_OK) return status;
  build_commands(s);
  if (status = bind_custom_ops(s, options, error); status != QNL_OK) return status;
  char* base = reinterpret_cast<char*>(s);
  SessionLayout layout = quernel::runtime::layout_session(s->plan);
  if (s->plan.host_variant >= 0)
    if (status = set_up_host(s, base + layout.host_recording, error); status != QNL_OK) return status;
  status =
      s->device->table->record(s->device, s->list, s->kernels, base + layout.recording, &s->recording, error);
  if (status != QNL_OK) return status;
  s->resolved = s->plan.symbol_count == 0;
  if (s->resolved && (status = place_commands(s, error)) != QNL_OK) return status;
  if (s->resolved && (status = s->device->table->prepare(s->device, s->recording, error)) != QNL_OK)
    return status;
  return s->state_owner != nullptr ? QNL_OK : qnl_session_reset_state(s, error);
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
                   o.share_state_with != nullptr ? 0 : plan.state_bytes,
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
  if (plan.host_variant >= 0) s->host = device->host;
  if (qnl_status status = set_up(s, o, error); status != QNL_OK) {
    qnl_session_destroy(s);
    return status;
  }
  *session = s;
  return QNL_OK;
}

void qnl_session_destroy(qnl_session* session) {
  if (session == nullptr) return;
  Device* device = session->device;
  if (session->event.finish != nullptr) {
    qnl_session_cancel(session);
    session->event.finish(&session->event);
    session->event.lock.lock();  // until the thread that ended the run has left it
    session->event.lock.unlock();
  }
  if (session->recording != nullptr) device->table->release(device, session->recording);
  if (session->kernels != nullptr) device->table->unload_kernels(device, session->kernels);
  if (Device* host = session->host; host != nullptr) {
    if (session->host_recording != nullptr) host->table->release(host, session->host_recording);
    if (session->host_kernels != nullptr) host->table->unload_kernels(host, session->host_kernels);
  }
  for (uint32_t i = 0; i < session->plan.slot_count; ++i)
    device->table->free_arena(device, &session->slots[i].bound_arena);
  for (uint32_t a = 0; a < session->plan.arena_count; ++a)
    device->table->free_arena(device, &session->constants[a]);
  device->table->free_arena(device, &session->workspace);
  device->table->free_arena(device, &session->shared);
  device->table->free_arena(device, &session->state);
  device->table->free_arena(device, &session->io);
  uint64_t bytes = session->plan.session_bytes;
  bool owns = session->owns_memory;
  session->~qnl_session();
  if (owns) platform::free_pages(session, bytes);
}

}  // extern "C"
