// Symbols of a session before a run: values from input shapes and from the caller, memory that grows with
// them, and the sizes of all commands.
#include <string.h>

#include "core/session.h"

namespace quernel::runtime {
namespace {

void append_range(Failure& failure, int64_t min, int64_t max, int64_t multiple_of) {
  failure.append("expected ");
  if (multiple_of != 1) failure.append("a multiple of {} from ", multiple_of);
  failure.append("{}", min);
  if (max == INT64_MAX) {
    failure.append(" up");
  } else {
    failure.append(" to {}", max);
  }
}

// "input 'a': dim 1"
Subject dim_subject(const Slot& slot, uint32_t dim) {
  constexpr const char* kParts[] = {"dim 0", "dim 1", "dim 2", "dim 3", "dim 4", "dim 5", "dim 6", "dim 7"};
  static_assert(sizeof kParts / sizeof kParts[0] == QNL_MAX_RANK);
  return {role_name(slot.role), -1, slot.tensor.name, kParts[dim]};
}

const char* first_unset(const BundleReader& reader, const Expression& e, const int64_t* symbols) {
  for (uint32_t i = 0; i < e.steps; ++i)
    if (e.opcode(i) == Opcode::kSymbol && symbols[e.operand(i)] == kUnset)
      return reader.symbol(static_cast<uint32_t>(e.operand(i))).name;
  return "";
}

// Two inputs, or an input and the caller, give one symbol different values.
qnl_status describe_conflict(const qnl_session* s, uint32_t input, uint32_t dim, uint32_t symbol,
                             qnl_error* error) {
  if constexpr (!kErrorTexts) return fail_status(error, QNL_SHAPE_MISMATCH);
  const Slot& slot = s->slots[input];
  Failure failure(error, QNL_SHAPE_MISMATCH);
  dim_subject(slot, dim).append_to(failure);
  failure.append("symbol '{}': expected {}, as ", s->bundle->reader.symbol(symbol).name,
                 s->symbols.next[symbol]);
  if (s->symbols.declared[symbol] != kUnset) {
    failure.append("qnl_session_set_symbol said");
  } else {
    for (uint32_t i = 0; i <= input; ++i) {
      const Slot& other = s->slots[i];
      uint32_t d = 0;
      for (; d < other.tensor.rank; ++d)
        if (other.has_shape && other.dims[d] >= 0 && (i != input || d < dim) &&
            plain_symbol(s->bundle->reader.expression(other.dims[d])) == symbol)
          break;
      if (d == other.tensor.rank) continue;
      failure.append("dim {} of input '{}' says", d, other.tensor.name);
      break;
    }
  }
  return failure.append(", found {}", slot.tensor.shape[dim]);
}

// Values of bound symbols from what the caller declared and from the dims that are a symbol; into
// symbols.next. Inputs that disagree with values already found are an error when error_on_conflict is set.
qnl_status collect_symbols(qnl_session* s, bool error_on_conflict, qnl_error* error) {
  const BundleReader& reader = s->bundle->reader;
  memcpy(s->symbols.next, s->symbols.declared, s->plan.symbol_count * sizeof(int64_t));
  for (uint32_t i = 0; i < s->plan.input_count; ++i) {
    const Slot& slot = s->slots[i];
    if (!slot.symbolic || !slot.has_shape) continue;
    for (uint32_t d = 0; d < slot.tensor.rank; ++d) {
      int64_t symbol = slot.dims[d] < 0 ? -1 : plain_symbol(reader.expression(slot.dims[d]));
      if (symbol < 0) continue;
      int64_t& value = s->symbols.next[symbol];
      if (value == kUnset) value = slot.tensor.shape[d];
      if (value != slot.tensor.shape[d] && error_on_conflict)
        return describe_conflict(s, i, d, static_cast<uint32_t>(symbol), error);
    }
  }
  return QNL_OK;
}

// Dims that are more than a symbol have to agree with the symbols.
qnl_status check_computed_dims(const qnl_session* s, qnl_error* error) {
  const BundleReader& reader = s->bundle->reader;
  for (uint32_t i = 0; i < s->plan.input_count; ++i) {
    const Slot& slot = s->slots[i];
    for (uint32_t d = 0; d < slot.tensor.rank && slot.symbolic; ++d) {
      if (slot.dims[d] < 0) continue;
      int64_t expected = 0;
      qnl_status status = value_of(reader, slot.dims[d], s->symbols.next, dim_subject(slot, d), Range::kDim,
                                   &expected, error);
      if (status != QNL_OK) return status;
      if (expected == slot.tensor.shape[d]) continue;
      Failure failure(error, QNL_SHAPE_MISMATCH);
      dim_subject(slot, d).append_to(failure);
      failure.append("expected {} for '", expected);
      failure.append_expression(reader, slot.dims[d]);
      return failure.append("', found {}", slot.tensor.shape[d]);
    }
  }
  return QNL_OK;
}

qnl_status size_arena(qnl_session* s, uint32_t index, qnl_error* error) {
  ArenaView arena = s->bundle->reader.arena(index);
  if (arena.bytes_expression < 0) return QNL_OK;
  int64_t bytes = 0;
  qnl_status status = value_of(s->bundle->reader, arena.bytes_expression, s->symbols.now,
                               {"arena", index, "", "size"}, Range::kBytes, &bytes, error);
  if (status == QNL_OK) s->arena_bytes[index] = static_cast<uint64_t>(bytes);
  return status;
}

// Sizes of everything that the plan uses, for symbols.now.
qnl_status size_all(qnl_session* s, qnl_error* error) {
  const BundleReader& reader = s->bundle->reader;
  for (uint32_t i = 0; i < reader.workspace_count(s->plan.items); ++i) {
    qnl_status status = size_arena(s, reader.workspace(s->plan.items, i), error);
    if (status != QNL_OK) return status;
  }
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    const Slot& slot = s->slots[i];
    if (qnl_status status = size_arena(s, slot.arena, error); status != QNL_OK) return status;
    // What a caller binds has exactly the tensor's bytes.
    if (slot.role == QNL_INPUT && s->arena_bytes[slot.arena] != slot.tensor.bytes)
      return fail(error, QNL_INVALID_BUNDLE, "input '{}': expected a slot of {} bytes, the bundle says {}",
                  slot.tensor.name, slot.tensor.bytes, s->arena_bytes[slot.arena]);
  }
  return QNL_OK;
}

qnl_status refuse_growth(const char* what, uint64_t needs, uint64_t has, qnl_error* error) {
  return fail(error, QNL_MEMORY_TOO_SMALL,
              "{} memory: expected {} bytes, the caller has supplied {}; create the session with larger "
              "values in qnl_session_options::symbols",
              what, needs, has);
}

// The old workspace goes first: its contents mean nothing, and both need not fit at once.
qnl_status grow_workspace(qnl_session* s, DeviceArena* workspace, uint64_t bytes, qnl_error* error) {
  if (bytes > kMaxArenaBytes)
    return fail(error, QNL_SYMBOL_OUT_OF_RANGE,
                "workspace: its size for these symbols is beyond what any device has");
  if (bytes <= workspace->bytes) return QNL_OK;
  if (!s->owns_workspace) return refuse_growth("workspace", bytes, workspace->bytes, error);
  s->resolved = false;
  s->device->table->free_arena(s->device, workspace);
  bool host_access = workspace == &s->shared;
  qnl_status status = s->device->table->allocate_arena(s->device, bytes, host_access, workspace);
  return status == QNL_OK ? QNL_OK : fail(error, status, "workspace: no memory for {} bytes", bytes);
}

// Both workspaces, for these sizes; placed where `ranges` is given.
qnl_status grow_workspaces(qnl_session* s, const ArenaSizes& sizes, DeviceRange* ranges, qnl_error* error) {
  const BundleReader& reader = s->bundle->reader;
  uint64_t bytes = place_arenas(reader, s->plan, Block::kWorkspace, sizes, ranges, &s->workspace);
  if (qnl_status status = grow_workspace(s, &s->workspace, bytes, error); status != QNL_OK) return status;
  bytes = place_arenas(reader, s->plan, Block::kShared, sizes, ranges, &s->shared);
  return grow_workspace(s, &s->shared, bytes, error);
}

uint64_t align_slot(uint64_t offset, uint32_t alignment) {
  uint64_t a = alignment < QNL_DEFAULT_ALIGNMENT ? QNL_DEFAULT_ALIGNMENT : alignment;
  return (offset + a - 1) & ~(a - 1);
}

// Bytes that a slot shall have at least: for one input's new shape, for the run to come, or to reserve.
struct SlotNeeds {
  const Slot* slot = nullptr;
  uint64_t bytes = 0;                // of that slot, when it is set
  const int64_t* symbols = nullptr;  // else by these values, or by the sizes now
};

uint64_t needed(const qnl_session* s, const Slot& slot, const SlotNeeds& needs) {
  if (needs.slot != nullptr) return needs.slot == &slot ? needs.bytes : 0;
  if (needs.symbols != nullptr) return arena_size(s->bundle->reader, slot.arena, needs.symbols);
  return slot.bound ? 0 : s->arena_bytes[slot.arena];
}

// All slots keep their contents.
qnl_status grow_slots(qnl_session* s, const SlotNeeds& needs, qnl_error* error) {
  bool any = false;
  uint64_t total = 0;
  auto wanted = [&](const Slot& slot) {
    uint64_t has = s->slot_bytes[slot.arena], more = needed(s, slot, needs);
    return more > has ? more : has;
  };
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    const Slot& slot = s->slots[i];
    any = any || wanted(slot) > s->slot_bytes[slot.arena];
    total = align_slot(total, s->bundle->reader.arena(slot.arena).alignment) + wanted(slot);
  }
  bool has_slots = s->plan.slot_count > 0 && s->arenas[s->slots[0].arena].arena != nullptr;
  if (!any || !has_slots) return QNL_OK;
  if (!s->owns_io) return refuse_growth("input and output", total, s->io.bytes, error);
  DeviceArena grown;
  qnl_status status = s->device->table->allocate_arena(s->device, total, true, &grown);
  uint64_t end = 0;
  for (uint32_t i = 0; i < s->plan.slot_count && status == QNL_OK; ++i) {
    const Slot& slot = s->slots[i];
    end = align_slot(end, s->bundle->reader.arena(slot.arena).alignment);
    status =
        s->device->table->copy(s->device, s->arenas[slot.arena], {&grown, end}, s->slot_bytes[slot.arena]);
    end += wanted(slot);
  }
  if (status != QNL_OK) {
    s->device->table->free_arena(s->device, &grown);
    return fail(error, status, "inputs and outputs: no memory for {} bytes", total);
  }
  s->device->table->free_arena(s->device, &s->io);
  s->io = grown;
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) s->slot_bytes[s->slots[i].arena] = wanted(s->slots[i]);
  place_arenas(s->bundle->reader, s->plan, Block::kSlots, {s->slot_bytes, nullptr}, s->arenas, &s->io);
  s->resolved = false;
  s->checked_overlap = false;
  return QNL_OK;
}

qnl_status check_copy(const qnl_session* s, uint32_t c, qnl_error* error) {
  const Command& command = s->commands[c];
  const uint64_t* bytes = s->binding_bytes + command.first_binding;
  if (command.kind != QNL_ITEM_COPY || command.copy_bytes == 0 ||
      copy_fits(command.copy_loops, command.copy_loop_count, command.copy_bytes, bytes[0], bytes[1]))
    return QNL_OK;
  return fail(error, QNL_SYMBOL_OUT_OF_RANGE, "item {}: a copy of {} bytes reaches outside its bindings", c,
              command.copy_bytes);
}

Subject item_subject(const qnl_session* s, uint32_t c, const char* part) {
  const char* node = "";
  if constexpr (kErrorTexts) node = s->bundle->reader.item(s->plan.items, c).source_node;
  return {"item", c, node, part};
}

qnl_status place_binding(qnl_session* s, uint32_t c, uint32_t index, const BindingView& b, uint32_t* next_io,
                         qnl_error* error) {
  const BundleReader& reader = s->bundle->reader;
  int64_t offset = static_cast<int64_t>(b.offset), bytes = static_cast<int64_t>(b.bytes);
  qnl_status status = QNL_OK;
  if (b.offset_expression >= 0)
    status = value_of(reader, b.offset_expression, s->symbols.now, item_subject(s, c, "offset"),
                      Range::kBytes, &offset, error);
  if (status == QNL_OK && b.bytes_expression >= 0)
    status = value_of(reader, b.bytes_expression, s->symbols.now, item_subject(s, c, "bytes"), Range::kBytes,
                      &bytes, error);
  if (status != QNL_OK) return status;
  auto begin = static_cast<uint64_t>(offset), size = static_cast<uint64_t>(bytes);
  uint64_t has = s->arena_bytes[b.arena];
  if (size > has || begin > has - size)
    return fail(error, QNL_SYMBOL_OUT_OF_RANGE, "item {}: its bytes {} to {}+{} lie outside arena {} of {}",
                c, begin, begin, size, b.arena, has);
  s->binding_bytes[index] = size;
  if (*next_io < s->plan.io_binding_count && s->io_bindings[*next_io].binding == index) {
    s->io_bindings[(*next_io)++].offset = begin;  // patch_bindings does the rest
    return QNL_OK;
  }
  DeviceRange range = {s->arenas[b.arena].arena, s->arenas[b.arena].offset + begin};
  s->bindings[index] = range;
  rebind(s, index);
  return QNL_OK;
}

// Numbers of a command that follow bound symbols only; the others wait for refresh_commands.
qnl_status size_command(qnl_session* s, uint32_t c, const ItemView& item, qnl_error* error) {
  const BundleReader& reader = s->bundle->reader;
  auto evaluate_now = [&](int32_t expression, const char* part, Range range, int64_t* value) {
    return value_of(reader, expression, s->symbols.now, item_subject(s, c, part), range, value, error);
  };
  Command& command = s->commands[c];
  int64_t value = 0;
  qnl_status status = QNL_OK;
  if (item.workgroups_expression >= 0 && !reader.uses_runtime_symbols(item.workgroups_expression)) {
    status = evaluate_now(item.workgroups_expression, "workgroups", Range::kWorkgroups, &value);
    if (status != QNL_OK) return status;
    command.workgroups = static_cast<uint64_t>(value);
  }
  // Analysis: what cannot be computed stays typical.
  auto refine = [&](int32_t expression, uint64_t* amount) {
    int64_t exact = 0;
    if (expression < 0 ||
        evaluate(reader.expression(expression), s->symbols.now, &exact) != Evaluation::kOk || exact < 0)
      return;
    *amount = static_cast<uint64_t>(exact);
  };
  refine(item.flops_expression, &command.flops);
  refine(item.bytes_read_expression, &command.bytes_read);
  refine(item.bytes_written_expression, &command.bytes_written);
  bool runtime_copy = reader.uses_runtime_symbols(item.copy_bytes_expression);
  if (item.copy_bytes_expression >= 0 && !runtime_copy) {
    status = evaluate_now(item.copy_bytes_expression, "copy", Range::kBytes, &value);
    if (status != QNL_OK) return status;
    command.copy_bytes = static_cast<uint64_t>(value);
  }
  for (uint32_t i = 0; i < item.symbol_count; ++i) {
    int32_t expression = reader.item_symbol(s->plan.items, c, i);
    if (reader.uses_runtime_symbols(expression)) continue;
    status = evaluate_now(expression, "symbol", Range::kAny, &value);
    if (status != QNL_OK) return status;
    s->item_symbols[command.symbols - s->item_symbols + i] = value;
  }
  return runtime_copy ? QNL_OK : check_copy(s, c, error);
}

qnl_status check_dim(const qnl_session* s, const Slot& slot, uint32_t d, int64_t dim, qnl_error* error) {
  if (slot.dims[d] < 0) return QNL_OK;
  int64_t symbol = plain_symbol(s->bundle->reader.expression(slot.dims[d]));
  if (symbol >= 0)
    return check_symbol(s->bundle->reader, static_cast<uint32_t>(symbol), dim, nullptr, dim_subject(slot, d),
                        error);
  if (dim >= 0) return QNL_OK;
  Failure failure(error, QNL_SHAPE_MISMATCH);
  dim_subject(slot, d).append_to(failure);
  return failure.append("expected 0 or more, found {}", dim);
}

}  // namespace

#ifndef QUERNEL_WITHOUT_ERROR_TEXTS
void Subject::append_to(Failure& failure) const {
  failure.append("{}", what);
  if (index >= 0) failure.append(" {}", index);
  if (name[0] != '\0' && index >= 0) failure.append(" (node '{}')", name);
  if (name[0] != '\0' && index < 0) failure.append(" '{}'", name);
  failure.append("{}{}: ", part[0] != '\0' ? " " : "", part);
}
#endif

qnl_status find_symbol(const BundleReader& reader, const char* name, uint32_t* symbol, qnl_error* error) {
  for (uint32_t i = 0; i < reader.symbol_count(); ++i) {
    if (name == nullptr || reader.symbol(i).runtime || strcmp(reader.symbol(i).name, name) != 0) continue;
    *symbol = i;
    return QNL_OK;
  }
  if constexpr (!kErrorTexts) return fail(error, QNL_UNKNOWN_NAME, "");
  Failure failure(error, QNL_UNKNOWN_NAME);
  failure.append("symbol '{}': expected one of", name);
  bool any = false;
  for (uint32_t i = 0; i < reader.symbol_count(); ++i) {
    if (reader.symbol(i).runtime) continue;
    failure.append(" '{}'", reader.symbol(i).name);
    any = true;
  }
  if (!any) failure.append(" none");
  return failure;
}

qnl_status value_of(const BundleReader& reader, int32_t expression, const int64_t* symbols,
                    const Subject& subject, Range range, int64_t* value, qnl_error* error) {
  Expression e = reader.expression(expression);
  Evaluation result = evaluate(e, symbols, value);
  int64_t min = range == Range::kAny ? INT64_MIN : 0;
  int64_t max = range == Range::kBytes        ? int64_t{kMaxArenaBytes}
                : range == Range::kWorkgroups ? int64_t{kMaxWorkgroups}
                                              : INT64_MAX;
  if (result == Evaluation::kOk && *value >= min && *value <= max) return QNL_OK;
  bool unset = result == Evaluation::kUnsetSymbol;
  Failure failure(error, unset ? QNL_INPUT_NOT_SET : QNL_SYMBOL_OUT_OF_RANGE);
  subject.append_to(failure);
  // What bundle.fbs says of a negative number of workgroups.
  if (result == Evaluation::kOk && range == Range::kWorkgroups && *value < 0)
    return failure.append("expected elements to choose its result from, found too few");
  failure.append("'");
  failure.append_expression(reader, expression);
  failure.append("': ");
  if (unset)
    return failure.append("symbol '{}' has no value; an input's shape or qnl_session_set_symbol gives it one",
                          first_unset(reader, e, symbols));
  if (result == Evaluation::kOverflow) return failure.append("overflows 64 bits");
  if (result == Evaluation::kDivisionByZero) return failure.append("divides by zero");
  append_range(failure, min, max, 1);
  return failure.append(", found {}", *value);
}

qnl_status check_symbol(const BundleReader& reader, uint32_t symbol, int64_t value, const int64_t* bound,
                        const Subject& subject, qnl_error* error) {
  SymbolView view = reader.symbol(symbol);
  int64_t max = view.max;
  if (view.max_expression >= 0 && bound != nullptr) {
    qnl_status status = value_of(reader, view.max_expression, bound, {"symbol", -1, view.name, "maximum"},
                                 Range::kAny, &max, error);
    if (status != QNL_OK) return status;
  }
  if (value >= view.min && value <= max && value % view.multiple_of == 0) return QNL_OK;
  Failure failure(error, QNL_SYMBOL_OUT_OF_RANGE);
  subject.append_to(failure);
  failure.append("symbol '{}': ", view.name);
  append_range(failure, view.min, max, view.multiple_of);
  return failure.append(", found {}", value);
}

qnl_status check_shape(const qnl_session* s, const Slot& slot, const int64_t* shape, qnl_error* error) {
  for (uint32_t d = 0; d < slot.tensor.rank; ++d)
    if (qnl_status status = check_dim(s, slot, d, shape[d], error); status != QNL_OK) return status;
  return QNL_OK;
}

qnl_status shape_from_symbols(const qnl_session* s, const Slot& slot, const int64_t* symbols,
                              qnl_tensor* tensor, qnl_error* error) {
  *tensor = slot.tensor;
  uint64_t elements = 1;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    if (slot.dims[d] >= 0) {
      qnl_status status = value_of(s->bundle->reader, slot.dims[d], symbols, dim_subject(slot, d),
                                   Range::kBytes, &tensor->shape[d], error);
      if (status != QNL_OK) return status;
    }
    if (!add_dim(tensor->shape[d], &elements))
      return fail(error, QNL_SYMBOL_OUT_OF_RANGE, "{} '{}': its shape is beyond what any device has",
                  role_name(slot.role), slot.tensor.name);
  }
  tensor->bytes = qnl_dtype_bytes(tensor->dtype, elements);
  return QNL_OK;
}

qnl_status implied_shape(qnl_session* s, const Slot& slot, qnl_tensor* tensor, qnl_error* error) {
  (void)!collect_symbols(s, false, nullptr);
  return shape_from_symbols(s, slot, s->symbols.next, tensor, error);
}

qnl_status make_room(qnl_session* s, const Slot& slot, uint64_t bytes, qnl_error* error) {
  if (slot.bound) {
    if (bytes <= slot.bound_arena.bytes) return QNL_OK;
    return fail(error, QNL_SIZE_MISMATCH, "{} '{}': expected {} bytes, the memory bound to it has {}",
                role_name(slot.role), slot.tensor.name, bytes, slot.bound_arena.bytes);
  }
  return grow_slots(s, {&slot, bytes, nullptr}, error);
}

qnl_status place_commands(qnl_session* s, qnl_error* error) {
  const BundleReader& reader = s->bundle->reader;
  const SessionPlan& p = s->plan;
  uint32_t next = 0, next_io = 0;
  for (uint32_t c = 0; c < p.command_count; ++c) {
    for (uint32_t b = 0; b < s->commands[c].binding_count; ++b) {
      BindingView binding = reader.binding(p.items, c, b);
      qnl_status status = place_binding(s, c, next++, binding, &next_io, error);
      if (status != QNL_OK) return status;
    }
    if (p.symbol_count == 0 && p.item_symbol_count == 0) continue;
    qnl_status status = size_command(s, c, reader.item(p.items, c), error);
    if (status != QNL_OK) return status;
  }
  for (uint32_t i = 0; i < p.slot_count; ++i) patch_bindings(s, s->slots[i]);
  return QNL_OK;
}

qnl_status resolve_symbols(qnl_session* s, qnl_error* error) {
  qnl_status status = collect_symbols(s, true, error);
  if (status == QNL_OK) status = check_computed_dims(s, error);
  if (status != QNL_OK) return status;
  memcpy(s->symbols.now, s->symbols.next, s->plan.symbol_count * sizeof(int64_t));
  if (status = size_all(s, error); status != QNL_OK) return status;
  const ArenaSizes sizes = {s->arena_bytes, nullptr};
  if (status = grow_workspaces(s, sizes, s->arenas, error); status != QNL_OK) return status;
  status = grow_slots(s, {}, error);
  if (status == QNL_OK) status = place_commands(s, error);
  if (status != QNL_OK) return status;
  for (uint64_t& changed : s->changed_at) changed = s->changes + 1;
  s->changes += 1;
  s->checked_overlap = false;
  s->resolved = true;
  return QNL_OK;
}

qnl_status refresh_commands(qnl_session* s, uint32_t begin, uint32_t end, qnl_error* error) {
  uint32_t first = 0, last = s->plan.runtime_site_count;
  while (first < last) {  // the first site at or after `begin`
    uint32_t middle = first + (last - first) / 2;
    if (s->runtime_sites[middle].command < begin) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  for (; first < s->plan.runtime_site_count && s->runtime_sites[first].command < end; ++first) {
    RuntimeSite& site = s->runtime_sites[first];
    bool stale = false;
    for (uint64_t mask = site.mask; mask != 0 && !stale; mask &= mask - 1)
      stale = s->changed_at[__builtin_ctzll(mask)] > site.evaluated_at;
    if (!stale) continue;
    Command& command = s->commands[site.command];
    int64_t value = 0;
    Range range = site.target == RuntimeSite::kWorkgroups  ? Range::kWorkgroups
                  : site.target == RuntimeSite::kCopyBytes ? Range::kBytes
                                                           : Range::kAny;
    qnl_status status = value_of(s->bundle->reader, site.expression, s->symbols.now,
                                 item_subject(s, site.command, ""), range, &value, error);
    if (status != QNL_OK) return status;
    if (site.target == RuntimeSite::kWorkgroups) {
      command.workgroups = static_cast<uint64_t>(value);
    } else if (site.target == RuntimeSite::kCopyBytes) {
      command.copy_bytes = static_cast<uint64_t>(value);
      if (status = check_copy(s, site.command, error); status != QNL_OK) return status;
    } else {
      s->item_symbols[site.target] = value;
    }
    site.evaluated_at = s->changes;
  }
  return QNL_OK;
}

qnl_status reserve_symbols(qnl_session* s, const qnl_symbol_value* named, uint32_t count, qnl_error* error) {
  qnl_status status = capacity_values(s->bundle->reader, named, count, s->symbols.capacity, error);
  if (status != QNL_OK) return status;
  const ArenaSizes sizes = {nullptr, s->symbols.capacity};
  if (status = grow_workspaces(s, sizes, nullptr, error); status != QNL_OK) return status;
  return grow_slots(s, {nullptr, 0, s->symbols.capacity}, error);
}

}  // namespace quernel::runtime
