// Descriptions of devices and sessions. Programs that do not ask for one do not link this.
#include "core/describe.h"

#include <string.h>

#include "core/feature_names.h"
#include "core/page_words.h"
#include "core/session.h"
#include "schemas/utf8.h"

namespace quernel::runtime {

Description::Description(qnl_text_form form, char* out, uint64_t capacity)
    : json_(form == QNL_JSON), out_(out), capacity_(out == nullptr ? 0 : capacity) {
  if (json_) put('{');
}

void Description::put(char c) {
  if (used_ + 1 < capacity_) out_[used_] = c;
  ++used_;
}

void Description::put(const char* text) {
  for (; *text != '\0'; ++text) put(*text);
}

void Description::put_hex(uint32_t value, uint32_t digits) {
  while (digits > 0) put("0123456789abcdef"[value >> 4 * --digits & 15]);
}

// As a JSON string, or as text on one line; what does not show as what it is is escaped.
void Description::put_name(const char* text, bool json) {
  size_t bytes = strlen(text);
  if (json) put('"');
  while (bytes > 0) {
    uint32_t code = 0, length = utf8_character(text, bytes, &code), step = length == 0 ? 1 : length;
    if (length > 0 && shows_as_it_is(code)) {
      if (json && (code == '"' || code == '\\')) put('\\');
      for (uint32_t i = 0; i < length; ++i) put(text[i]);
    } else if (!json) {
      put("\\x");
      for (uint32_t i = 0; i < step; ++i) put_hex(static_cast<unsigned char>(text[i]), 2);
    } else if (length == 0) {
      put("\\ufffd");
    } else {
      bool pair = code >= 0x10000;
      put("\\u");
      put_hex(pair ? 0xD7C0 + (code >> 10) : code, 4);
      if (pair) put("\\u"), put_hex(0xDC00 + (code & 0x3FF), 4);
    }
    text += step;
    bytes -= step;
  }
  if (json) put('"');
}

void Description::put_number(uint64_t value) {
  char digits[20];
  uint32_t count = 0;
  do digits[count++] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  while (count > 0) put(digits[--count]);
}

void Description::begin_value(const char* name, const char* colon) {
  Level& level = levels_[depth_];
  if (json_) {
    if (!level.empty) put(", ");
    if (name != nullptr) put_name(name, true), put(": ");
  } else if (level.on_line) {
    if (!level.empty) put(level.list ? "; " : ", ");
    if (name != nullptr) put(name), put(' ');
  } else {
    for (uint32_t i = 0; i < depth_; ++i) put("  ");
    if (name != nullptr) put(name), put(colon);
  }
  level.empty = false;
}

void Description::end_value() {
  if (!json_ && !levels_[depth_].on_line) put('\n');
}

void Description::open(const char* name, bool list) {
  bool on_line = levels_[depth_].on_line || levels_[depth_].list;
  begin_value(name, ":");
  if (json_) {
    put(list ? '[' : '{');
  } else if (!on_line) {
    put('\n');
  } else if (list) {
    put('[');
  }
  if (depth_ + 1 < kDepth) ++depth_;
  levels_[depth_] = {list, on_line, true};
}

void Description::close() {
  Level level = levels_[depth_--];
  if (json_) {
    put(level.list ? ']' : '}');
  } else if (level.on_line) {
    if (level.list) put(']');
    end_value();
  }
}

uint64_t Description::finish() {
  if (json_) put('}');
  put('\0');
  if (used_ > capacity_ && capacity_ > 0) out_[capacity_ - 1] = '\0';
  if (used_ <= capacity_) out_[used_ - 1] = '\0';
  return used_;
}

void Description::text(const char* name, const char* value) {
  begin_value(name);
  put_name(value, json_);
  end_value();
}

void Description::number(const char* name, uint64_t value) {
  begin_value(name);
  if (value == ~uint64_t{0}) {
    put(json_ ? "null" : "no limit known");
  } else {
    put_number(value);
  }
  end_value();
}

void Description::signed_number(const char* name, int64_t value) {
  begin_value(name);
  if (value < 0) put('-');
  put_number(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  end_value();
}

void Description::flag(const char* name, bool value) {
  begin_value(name);
  put(json_ ? (value ? "true" : "false") : (value ? "yes" : "no"));
  end_value();
}

void Description::features(const char* name, uint32_t arch, uint64_t features) {
  if (json_) open_list(name);
  for (uint32_t bit = 0; bit < 64 && json_; ++bit) {
    if ((features >> bit & 1) == 0) continue;
    char one[32];
    TextBuilder(one, sizeof one).append_features(arch, uint64_t{1} << bit);
    text(nullptr, one);
  }
  if (json_) return close();
  char all[512];
  TextBuilder(all, sizeof all).append_features(arch, features);
  text(name, all);
}

void Description::type(const char* name, const qnl_tensor& tensor) {
  char type[256];
  TextBuilder(type, sizeof type).append_type(tensor.dtype, tensor.rank, tensor.shape);
  text(name, type);
}

namespace {

const char* block_of(const qnl_session* s, const DeviceArena* arena) {
  if (arena == nullptr) return "none";
  if (arena == &s->workspace) return "workspace";
  if (arena == &s->shared) return "shared workspace";
  if (arena == &s->io) return "slots";
  if (arena == &s->state || (s->state_owner != nullptr && arena == &s->state_owner->state)) return "state";
  return arena >= s->constants && arena < s->constants + s->plan.arena_count ? "constants" : "the caller's";
}

void describe_arenas(const qnl_session* s, Description& out) {
  constexpr const char* kKinds[] = {"constants", "workspace", "input", "output", "state"};
  out.open_list("arenas");
  for (uint32_t a = 0; a < s->plan.arena_count; ++a) {
    const DeviceRange& range = s->arenas[a];
    if (range.arena == nullptr) continue;
    out.open_object(nullptr);
    out.number("arena", a);
    out.text("kind", kKinds[static_cast<uint32_t>(s->bundle->reader.arena(a).kind)]);
    out.number("bytes", s->arena_bytes[a]);
    out.text("block", block_of(s, range.arena));
    out.number("offset", range.offset);
    out.close();
  }
  out.close();
}

void describe_slots(const qnl_session* s, qnl_tensor_role role, const char* name, Description& out) {
  out.open_list(name);
  for (uint32_t i = 0; i < s->plan.slot_count; ++i) {
    const Slot& slot = s->slots[i];
    if (slot.role != role) continue;
    out.open_object(nullptr);
    out.text("name", slot.tensor.name);
    out.type("type", slot.tensor);
    out.number("arena", slot.arena);
    out.flag("bound", slot.bound);
    if (role == QNL_INPUT) out.flag("set", slot.is_set);
    out.close();
  }
  out.close();
}

void describe_symbols(const qnl_session* s, Description& out) {
  out.open_list("symbols");
  for (uint32_t i = 0; i < s->plan.symbol_count; ++i) {
    SymbolView symbol = s->bundle->reader.symbol(i);
    out.open_object(nullptr);
    out.text("name", symbol.name);
    if (s->symbols.now[i] != kUnset) out.signed_number("value", s->symbols.now[i]);
    if (s->symbols.capacity[i] != kUnset) out.signed_number("memory_for", s->symbols.capacity[i]);
    out.flag("runtime", symbol.runtime);
    out.close();
  }
  out.close();
}

// Those of `variant` that items use, which run on the companion CPU or on the device itself.
void describe_kernels(const qnl_session* s, uint32_t variant, bool on_companion, Description& out) {
  const BundleReader& reader = s->bundle->reader;
  const uint32_t kernels = reader.variant(variant).kernel_count;
  PageWords items;  // of each kernel
  if (kernels > 0 && !items.allocate(kernels)) return;
  for (uint32_t c = 0; c < s->plan.command_count; ++c) {
    const Command& command = s->commands[c];
    if (command.kind == (on_companion ? QNL_ITEM_COMPANION_DISPATCH : QNL_ITEM_DISPATCH))
      items[command.kernel] += 1;
  }
  out.open_list(on_companion ? "companion_kernels" : "kernels");
  for (uint32_t k = 0; k < kernels; ++k) {
    uint32_t uses = items[k];
    if (uses == 0) continue;  // of other entry points
    KernelView kernel = reader.kernel(variant, k);
    out.open_object(nullptr);
    out.number("kernel", k);
    out.text("name", kernel.name);
    out.number("items", uses);
    out.number("scratch_bytes", kernel.scratch_bytes);
    out.close();
  }
  out.close();
}

void describe_items(const qnl_session* s, Description& out) {
  constexpr const char* kAccess[] = {"read", "write", "update"};
  out.open_list("items");
  for (uint32_t c = 0; c < s->plan.command_count; ++c) {
    const Command& command = s->commands[c];
    qnl_item_info info;
    if (qnl_session_get_item(s, c, &info) != QNL_OK) break;
    out.open_object(nullptr);
    out.number("item", c);
    out.text("name", info.name);
    out.text("node", info.source_node);
    if (is_dispatch(info.kind)) {
      out.number("kernel", command.kernel);
      out.number("workgroups", command.workgroups);
      out.flag("on_companion", command.kind == QNL_ITEM_COMPANION_DISPATCH);
    }
    out.open_list("bindings");
    for (uint32_t b = command.first_binding; b < command.first_binding + command.binding_count; ++b) {
      BindingView binding = s->bundle->reader.binding(s->plan.items, c, b - command.first_binding);
      out.open_object(nullptr);
      out.number("arena", binding.arena);
      out.number("offset", s->bindings[b].arena == nullptr ? 0 : s->bindings[b].offset);
      out.number("bytes", s->binding_bytes[b]);
      out.text("access", kAccess[static_cast<uint32_t>(s->access[b])]);
      out.close();
    }
    out.close();
    out.close();
  }
  out.close();
}

void describe_session(const qnl_session* s, Description& out) {
  const BundleReader& reader = s->bundle->reader;
  DeviceProperties device;
  s->device->table->properties(s->device, &device);
  out.text("entry_point", reader.entry_point(s->plan.entry).name);
  out.text("device", device.name);
  out.text("target", reader.variant(s->plan.variant).target);
  if (s->plan.companion_variant >= 0)
    out.text("companion_target", reader.variant(static_cast<uint32_t>(s->plan.companion_variant)).target);
  out.flag("child", s->parent != nullptr);
  out.flag("shares_state", s->state_owner != nullptr);
  out.number("children", __atomic_load_n(&s->holders, __ATOMIC_RELAXED) - 1);
  out.flag("placed", s->resolved);  // else bindings are those of the next run, not yet known
  out.open_object("memory");
  out.number("session_bytes", s->plan.session_bytes);
  out.number("workspace_bytes", s->workspace.bytes);
  out.number("shared_workspace_bytes", s->shared.bytes);
  out.number("state_bytes", s->state_owner != nullptr ? 0 : s->state.bytes);
  out.number("slot_bytes", s->io.bytes);
  out.number("constants_bytes", reader.constants_bytes());
  out.number("code_bytes", reader.variant(s->plan.variant).code_bytes);
  out.close();
  out.open_object("recording");
  out.number("items", s->plan.command_count);
  out.number("controls", s->plan.control_count);
  out.number("bindings", s->plan.binding_count);
  out.number("bytes", s->plan.recording_bytes);
  out.number("scratch_bytes", s->plan.max_scratch_bytes);
  out.number("companion_bytes", s->plan.companion_recording_bytes);
  out.close();
  describe_symbols(s, out);
  describe_slots(s, QNL_INPUT, "inputs", out);
  describe_slots(s, QNL_OUTPUT, "outputs", out);
  describe_arenas(s, out);
  describe_kernels(s, s->plan.variant, false, out);
  if (s->plan.companion_variant >= 0)
    describe_kernels(s, static_cast<uint32_t>(s->plan.companion_variant), true, out);
  describe_items(s, out);
}

}  // namespace
}  // namespace quernel::runtime

using quernel::runtime::CodeFormat;
using quernel::runtime::Description;
using quernel::runtime::DeviceProperties;

extern "C" {

uint64_t qnl_device_describe(const qnl_device* device, qnl_text_form form, char* text, uint64_t bytes) {
  DeviceProperties p;
  device->table->properties(device, &p);
  Description out(form, text, bytes);
  out.text("name", p.name);
  out.text("arch", quernel::runtime::arch_name(p.arch));
  out.features("features", p.arch, p.features);
  out.number("threads", p.threads);
  out.text("code", p.code_format == CodeFormat::kSpirv ? "SPIR-V" : "ELF image");
  out.flag("queue", p.has_queue);
  out.flag("thread", device->thread != nullptr);
  out.flag("software", p.is_software);
  out.flag("companion", device->companion != nullptr);
  out.open_object("memory");
  out.number("used_bytes", device->table->memory_used(device));
  out.number("bytes", p.memory_bytes);
  out.number("max_block_bytes", p.max_arena_bytes);
  out.number("max_binding_bytes", p.max_binding_bytes);
  out.number("alignment", p.arena_alignment);
  out.close();
  if (device->table->describe != nullptr) device->table->describe(device, &out);
  return out.finish();
}

uint64_t qnl_session_describe(const qnl_session* session, qnl_text_form form, char* text, uint64_t bytes) {
  Description out(form, text, bytes);
  quernel::runtime::describe_session(session, out);
  return out.finish();
}

}  // extern "C"
