#include <stddef.h>
#include <string.h>

#include "core/feature_names.h"
#include "core/session.h"

namespace quernel::runtime {
namespace {

uint64_t align(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

qnl_status find_entry(const BundleReader& reader, const char* name, uint32_t* entry, qnl_error* error) {
  *entry = 0;
  if (name == nullptr) return QNL_OK;
  for (uint32_t e = 0; e < reader.entry_point_count(); ++e) {
    if (strcmp(reader.entry_point(e).name, name) != 0) continue;
    *entry = e;
    return QNL_OK;
  }
  if constexpr (!kErrorTexts) return fail(error, QNL_UNKNOWN_NAME, "");
  Failure failure(error, QNL_UNKNOWN_NAME);
  failure.append("entry point '{}': not in the bundle, which has", name);
  for (uint32_t e = 0; e < reader.entry_point_count(); ++e)
    failure.append(" '{}'", reader.entry_point(e).name);
  return failure;
}

bool usable(const VariantView& variant, const DeviceProperties& device) {
  if (device.arch == QNL_ARCH_NONE) return true;
  return variant.arch == device.arch && variant.code_format == device.code_format &&
         (variant.required_features & ~device.features) == 0;
}

void append_variant(Failure& failure, const VariantView& variant) {
  failure.append("{}: {} (", variant.target, arch_name(variant.arch));
  failure.append_features(variant.arch, variant.required_features);
  failure.append(")");
}

// companion: those of the companion CPU; null if the session has none.
qnl_status pick_variant(const BundleReader& reader, const DeviceProperties& device,
                        const DeviceProperties* companion, uint32_t* picked, qnl_error* error) {
  // Picks the variant that requires most of the device, then of its companion CPU.
  uint64_t best = 0, best_companion = 0;
  bool found = false, companion_missing = false;
  for (uint32_t v = 0; v < reader.variant_count(); ++v) {
    VariantView variant = reader.variant(v);
    if (!usable(variant, device)) continue;
    uint64_t features = variant.required_features, companion_features = 0;
    if (variant.companion >= 0) {
      VariantView beside = reader.variant(static_cast<uint32_t>(variant.companion));
      if (companion == nullptr || !usable(beside, *companion)) {
        companion_missing = true;
        continue;
      }
      companion_features = beside.required_features + 1;  // none at all is less
    }
    if (found && (features != best ? features < best : companion_features <= best_companion)) continue;
    *picked = v;
    best = features;
    best_companion = companion_features;
    found = true;
  }
  if (found) return QNL_OK;
  if constexpr (!kErrorTexts) return fail(error, QNL_NO_MATCHING_VARIANT, "");
  Failure failure(error, QNL_NO_MATCHING_VARIANT);
  failure.append("device '{}': has {} (", device.name, arch_name(device.arch));
  failure.append_features(device.arch, device.features);
  failure.append("), the bundle has");
  for (uint32_t v = 0; v < reader.variant_count(); ++v) {
    VariantView variant = reader.variant(v);
    failure.append("{}", v == 0 ? " " : "; ");
    append_variant(failure, variant);
    if (variant.companion < 0) continue;
    failure.append(" with ");
    append_variant(failure, reader.variant(static_cast<uint32_t>(variant.companion)));
  }
  if (companion_missing)
    return failure.append(
        "{}",
        companion == nullptr
            ? "; part of it runs on a companion CPU: open the device with one (qnl_vulkan_options::companion)"
            : "; its companion CPU is another one");
  failure.append("; compile for this device with --target");
  return failure;
}

uint64_t size_for(const BundleReader& reader, const ArenaView& arena, const int64_t* symbols) {
  if (arena.bytes_expression < 0) return arena.bytes;
  int64_t bytes = 0;
  Evaluation result = evaluate(reader.expression(arena.bytes_expression), symbols, &bytes);
  if (result == Evaluation::kOverflow || bytes > static_cast<int64_t>(kMaxArenaBytes))
    return kMaxArenaBytes + 1;
  return result == Evaluation::kOk && bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

qnl_status check_total(const char* what, uint64_t bytes, qnl_error* error) {
  if (bytes <= kMaxArenaBytes) return QNL_OK;
  return fail(error, QNL_SYMBOL_OUT_OF_RANGE,
              "{}: its size for the symbols' capacity is beyond what any device has; name smaller values in "
              "qnl_session_options",
              what);
}

void count_items(const BundleReader& reader, SessionPlan* plan) {
  plan->command_count = reader.item_count(plan->items);
  for (uint32_t i = 0; i < plan->command_count; ++i) {
    ItemView item = reader.item(plan->items, i);
    plan->binding_count += item.binding_count;
    for (uint32_t b = 0; b < item.binding_count; ++b) {
      ArenaKind kind = reader.arena(reader.binding(plan->items, i, b).arena).kind;
      if (kind == ArenaKind::kInput || kind == ArenaKind::kOutput) plan->io_binding_count += 1;
    }
    plan->item_symbol_count += item.symbol_count;
    plan->runtime_site_count += list_runtime_sites(reader, *plan, i, item, 0, nullptr);
    if (is_control(item.kind)) plan->control_count += 1;
    if (item.signature[0] != '\0') {
      plan->custom_count += 1;
      plan->custom_tensor_count += item.binding_count;
    }
    if (!is_dispatch(item.kind)) continue;
    uint64_t scratch = reader.kernel(variant_of(*plan, item), item.kernel).scratch_bytes;
    uint64_t& most = item.kind == QNL_ITEM_COMPANION_DISPATCH ? plan->max_companion_scratch_bytes
                                                              : plan->max_scratch_bytes;
    if (scratch > most) most = scratch;
  }
}

}  // namespace

uint64_t arena_size(const BundleReader& reader, uint32_t arena, const int64_t* symbols) {
  return size_for(reader, reader.arena(arena), symbols);
}

uint32_t list_runtime_sites(const BundleReader& reader, const SessionPlan& plan, uint32_t command,
                            const ItemView& item, uint32_t first_symbol, RuntimeSite* sites) {
  uint32_t count = 0;
  auto add = [&](int32_t expression, uint32_t target) {
    if (!reader.uses_runtime_symbols(expression)) return;
    if (sites != nullptr) sites[count] = {command, expression, target, reader.runtime_mask(expression), 0};
    count += 1;
  };
  add(item.workgroups_expression, RuntimeSite::kWorkgroups);
  add(item.copy_bytes_expression, RuntimeSite::kCopyBytes);
  for (uint32_t i = 0; i < item.symbol_count; ++i)
    add(reader.item_symbol(plan.items, command, i), first_symbol + i);
  return count;
}

uint64_t place_arenas(const BundleReader& reader, const SessionPlan& plan, Block block,
                      const ArenaSizes& sizes, DeviceRange* ranges, const DeviceArena* in) {
  uint64_t end = 0;
  auto place = [&](uint32_t index) {
    ArenaView arena = reader.arena(index);
    uint64_t offset =
        align(end, arena.alignment < QNL_DEFAULT_ALIGNMENT ? QNL_DEFAULT_ALIGNMENT : arena.alignment);
    if (ranges != nullptr) ranges[index] = {in, offset};
    end = offset + (sizes.bytes != nullptr ? sizes.bytes[index] : size_for(reader, arena, sizes.symbols));
  };
  switch (block) {
    case Block::kWorkspace:
    case Block::kShared:
      for (uint32_t i = 0; i < reader.workspace_count(plan.items); ++i) {
        uint32_t workspace = reader.workspace(plan.items, i);
        if (reader.arena(workspace).host_access == (block == Block::kShared)) place(workspace);
      }
      break;
    case Block::kState:
      for (uint32_t a = 0; a < plan.arena_count; ++a)
        if (reader.arena(a).kind == ArenaKind::kState) place(a);
      break;
    case Block::kSlots:
      for (uint32_t s = 0; s < plan.slot_count; ++s) {
        bool input = s < plan.input_count;
        qnl_tensor tensor;
        uint32_t arena = 0;
        reader.tensor(plan.entry, input ? QNL_INPUT : QNL_OUTPUT, input ? s : s - plan.input_count, &tensor,
                      &arena, nullptr);
        place(arena);
      }
      break;
  }
  return end;
}

namespace {

struct SessionPart {
  uint16_t pointer;  // where in qnl_session
  uint16_t count;    // where in SessionPlan
  uint32_t bytes;    // of one
};
constexpr SessionPart kSessionParts[] = {
    {offsetof(qnl_session, arenas), offsetof(SessionPlan, arena_count), sizeof(DeviceRange)},
    {offsetof(qnl_session, constants), offsetof(SessionPlan, arena_count), sizeof(DeviceArena)},
    {offsetof(qnl_session, arena_bytes), offsetof(SessionPlan, arena_count), sizeof(uint64_t)},
    {offsetof(qnl_session, slot_bytes), offsetof(SessionPlan, arena_count), sizeof(uint64_t)},
    {offsetof(qnl_session, slots), offsetof(SessionPlan, slot_count), sizeof(Slot)},
    {offsetof(qnl_session, commands), offsetof(SessionPlan, command_count), sizeof(Command)},
    {offsetof(qnl_session, bindings), offsetof(SessionPlan, binding_count), sizeof(DeviceRange)},
    {offsetof(qnl_session, binding_bytes), offsetof(SessionPlan, binding_count), sizeof(uint64_t)},
    {offsetof(qnl_session, access), offsetof(SessionPlan, binding_count), sizeof(Access)},
    {offsetof(qnl_session, io_bindings), offsetof(SessionPlan, io_binding_count),
     sizeof(qnl_session::IoBinding)},
    {offsetof(qnl_session, symbols.now), offsetof(SessionPlan, symbol_count), 4 * sizeof(int64_t)},
    {offsetof(qnl_session, item_symbols), offsetof(SessionPlan, item_symbol_count), sizeof(int64_t)},
    {offsetof(qnl_session, runtime_sites), offsetof(SessionPlan, runtime_site_count), sizeof(RuntimeSite)},
    {offsetof(qnl_session, controls), offsetof(SessionPlan, control_count), sizeof(Control)},
    {offsetof(qnl_session, custom_calls), offsetof(SessionPlan, custom_count), sizeof(CustomCall)},
    {offsetof(qnl_session, custom_tensors), offsetof(SessionPlan, custom_tensor_count), sizeof(qnl_tensor)},
};

}  // namespace

uint64_t place_parts(const SessionPlan& plan, qnl_session* s) {
  uint64_t at = align(sizeof(qnl_session), 64);
  for (const SessionPart& part : kSessionParts) {
    void* place = reinterpret_cast<char*>(s) + at;
    if (s != nullptr) memcpy(reinterpret_cast<char*>(s) + part.pointer, &place, sizeof place);
    uint32_t count = 0;
    memcpy(&count, reinterpret_cast<const char*>(&plan) + part.count, sizeof count);
    at = align(at + uint64_t{count} * part.bytes, 64);
  }
  uint64_t recording = at;
  uint64_t companion_recording = align(recording + plan.recording_bytes, 64);
  if (s != nullptr) {
    s->recording_memory = reinterpret_cast<char*>(s) + recording;
    s->companion_recording_memory = reinterpret_cast<char*>(s) + companion_recording;
    s->symbols.next = s->symbols.now + plan.symbol_count;
    s->symbols.declared = s->symbols.next + plan.symbol_count;
    s->symbols.capacity = s->symbols.declared + plan.symbol_count;
  }
  return align(companion_recording + plan.companion_recording_bytes, 64);
}

namespace {
// A maximum that somebody meant, and for which memory is made from the start; larger ones are mere bounds.
constexpr int64_t kLargestPlanned = int64_t{1} << 16;
}  // namespace

qnl_status capacity_values(const BundleReader& reader, const qnl_symbol_value* named, uint32_t count,
                           int64_t* symbols, qnl_error* error) {
  if (named == nullptr && count != 0)
    return fail(error, QNL_INVALID_ARGUMENT, "symbols: expected {} values", count);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t symbol = 0;
    qnl_status status = find_symbol(reader, named[i].name, &symbol, error);
    if (status == QNL_OK) status = check_symbol(reader, symbol, named[i].value, nullptr, {"capacity"}, error);
    if (status != QNL_OK) return status;
    symbols[symbol] = named[i].value;
  }
  for (uint32_t i = 0; i < reader.symbol_count(); ++i) {
    SymbolView symbol = reader.symbol(i);
    if (symbol.runtime || symbols[i] != kUnset) continue;
    bool planned = symbol.max <= kLargestPlanned;
    // the multiple in the range next to that end; the range's end itself when it has none
    int64_t rest = (planned ? symbol.max : symbol.min) % symbol.multiple_of;
    symbols[i] = planned ? symbol.max - rest : symbol.min;
    if (!planned && rest != 0 && symbol.min <= symbol.max - (symbol.multiple_of - rest))
      symbols[i] = symbol.min + (symbol.multiple_of - rest);
    if (symbols[i] < symbol.min) symbols[i] = symbol.min;
  }
  return QNL_OK;
}

qnl_status plan_session(const BundleReader& reader, Device* device, const qnl_session_options& options,
                        SessionPlan* plan, qnl_error* error) {
  *plan = {};
  if (qnl_status status = find_entry(reader, options.entry_point, &plan->entry, error); status != QNL_OK)
    return status;
  DeviceProperties properties, companion;
  device->table->properties(device, &properties);
  Device* beside = device->companion;
  if (beside != nullptr) beside->table->properties(beside, &companion);
  qnl_status status =
      pick_variant(reader, properties, beside == nullptr ? nullptr : &companion, &plan->variant, error);
  if (status != QNL_OK) return status;
  plan->items = reader.plan(plan->entry, plan->variant);
  plan->companion_variant = reader.variant(plan->variant).companion;

  EntryPointView entry = reader.entry_point(plan->entry);
  plan->arena_count = reader.arena_count();
  plan->input_count = entry.input_count;
  plan->slot_count = entry.input_count + entry.output_count;
  plan->alignment = properties.arena_alignment;
  for (uint32_t a = 0; a < plan->arena_count; ++a) {
    ArenaView arena = reader.arena(a);
    // Whatever this plan does: sessions of other entry points may share the states.
    plan->companion_uses_state |= arena.kind == ArenaKind::kState && arena.host_access;
    if (arena.kind != ArenaKind::kConstants && arena.alignment > plan->alignment)
      plan->alignment = arena.alignment;
  }
  count_items(reader, plan);
  int64_t symbols[kMaxSymbols];
  plan->symbol_count = reader.symbol_count();
  for (uint32_t i = 0; i < plan->symbol_count; ++i) symbols[i] = kUnset;
  status = capacity_values(reader, options.symbols, options.symbol_count, symbols, error);
  if (status != QNL_OK) return status;
  ArenaSizes sizes = {nullptr, symbols};
  plan->workspace_bytes = place_arenas(reader, *plan, Block::kWorkspace, sizes, nullptr, nullptr);
  plan->shared_bytes = place_arenas(reader, *plan, Block::kShared, sizes, nullptr, nullptr);
  plan->state_bytes = place_arenas(reader, *plan, Block::kState, sizes, nullptr, nullptr);
  plan->io_bytes = place_arenas(reader, *plan, Block::kSlots, sizes, nullptr, nullptr);
  status = check_total("workspace", plan->workspace_bytes, error);
  if (status == QNL_OK) status = check_total("workspace", plan->shared_bytes, error);
  if (status == QNL_OK && options.io_bound_by_caller == 0)
    status = check_total("inputs and outputs", plan->io_bytes, error);
  if (status != QNL_OK) return status;

  CommandList counts;
  counts.command_count = plan->command_count;
  counts.binding_count = plan->binding_count;
  counts.max_scratch_bytes = plan->max_scratch_bytes;
  plan->recording_bytes = device->table->record_bytes(device, counts);
  counts.max_scratch_bytes = plan->max_companion_scratch_bytes;
  if (plan->companion_variant >= 0)
    plan->companion_recording_bytes = beside->table->record_bytes(beside, counts);
  plan->session_bytes = place_parts(*plan, nullptr);
  return QNL_OK;
}

}  // namespace quernel::runtime
