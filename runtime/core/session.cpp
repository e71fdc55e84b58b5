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
using quernel::runtime::Failure;
using quernel::runtime::ItemView;
using quernel::runtime::Slot;

namespace {

const char* role_name(qnl_tensor_role role) {
  return role == QNL_INPUT ? "input" : role == QNL_OUTPUT ? "output" : "state";
}

// The slot of that name, or the only one of the role when name is null.
qnl_status find_slot(qnl_session* s, qnl_tensor_role role, const char* name, Slot** slot, qnl_error* error) {
  uint32_t begin = role == QNL_INPUT ? 0 : s->plan.input_count;
  uint32_t end = role == QNL_INPUT ? s->plan.input_count : s->plan.slot_count;
  for (uint32_t i = begin; i < end; ++i) {
    if (name == nullptr ? end - begin != 1 : strcmp(s->slots[i].tensor.name, name) != 0) continue;
    *slot = &s->slots[i];
    return QNL_OK;
  }
  Failure failure(error, QNL_UNKNOWN_NAME);
  failure << role_name(role) << " '" << (name == nullptr ? "" : name) << "': expected one of";
  for (uint32_t i = begin; i < end; ++i) failure << " '" << s->slots[i].tensor.name << "'";
  if (begin == end) failure << " none";
  return failure;
}

qnl_status check_tensor(const Slot& slot, const qnl_tensor& found, qnl_error* error) {
  const qnl_tensor& expected = slot.tensor;
  bool same_shape = found.rank == expected.rank &&
                    memcmp(found.shape, expected.shape, expected.rank * sizeof expected.shape[0]) == 0;
  qnl_status status = found.dtype != expected.dtype   ? QNL_DTYPE_MISMATCH
                      : !same_shape                   ? QNL_SHAPE_MISMATCH
                      : found.bytes != expected.bytes ? QNL_SIZE_MISMATCH
                                                      : QNL_OK;
  if (status == QNL_OK) return QNL_OK;
  Failure failure(error, status);
  failure << role_name(slot.role) << " '" << expected.name << "': expected ";
  append_type(failure, expected.dtype, expected.rank, expected.shape);
  if (status == QNL_SIZE_MISMATCH) failure << " of " << expected.bytes << " bytes";
  failure << ", found ";
  append_type(failure, found.dtype, found.rank, found.shape);
  if (status == QNL_SIZE_MISMATCH) failure << " of " << found.bytes << " bytes";
  return failure;
}

// Where the slot's memory is now; the arena is null when it has none.
DeviceRange slot_range(const qnl_session* s, const Slot& slot) {
  return slot.bound ? DeviceRange{&slot.bound_arena, 0} : s->arenas[slot.arena];
}

// After a slot has moved: every binding into it, in the list and in the device's recording.
void patch_bindings(qnl_session* s, const Slot& slot) {
  DeviceRange range = slot_range(s, slot);
  for (uint32_t i = 0; i < s->plan.io_binding_count; ++i) {
    const qnl_session::IoBinding& io = s->io_bindings[i];
    if (io.arena != slot.arena) continue;
    s->bindings[io.binding] = {range.arena, range.offset + io.offset};
    s->device->table->rebind(s->device, s->recording, io.binding);
  }
}

// Kernels write outputs while others read inputs, so an output may not share a byte with anything else.
qnl_status check_overlap(const qnl_session* s, qnl_error* error) {
  for (uint32_t o = s->plan.input_count; o < s->plan.slot_count; ++o) {
    const char* begin = host_address(slot_range(s, s->slots[o]));
    if (begin == nullptr) continue;
    for (uint32_t i = 0; i < o; ++i) {
      const char* other = host_address(slot_range(s, s->slots[i]));
      if (other == nullptr || other >= begin + s->slots[o].tensor.bytes ||
          begin >= other + s->slots[i].tensor.bytes)
        continue;
      return Failure(error, QNL_OVERLAP)
             << "output '" << s->slots[o].tensor.name << "': its memory overlaps that of "
             << role_name(s->slots[i].role) << " '" << s->slots[i].tensor.name << "'";
    }
  }
  return QNL_OK;
}

qnl_status check_ready(qnl_session* s, qnl_error* error) {
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    const Slot& slot = s->slots[i];
    bool has_memory = slot_range(s, slot).arena != nullptr;
    if (has_memory && (slot.is_set || slot.role == QNL_OUTPUT)) continue;
    return Failure(error, QNL_INPUT_NOT_SET) << role_name(slot.role) << " '" << slot.tensor.name << "': not "
                                             << (has_memory ? "set" : "bound") << " before the run";
  }
  if (s->checked_overlap) return QNL_OK;
  if (qnl_status status = check_overlap(s, error); status != QNL_OK) return status;
  s->checked_overlap = true;
  return QNL_OK;
}

qnl_status describe_failure(const qnl_session* s, qnl_status status, const CommandFailure& failed,
                            qnl_error* error) {
  Failure failure(error, status);
  if (failed.command >= s->plan.command_count) return failure << qnl_status_text(status);
  qnl_item_info item;
  (void)!qnl_session_get_item(s, failed.command, &item);
  failure << "item " << failed.command << " '" << item.name << "'";
  if (item.source_node[0] != '\0') failure << " (node '" << item.source_node << "')";
  failure << ": " << qnl_status_text(status);
  if (status == QNL_KERNEL_FAILED && failed.code == QNL_KERNEL_INDEX_OUT_OF_RANGE)
    failure << ", index out of range";
  if (status == QNL_KERNEL_FAILED && failed.code == QNL_KERNEL_DIVISION_BY_ZERO)
    failure << ", division by zero";
  if (failed.code != 0) failure << ", code " << int64_t{failed.code};
  return failure;
}

qnl_status submit(qnl_session* s, uint32_t begin, uint32_t end, qnl_error* error) {
  Event event;
  CommandFailure failed;
  failed.command = s->plan.command_count;
  qnl_status status = s->device->table->submit(s->device, s->recording, begin, end, nullptr, &event, &failed);
  if (status == QNL_OK) status = s->device->table->event_wait(s->device, &event, ~uint64_t{0});
  return status == QNL_OK ? QNL_OK : describe_failure(s, status, failed, error);
}

const DeviceArena& state_arena(const qnl_session* s) {
  return s->state_owner != nullptr ? s->state_owner->state : s->state;
}

qnl_status check_state_bytes(const qnl_session* s, uint64_t bytes, qnl_error* error) {
  if (bytes == s->plan.state_bytes) return QNL_OK;
  return Failure(error, QNL_SIZE_MISMATCH)
         << "state: expected " << s->plan.state_bytes << " bytes, found " << bytes;
}

}  // namespace

extern "C" {

qnl_status qnl_session_set_input(qnl_session* s, const qnl_tensor* tensor, qnl_error* error) {
  if (tensor == nullptr || (tensor->data == nullptr && tensor->bytes != 0))
    return Failure(error, QNL_INVALID_ARGUMENT) << "input: expected a tensor with data";
  Slot* slot = nullptr;
  if (qnl_status status = find_slot(s, QNL_INPUT, tensor->name, &slot, error); status != QNL_OK)
    return status;
  if (qnl_status status = check_tensor(*slot, *tensor, error); status != QNL_OK) return status;
  DeviceRange range = slot_range(s, *slot);
  if (range.arena == nullptr)
    return Failure(error, QNL_INPUT_NOT_SET)
           << "input '" << slot->tensor.name << "': has no slot, bind it instead";
  qnl_status status = s->device->table->write(s->device, range, tensor->data, tensor->bytes);
  if (status != QNL_OK)
    return Failure(error, status) << "input '" << slot->tensor.name << "': cannot be written";
  slot->is_set = true;
  return QNL_OK;
}

qnl_status qnl_session_bind(qnl_session* s, qnl_tensor_role role, const qnl_tensor* tensor,
                            qnl_error* error) {
  if (tensor == nullptr || (role != QNL_INPUT && role != QNL_OUTPUT))
    return Failure(error, QNL_INVALID_ARGUMENT) << "binding: expected an input or output tensor";
  Slot* slot = nullptr;
  if (qnl_status status = find_slot(s, role, tensor->name, &slot, error); status != QNL_OK) return status;
  bool to_own = tensor->data == nullptr;
  if (!to_own) {
    if (qnl_status status = check_tensor(*slot, *tensor, error); status != QNL_OK) return status;
    uint64_t element = qnl_dtype_bytes(tensor->dtype, 1);
    if (reinterpret_cast<uintptr_t>(tensor->data) % element != 0)
      return Failure(error, QNL_MISALIGNED) << role_name(role) << " '" << slot->tensor.name << "': expected "
                                            << element << "-byte alignment";
  }
  if (slot->bound) s->device->table->free_arena(s->device, &slot->bound_arena);
  slot->bound = false;
  slot->is_set = false;
  if (!to_own) {
    qnl_status status =
        s->device->table->wrap_arena(s->device, tensor->data, tensor->bytes, false, &slot->bound_arena);
    if (status != QNL_OK)
      return Failure(error, status) << role_name(role) << " '" << slot->tensor.name
                                    << "': cannot be used in place";
    slot->bound = true;
    slot->is_set = true;
  }
  s->checked_overlap = false;
  patch_bindings(s, *slot);
  return QNL_OK;
}

qnl_status qnl_session_get(qnl_session* s, qnl_tensor_role role, const char* name, qnl_tensor* tensor,
                           qnl_error* error) {
  if (tensor == nullptr || static_cast<uint32_t>(role) > QNL_STATE)
    return Failure(error, QNL_INVALID_ARGUMENT) << "tensor: expected a role and a place for the result";
  if (role != QNL_STATE) {
    Slot* slot = nullptr;
    if (qnl_status status = find_slot(s, role, name, &slot, error); status != QNL_OK) return status;
    *tensor = slot->tensor;
    tensor->data = host_address(slot_range(s, *slot));
    if (role == QNL_INPUT && (tensor->data != nullptr || tensor->bytes == 0)) slot->is_set = true;
    return QNL_OK;
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
  return Failure(error, QNL_UNKNOWN_NAME)
         << "state '" << (name == nullptr ? "" : name) << "': not one of the entry point's";
}

qnl_status qnl_session_run(qnl_session* s, qnl_error* error) {
  if (qnl_status status = check_ready(s, error); status != QNL_OK) return status;
  if (s->profile == nullptr) return submit(s, 0, s->plan.command_count, error);
  for (uint32_t c = 0; c < s->plan.command_count; ++c) {
    uint64_t begin = quernel::platform::now_nanoseconds();
    if (qnl_status status = submit(s, c, c + 1, error); status != QNL_OK) return status;
    s->profile(s->profile_user, c, quernel::platform::now_nanoseconds() - begin);
  }
  return QNL_OK;
}

qnl_status qnl_session_reset_state(qnl_session* s, qnl_error* error) {
  qnl_status status = s->device->table->fill(s->device, {&state_arena(s), 0}, s->plan.state_bytes, 0);
  for (uint32_t a = 0; a < s->plan.arena_count && status == QNL_OK; ++a) {
    ArenaView arena = s->bundle->reader.arena(a);
    if (arena.kind != ArenaKind::kState || arena.contents == nullptr) continue;
    status = s->device->table->write(s->device, s->arenas[a], arena.contents, arena.bytes);
  }
  return status == QNL_OK ? QNL_OK : Failure(error, status) << "state: cannot be reset";
}

qnl_status qnl_session_save_state(qnl_session* s, void* data, uint64_t bytes, qnl_error* error) {
  if (qnl_status status = check_state_bytes(s, bytes, error); status != QNL_OK) return status;
  return s->device->table->read(s->device, {&state_arena(s), 0}, data, bytes);
}

qnl_status qnl_session_restore_state(qnl_session* s, const void* data, uint64_t bytes, qnl_error* error) {
  if (qnl_status status = check_state_bytes(s, bytes, error); status != QNL_OK) return status;
  return s->device->table->write(s->device, {&state_arena(s), 0}, data, bytes);
}

qnl_status qnl_session_set_callback(qnl_session* s, const char* name, qnl_host_callback callback, void* user,
                                    qnl_error* error) {
  bool found = false;
  for (uint32_t c = 0; c < s->plan.command_count; ++c) {
    if (s->commands[c].kind != QNL_ITEM_HOST_CALLBACK) continue;
    if (strcmp(s->bundle->reader.item(s->plan.entry, s->plan.variant, c).callback, name) != 0) continue;
    s->commands[c].callback = {callback, user};
    found = true;
  }
  if (found) return QNL_OK;
  return Failure(error, QNL_UNKNOWN_NAME) << "callback '" << name << "': no item of the plan calls it";
}

uint32_t qnl_session_item_count(const qnl_session* s) { return s->plan.command_count; }

qnl_status qnl_session_get_item(const qnl_session* s, uint32_t index, qnl_item_info* info) {
  if (index >= s->plan.command_count) return QNL_INVALID_ARGUMENT;
  ItemView item = s->bundle->reader.item(s->plan.entry, s->plan.variant, index);
  const char* name = "copy";
  if (item.kind == QNL_ITEM_DISPATCH) name = s->bundle->reader.kernel(s->plan.variant, item.kernel).name;
  if (item.kind == QNL_ITEM_SYNCHRONIZE) name = "synchronize";
  if (item.kind == QNL_ITEM_HOST_CALLBACK) name = item.callback;
  *info = {item.kind,         name, item.source_node, item.workgroups, item.flops, item.bytes_read,
           item.bytes_written};
  return QNL_OK;
}

void qnl_session_set_profile(qnl_session* s, qnl_profile_hook hook, void* user) {
  s->profile = hook;
  s->profile_user = user;
}

}  // extern "C"
