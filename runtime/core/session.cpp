// Using sessions: inputs, outputs, runs, state, callbacks. Nothing here allocates.
#include "core/session.h"

#include <string.h>

#include "platform/platform.h"

using quernel::runtime::ArenaKind;
using quernel::runtime::ArenaView;
using quernel::runtime::Command;
using quernel::runtime::CommandFailure;
using quernel::runtime::Device;
using quernel::runtime::DeviceArena;
using quernel::runtime::DeviceRange;
using quernel::runtime::Event;
using quernel::runtime::fail;
using quernel::runtime::Failure;
using quernel::runtime::ItemView;
using quernel::runtime::Slot;

namespace quernel::runtime {

const char* role_name(qnl_tensor_role role) {
  return role == QNL_INPUT ? "input" : role == QNL_OUTPUT ? "output" : "state";
}

DeviceRange slot_range(const qnl_session* s, const Slot& slot) {
  return slot.bound ? DeviceRange{&slot.bound_arena, 0} : s->arenas[slot.arena];
}

uint64_t slot_extent(const qnl_session* s, const Slot& slot) {
  return slot.symbolic ? s->arena_bytes[slot.arena] : slot.tensor.bytes;
}

void rebind(qnl_session* s, uint32_t index) {
  s->device->table->rebind(s->device, s->recording, index);
  if (s->companion != nullptr) s->companion->table->rebind(s->companion, s->companion_recording, index);
}

void patch_bindings(qnl_session* s, const Slot& slot) {
  DeviceRange range = slot_range(s, slot);
  for (uint32_t i = 0; i < s->plan.io_binding_count; ++i) {
    const qnl_session::IoBinding& io = s->io_bindings[i];
    if (io.arena != slot.arena) continue;
    s->bindings[io.binding] = {range.arena, range.offset + io.offset};
    rebind(s, io.binding);
  }
}

}  // namespace quernel::runtime

using quernel::runtime::begin_run;
using quernel::runtime::check_idle;
using quernel::runtime::check_ready;
using quernel::runtime::check_shape;
using quernel::runtime::check_state_idle;
using quernel::runtime::end_run;
using quernel::runtime::implied_shape;
using quernel::runtime::make_room;
using quernel::runtime::patch_bindings;
using quernel::runtime::reserve_symbols;
using quernel::runtime::resolve_symbols;
using quernel::runtime::role_name;
using quernel::runtime::run_plan;
using quernel::runtime::RunKind;
using quernel::runtime::shape_from_symbols;
using quernel::runtime::slot_extent;
using quernel::runtime::slot_range;
using quernel::runtime::state_arena;

namespace {

// The slot of that name, or the only one of the role when name is null.
qnl_status find_slot(qnl_session* s, qnl_tensor_role role, const char* name, Slot** slot, qnl_error* error) {
  uint32_t begin = role == QNL_INPUT ? 0 : s->plan.input_count;
  uint32_t end = role == QNL_INPUT ? s->plan.input_count : s->plan.slot_count;
  for (uint32_t i = begin; i < end; ++i) {
    if (name == nullptr ? end - begin != 1 : strcmp(s->slots[i].tensor.name, name) != 0) continue;
    *slot = &s->slots[i];
    return QNL_OK;
  }
  if constexpr (!quernel::runtime::kErrorTexts) return fail(error, QNL_UNKNOWN_NAME, "");
  Failure failure(error, QNL_UNKNOWN_NAME);
  failure.append("{} '{}': expected one of", role_name(role), name);
  for (uint32_t i = begin; i < end; ++i) failure.append(" '{}'", s->slots[i].tensor.name);
  if (begin == end) failure.append(" none");
  return failure;
}

void append_signature(Failure& failure, const qnl_session* s, const Slot& slot) {
  failure.append("{}[", qnl_dtype_name(slot.tensor.dtype));
  for (uint32_t d = 0; d < slot.tensor.rank; ++d) {
    failure.append("{}", d == 0 ? "" : ",");
    if (slot.dims[d] >= 0) {
      failure.append_expression(s->bundle->reader, slot.dims[d]);
    } else {
      failure.append("{}", slot.tensor.shape[d]);
    }
  }
  failure.append("]");
}

// Rank and constant dims.
bool same_shape(const Slot& slot, const qnl_tensor& found) {
  bool same = found.rank == slot.tensor.rank;
  for (uint32_t d = 0; d < slot.tensor.rank && same; ++d)
    same = slot.dims[d] >= 0 || found.shape[d] == slot.tensor.shape[d];
  return same;
}

constexpr uint64_t kTooLarge = ~uint64_t{0};

uint64_t byte_count(const qnl_tensor& t) {
  uint64_t elements = 1;
  for (uint32_t d = 0; d < t.rank; ++d)
    if (!quernel::runtime::add_dim(t.shape[d], &elements)) return kTooLarge;
  return qnl_dtype_bytes(t.dtype, elements);
}

// Against the signature. Bytes are those of the found shape; an output of symbolic shape may have any.
qnl_status check_tensor(const qnl_session* s, const Slot& slot, const qnl_tensor& found, qnl_error* error) {
  bool any_size = slot.symbolic && slot.role == QNL_OUTPUT;
  qnl_status status = found.dtype != slot.tensor.dtype ? QNL_DTYPE_MISMATCH
                      : !same_shape(slot, found)       ? QNL_SHAPE_MISMATCH
                                                       : QNL_OK;
  if (status == QNL_OK && slot.symbolic && !any_size)
    if (status = check_shape(s, slot, found.shape, error); status != QNL_OK) return status;
  uint64_t bytes = slot.symbolic ? (any_size ? found.bytes : byte_count(found)) : slot.tensor.bytes;
  if (status == QNL_OK && found.bytes != bytes) status = QNL_SIZE_MISMATCH;
  if (status == QNL_OK && bytes == kTooLarge) status = QNL_SHAPE_MISMATCH;
  if (status == QNL_OK) return QNL_OK;
  Failure failure(error, status);
  failure.append("{} '{}': expected ", role_name(slot.role), slot.tensor.name);
  append_signature(failure, s, slot);
  if (status == QNL_SIZE_MISMATCH) failure.append(" of {} bytes", bytes);
  failure.append(", found ");
  failure.append_type(found.dtype, found.rank, found.shape);
  if (status == QNL_SIZE_MISMATCH) failure.append(" of {} bytes", found.bytes);
  return failure;
}

// The shape that an input has from now on; checked before.
void take_shape(qnl_session* s, Slot* slot, const int64_t* shape, uint64_t bytes, bool implied) {
  if (!slot->symbolic) return;
  slot->implied_shape = implied;
  bool same = slot->has_shape;
  for (uint32_t d = 0; d < slot->tensor.rank; ++d) {
    same = same && slot->tensor.shape[d] == shape[d];
    slot->tensor.shape[d] = shape[d];
  }
  slot->tensor.bytes = bytes;
  slot->has_shape = true;
  if (same) return;
  slot->is_set = false;
  s->resolved = false;
}

// Kernels write outputs while others read inputs, so an output may not share a byte with anything else.
qnl_status check_overlap(const qnl_session* s, qnl_error* error) {
  for (uint32_t o = s->plan.input_count; o < s->plan.slot_count; ++o) {
    const char* begin = host_address(slot_range(s, s->slots[o]));
    if (begin == nullptr) continue;
    for (uint32_t i = 0; i < o; ++i) {
      const char* other = host_address(slot_range(s, s->slots[i]));
      if (other == nullptr || other >= begin + slot_extent(s, s->slots[o]) ||
          begin >= other + slot_extent(s, s->slots[i]))
        continue;
      return fail(error, QNL_OVERLAP, "output '{}': its memory overlaps that of {} '{}'",
                  s->slots[o].tensor.name, role_name(s->slots[i].role), s->slots[i].tensor.name);
    }
  }
  return QNL_OK;
}

}  // namespace

namespace quernel::runtime {

qnl_status check_ready(qnl_session* s, qnl_error* error) {
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    const Slot& slot = s->slots[i];
    bool has_memory = slot_range(s, slot).arena != nullptr;
    if (has_memory && (slot.is_set || slot.role == QNL_OUTPUT)) continue;
    return fail(error, QNL_INPUT_NOT_SET, "{} '{}': not {} before the run", role_name(slot.role),
                slot.tensor.name, has_memory ? "set" : "bound");
  }
  if (!s->resolved)
    if (qnl_status status = resolve_symbols(s, error); status != QNL_OK) return status;
  if (s->checked_overlap) return QNL_OK;
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    const Slot& slot = s->slots[i];
    if (!slot.bound || slot.bound_arena.bytes >= slot_extent(s, slot)) continue;
    return fail(error, QNL_MEMORY_TOO_SMALL, "{} '{}': expected {} bytes, the memory bound to it has {}",
                role_name(slot.role), slot.tensor.name, slot_extent(s, slot), slot.bound_arena.bytes);
  }
  qnl_status status = check_overlap(s, error);
  if (status == QNL_OK) status = s->device->table->prepare(s->device, s->recording, error);
  s->checked_overlap = status == QNL_OK;
  return status;
}

}  // namespace quernel::runtime

namespace {

// An output's shape of the last run; before the first one what the inputs say.
qnl_status output_tensor(qnl_session* s, const Slot& slot, qnl_tensor* tensor, qnl_error* error) {
  qnl_status status = shape_from_symbols(s, slot, s->symbols.now, tensor, error);
  if (status == QNL_INPUT_NOT_SET && !s->resolved && resolve_symbols(s, nullptr) == QNL_OK)
    status = shape_from_symbols(s, slot, s->symbols.now, tensor, error);
  if (status != QNL_OK || !slot.symbolic || tensor->bytes <= s->arena_bytes[slot.arena]) return status;
  return fail(error, QNL_SYMBOL_OUT_OF_RANGE, "output '{}': its shape takes {} bytes, expected at most {}",
              slot.tensor.name, tensor->bytes, s->arena_bytes[slot.arena]);
}

// An input with the shape that it has or that follows from symbols, ready to be filled.
qnl_status input_tensor(qnl_session* s, Slot* slot, qnl_tensor* tensor, qnl_error* error) {
  if (!slot->has_shape || slot->implied_shape) {
    bool had_shape = slot->has_shape;
    slot->has_shape = false;  // it does not imply itself
    qnl_status status = implied_shape(s, *slot, tensor, error);
    if (status == QNL_OK) status = check_shape(s, *slot, tensor->shape, error);
    if (status != QNL_OK) {
      slot->is_set = false;
      return status;
    }
    slot->has_shape = had_shape;
    take_shape(s, slot, tensor->shape, tensor->bytes, true);
  }
  *tensor = slot->tensor;
  if (slot->symbolic && slot_range(s, *slot).arena != nullptr)
    if (qnl_status status = make_room(s, *slot, tensor->bytes, error); status != QNL_OK) return status;
  tensor->data = host_address(slot_range(s, *slot));
  if (tensor->data != nullptr || tensor->bytes == 0) slot->is_set = true;
  return QNL_OK;
}

// Copies all states to `data`, or from there.
qnl_status move_state(qnl_session* s, void* data, uint64_t bytes, bool saves, qnl_error* error) {
  if (qnl_status idle = check_state_idle(s, error); idle != QNL_OK) return idle;
  if (bytes != s->plan.state_bytes)
    return fail(error, QNL_SIZE_MISMATCH, "state: expected {} bytes, found {}", s->plan.state_bytes, bytes);
  DeviceRange states{&state_arena(s), 0};
  return saves ? s->device->table->read(s->device, states, data, bytes)
               : s->device->table->write(s->device, states, data, bytes);
}

}  // namespace

extern "C" {

qnl_status qnl_session_set_input(qnl_session* s, const qnl_tensor* tensor, qnl_error* error) {
  if (qnl_status idle = check_idle(s, error); idle != QNL_OK) return idle;
  if (tensor == nullptr || (tensor->data == nullptr && tensor->bytes != 0))
    return fail(error, QNL_INVALID_ARGUMENT, "input: expected a tensor with data");
  Slot* slot = nullptr;
  if (qnl_status status = find_slot(s, QNL_INPUT, tensor->name, &slot, error); status != QNL_OK)
    return status;
  qnl_status status = check_tensor(s, *slot, *tensor, error);
  if (status != QNL_OK) return status;
  if (slot_range(s, *slot).arena == nullptr)
    return fail(error, QNL_INPUT_NOT_SET, "input '{}': has no slot, bind it instead", slot->tensor.name);
  if (slot->symbolic)
    if (status = make_room(s, *slot, tensor->bytes, error); status != QNL_OK) return status;
  take_shape(s, slot, tensor->shape, tensor->bytes, false);
  status = s->device->table->write(s->device, slot_range(s, *slot), tensor->data, tensor->bytes);
  if (status != QNL_OK) return fail(error, status, "input '{}': cannot be written", slot->tensor.name);
  slot->is_set = true;
  return QNL_OK;
}

qnl_status qnl_session_bind(qnl_session* s, qnl_tensor_role role, const qnl_tensor* tensor,
                            qnl_error* error) {
  if (qnl_status idle = check_idle(s, error); idle != QNL_OK) return idle;
  if (tensor == nullptr || (role != QNL_INPUT && role != QNL_OUTPUT))
    return fail(error, QNL_INVALID_ARGUMENT, "binding: expected an input or output tensor");
  Slot* slot = nullptr;
  if (qnl_status status = find_slot(s, role, tensor->name, &slot, error); status != QNL_OK) return status;
  bool to_own = tensor->data == nullptr;
  if (!to_own) {
    if (qnl_status status = check_tensor(s, *slot, *tensor, error); status != QNL_OK) return status;
    uint64_t element = qnl_dtype_bytes(tensor->dtype, 1);
    if (reinterpret_cast<uintptr_t>(tensor->data) % element != 0)
      return fail(error, QNL_MISALIGNED, "{} '{}': expected {}-byte alignment", role_name(role),
                  slot->tensor.name, element);
  }
  if (slot->bound) s->device->table->free_arena(s->device, &slot->bound_arena);
  slot->bound = false;
  slot->is_set = false;
  if (!to_own) {
    qnl_status status =
        s->device->table->wrap_arena(s->device, tensor->data, tensor->bytes, false, &slot->bound_arena);
    if (status != QNL_OK)
      return fail(error, status, "{} '{}': cannot be used in place", role_name(role), slot->tensor.name);
    slot->bound = true;
    if (role == QNL_INPUT) take_shape(s, slot, tensor->shape, tensor->bytes, false);
    slot->is_set = true;
  } else if (slot->symbolic) {
    s->resolved = false;  // the slot may have to grow
  }
  s->checked_overlap = false;
  patch_bindings(s, *slot);
  return QNL_OK;
}

qnl_status qnl_session_get(qnl_session* s, qnl_tensor_role role, const char* name, qnl_tensor* tensor,
                           qnl_error* error) {
  if (qnl_status idle = check_idle(s, error); idle != QNL_OK) return idle;
  if (tensor == nullptr || static_cast<uint32_t>(role) > QNL_STATE)
    return fail(error, QNL_INVALID_ARGUMENT, "tensor: expected a role and a place for the result");
  if (role != QNL_STATE) {
    Slot* slot = nullptr;
    if (qnl_status status = find_slot(s, role, name, &slot, error); status != QNL_OK) return status;
    if (role == QNL_INPUT) return input_tensor(s, slot, tensor, error);
    qnl_status status = output_tensor(s, *slot, tensor, error);
    if (status == QNL_OK) tensor->data = host_address(slot_range(s, *slot));
    return status;
  }
  uint32_t states = s->bundle->reader.entry_point(s->plan.entry).state_count;
  for (uint32_t i = 0; i < states; ++i) {
    uint32_t arena = 0;
    uint64_t offset = 0;
    s->bundle->reader.tensor(s->plan.entry, QNL_STATE, i, tensor, &arena, &offset);
    if (name == nullptr ? states != 1 : strcmp(tensor->name, name) != 0) continue;
    DeviceRange range = s->arenas[arena];
    range.offset += offset;
    tensor->data = host_address(range);
    return QNL_OK;
  }
  return fail(error, QNL_UNKNOWN_NAME, "state '{}': not one of the entry point's", name);
}

qnl_status qnl_session_set_shape(qnl_session* s, const qnl_tensor* tensor, qnl_error* error) {
  if (qnl_status idle = check_idle(s, error); idle != QNL_OK) return idle;
  if (tensor == nullptr) return fail(error, QNL_INVALID_ARGUMENT, "input: expected a name and a shape");
  Slot* slot = nullptr;
  if (qnl_status status = find_slot(s, QNL_INPUT, tensor->name, &slot, error); status != QNL_OK)
    return status;
  qnl_tensor shaped = *tensor;
  shaped.dtype = slot->tensor.dtype;
  shaped.bytes = same_shape(*slot, shaped) ? byte_count(shaped) : 0;
  qnl_status status = check_tensor(s, *slot, shaped, error);
  if (status == QNL_OK && slot->symbolic) status = make_room(s, *slot, shaped.bytes, error);
  if (status == QNL_OK) take_shape(s, slot, shaped.shape, shaped.bytes, false);
  return status;
}

qnl_status qnl_session_set_symbol(qnl_session* s, const char* name, int64_t value, qnl_error* error) {
  if (qnl_status idle = check_idle(s, error); idle != QNL_OK) return idle;
  uint32_t symbol = 0;
  qnl_status status = find_symbol(s->bundle->reader, name, &symbol, error);
  if (status == QNL_OK && value != QNL_SYMBOL_UNSET)
    status = check_symbol(s->bundle->reader, symbol, value, nullptr, {"session"}, error);
  if (status != QNL_OK) return status;
  if (s->symbols.declared[symbol] != value) s->resolved = false;
  s->symbols.declared[symbol] = value;
  return QNL_OK;
}

qnl_status qnl_session_reserve(qnl_session* s, const qnl_symbol_value* symbols, uint32_t count,
                               qnl_error* error) {
  if (qnl_status idle = check_idle(s, error); idle != QNL_OK) return idle;
  return reserve_symbols(s, symbols, count, error);
}

qnl_status qnl_session_run(qnl_session* s, qnl_error* error) {
  qnl_status status = check_idle(s, error);
  if (status == QNL_OK) status = check_ready(s, error);
  if (status == QNL_OK) status = begin_run(s, RunKind::kHost, error);
  if (status != QNL_OK) return status;
  status = run_plan(s, error);
  end_run(s, status);
  return status;
}

qnl_status qnl_session_reset_state(qnl_session* s, qnl_error* error) {
  if (qnl_status idle = check_state_idle(s, error); idle != QNL_OK) return idle;
  qnl_status status = s->device->table->fill(s->device, {&state_arena(s), 0}, s->plan.state_bytes, 0);
  for (uint32_t a = 0; a < s->plan.arena_count && status == QNL_OK; ++a) {
    ArenaView arena = s->bundle->reader.arena(a);
    if (arena.kind != ArenaKind::kState || arena.contents == nullptr) continue;
    status = s->device->table->write(s->device, s->arenas[a], arena.contents, arena.bytes);
  }
  return status == QNL_OK ? QNL_OK : fail(error, status, "state: cannot be reset");
}

qnl_status qnl_session_save_state(qnl_session* s, void* data, uint64_t bytes, qnl_error* error) {
  return move_state(s, data, bytes, true, error);
}

qnl_status qnl_session_restore_state(qnl_session* s, const void* data, uint64_t bytes, qnl_error* error) {
  return move_state(s, const_cast<void*>(data), bytes, false, error);  // it is only read
}

qnl_status qnl_session_set_callback(qnl_session* s, const char* name, qnl_host_callback callback, void* user,
                                    qnl_error* error) {
  if (qnl_status idle = check_idle(s, error); idle != QNL_OK) return idle;
  bool found = false;
  for (uint32_t c = 0; c < s->plan.command_count; ++c) {
    if (s->commands[c].kind != QNL_ITEM_HOST_CALLBACK) continue;
    ItemView item = s->bundle->reader.item(s->plan.items, c);
    if (item.signature[0] != '\0' || strcmp(item.callback, name) != 0) continue;
    s->commands[c].callback = {callback, user};
    found = true;
  }
  if (found) return QNL_OK;
  return fail(error, QNL_UNKNOWN_NAME, "callback '{}': no item of the plan calls it", name);
}

}  // extern "C"
