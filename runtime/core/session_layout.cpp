#include <string.h>

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

// Whether `a` asks for more than `b`, of the device and then of the processor beside it.
bool is_better(const BundleReader& reader, const VariantView& a, const VariantView& b) {
  if (a.required_features != b.required_features) return a.required_features > b.required_features;
  if (a.host < 0 || b.host < 0) return a.host >= 0 && b.host < 0;
  return reader.variant(static_cast<uint32_t>(a.host)).required_features >
         reader.variant(static_cast<uint32_t>(b.host)).required_features;
}

void append_variant(Failure& failure, const VariantView& variant) {
  failure.append("{}: {} (", variant.target, arch_name(variant.arch));
  append_features(failure, variant.arch, variant.required_features);
  failure.append(")");
}

// host: of the processor beside the device; null where the session was given none.
qnl_status pick_variant(const BundleReader& reader, const DeviceProperties& device,
                        const DeviceProperties* host, uint32_t* picked, qnl_error* error) {
  bool found = false, host_missing = false;
  for (uint32_t v = 0; v < reader.variant_count(); ++v) {
    VariantView variant = reader.variant(v);
    if (!usable(variant, device)) continue;
    if (variant.host >= 0 &&
        (host == nullptr || !usable(reader.variant(static_cast<uint32_t>(variant.host)), *host))) {
      host_missing = true;
      continue;
    }
    if (found && !is_better(reader, variant, reader.variant(*picked))) continue;
    *picked = v;
    found = true;
  }
  if (found) return QNL_OK;
  Failure failure(error, QNL_NO_MATCHING_VARIANT);
  failure.append("device '{}': has {} (", device.name, arch_name(device.arch));
  append_features(failure, device.arch, device.features);
  failure.append("), the bundle has");
  for (uint32_t v = 0; v < reader.variant_count(); ++v) {
    VariantView variant = reader.variant(v);
    failure.append("{}", v == 0 ? " " : "; ");
    append_variant(failure, variant);
    if (variant.host < 0) continue;
    failure.append(" with ");
    append_variant(failure, reader.variant(static_cast<uint32_t>(variant.host)));
  }
  if (host_missing)
    return failure.append(
        "{}", host == nullptr
                  ? "; part of it runs on a processor: open the device with one (qnl_vulkan_options::host)"
                  : "; the processor beside it is another one");
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

uint32_t count_runtime_sites(const BundleReader& reader, const SessionPlan& plan, uint32_t index,
                             const ItemView& item) {
  uint32_t sites = reader.uses_runtime_symbols(item.workgroups_expression) ? 1 : 0;
  if (reader.uses_runtime_symbols(item.copy_bytes_expression)) sites += 1;
  for (uint32_t i = 0; i < item.symbol_count; ++i)
    if (reader.uses_runtime_symbols(reader.item_symbol(plan.entry, plan.variant, index, i))) sites += 1;
  return sites;
}

void count_items(const BundleReader& reader, SessionPlan* plan) {
  plan->command_count = reader.item_count(plan->entry, plan->variant);
  for (uint32_t i = 0; i < plan->command_count; ++i) {
    ItemView item = reader.item(plan->entry, plan->variant, i);
    plan->binding_count += item.binding_count;
    for (uint32_t b = 0; b < item.binding_count; ++b) {
      ArenaKind kind = reader.arena(reader.binding(plan->entry, plan->variant, i, b).arena).kind;
      if (kind == ArenaKind::kInput || kind == ArenaKind::kOutput) plan->io_binding_count += 1;
    }
    plan->item_symbol_count += item.symbol_count;
    plan->runtime_site_count += count_runtime_sites(reader, *plan, i, item);
    if (item.kind > QNL_ITEM_HOST_CALLBACK) plan->control_count += 1;
    if (item.signature[0] != '\0') {
      plan->custom_count += 1;
      plan->custom_tensor_count += item.binding_count;
    }
    if (item.kind != QNL_ITEM_DISPATCH) continue;
    uint64_t scratch = reader.kernel(variant_of(*plan, item), item.kernel).scratch_bytes;
    uint64_t& most = item.on_host ? plan->max_host_scratch_bytes : plan->max_scratch_bytes;
    if (scratch > most) most = scratch;
  }
}

}  // namespace

uint64_t arena_size(const BundleReader& reader, uint32_t arena, const int64_t* symbols) {
  return size_for(reader, reader.arena(arena), symbols);
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
      for (uint32_t i = 0; i < reader.workspace_count(plan.entry, plan.variant); ++i) {
        uint32_t workspace = reader.workspace(plan.entry, plan.variant, i);
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

SessionLayout layout_session(const SessionPlan& plan) {
  SessionLayout layout;
  uint64_t at = align(sizeof(qnl_session), 64);
  auto take = [&](uint64_t count, uint64_t size) {
    uint64_t begin = at;
    at = align(at + count * size, 64);
    return begin;
  };
  layout.arenas = take(plan.arena_count, sizeof(DeviceRange));
  layout.constants = take(plan.arena_count, sizeof(DeviceArena));
  layout.arena_bytes = take(plan.arena_count, sizeof(uint64_t));
  layout.slot_bytes = take(plan.arena_count, sizeof(uint64_t));
  layout.slots = take(plan.slot_count, sizeof(Slot));
  layout.commands = take(plan.command_count, sizeof(Command));
  layout.bindings = take(plan.binding_count, sizeof(DeviceRange));
  layout.binding_bytes = take(plan.binding_count, sizeof(uint64_t));
  layout.access = take(plan.binding_count, sizeof(Access));
  layout.io_bindings = take(plan.io_binding_count, sizeof(qnl_session::IoBinding));
  layout.symbols = take(plan.symbol_count, 4 * sizeof(int64_t));
  layout.item_symbols = take(plan.item_symbol_count, sizeof(int64_t));
  layout.runtime_sites = take(plan.runtime_site_count, sizeof(RuntimeSite));
  layout.controls = take(plan.control_count, sizeof(Control));
  layout.custom_calls = take(plan.custom_count, sizeof(CustomCall));
  layout.custom_tensors = take(plan.custom_tensor_count, sizeof(qnl_tensor));
  layout.recording = take(1, plan.recording_bytes);
  layout.host_recording = take(1, plan.host_recording_bytes);
  layout.end = at;
  return layout;
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
  DeviceProperties properties, host;
  device->table->properties(device, &properties);
  Device* beside = device->host;
  if (beside != nullptr) beside->table->properties(beside, &host);
  qnl_status status =
      pick_variant(reader, properties, beside == nullptr ? nullptr : &host, &plan->variant, error);
  if (status != QNL_OK) return status;
  plan->host_variant = reader.variant(plan->variant).host;

  EntryPointView entry = reader.entry_point(plan->entry);
  plan->arena_count = reader.arena_count();
  plan->input_count = entry.input_count;
  plan->slot_count = entry.input_count + entry.output_count;
  plan->alignment = properties.arena_alignment;
  for (uint32_t a = 0; a < plan->arena_count; ++a) {
    ArenaView arena = reader.arena(a);
    // Whatever this plan does: sessions of other entry points may share the states.
    plan->host_uses_state |= arena.kind == ArenaKind::kState && arena.host_access;
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
  counts.max_scratch_bytes = plan->max_host_scratch_bytes;
  if (plan->host_variant >= 0) plan->host_recording_bytes = beside->table->record_bytes(beside, counts);
  plan->session_bytes = layout_session(*plan).end;
  return QNL_OK;
}

}  // namespace quernel::runtime
