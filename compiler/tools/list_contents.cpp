// What a bundle holds, as text or JSON. Looks behind the C interface, at the arenas and bindings that
// runtime/core's reader has checked.
#include "list_contents.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "command.h"
#include "core/bundle.h"
#include "feature_names.h"
#include "json.h"
#include "print.h"

namespace quernel::tools {
namespace {

using runtime::ArenaKind;
using runtime::ArenaView;
using runtime::BindingView;
using runtime::BundleReader;
using runtime::ItemView;
using runtime::SymbolView;
using runtime::VariantView;
using Options = ListOptions;

constexpr qnl_tensor_role kRoles[] = {QNL_INPUT, QNL_OUTPUT, QNL_STATE};
constexpr const char* kRoleNames[] = {"input", "output", "state"};

const char* text(ArenaKind kind) {
  constexpr const char* kNames[] = {"constants", "workspace", "input", "output", "state"};
  return kNames[static_cast<size_t>(kind)];
}

const char* text(qnl_item_kind kind) {
  constexpr const char* kNames[] = {"dispatch", "copy", "synchronize", "callback",
                                    "read",     "loop", "branch",      "companion"};
  return kNames[static_cast<size_t>(kind)];
}

const char* text(runtime::Access access) {
  constexpr const char* kNames[] = {"read", "write", "update"};
  return kNames[static_cast<size_t>(access)];
}

uint32_t tensor_count(const BundleReader& reader, uint32_t entry, qnl_tensor_role role) {
  runtime::EntryPointView view = reader.entry_point(entry);
  return role == QNL_INPUT ? view.input_count : role == QNL_OUTPUT ? view.output_count : view.state_count;
}

// "(batch * 2)"
std::string expression_text(const BundleReader& reader, int32_t expression) {
  char text[512];
  runtime::TextBuilder out(text, sizeof text);
  reader.append_expression(out, expression);
  return text;
}

// An expression, or the constant that holds where there is none.
std::string size_text(const BundleReader& reader, int32_t expression, uint64_t constant) {
  return expression >= 0 ? expression_text(reader, expression) : std::to_string(constant);
}

std::string symbol_name(const BundleReader& reader, int32_t symbol) {
  return symbol < 0 ? "" : reader.symbol(static_cast<uint32_t>(symbol)).name;
}

// Tensor `index` of a signature.
std::string shape_text(const BundleReader& reader, uint32_t entry, qnl_tensor_role role, uint32_t index,
                       const qnl_tensor& t) {
  std::string out = std::string(qnl_dtype_name(t.dtype)) + "[";
  for (uint32_t d = 0; d < t.rank; ++d)
    out += (d == 0 ? "" : ",") +
           size_text(reader, reader.dim_expression(entry, role, index, d), static_cast<uint64_t>(t.shape[d]));
  return out + "]";
}

// "f32[1,3]"
std::string shape_text(const qnl_tensor& t) {
  return fmt::format("{}[{}]", qnl_dtype_name(t.dtype), fmt::join(t.shape, t.shape + t.rank, ","));
}

// What a read, loop or branch does: "n", "i < n while go, to 7", "if n, else from 5, to 7".
std::string control_text(const BundleReader& reader, const ItemView& item) {
  std::string condition;
  if (item.condition_expression >= 0) condition = expression_text(reader, item.condition_expression);
  switch (item.kind) {
    case QNL_ITEM_READ_SYMBOL:
      return fmt::format("{} ({})", symbol_name(reader, item.symbol), qnl_dtype_name(item.dtype));
    case QNL_ITEM_LOOP:
      return fmt::format(
          "{}{}{}, to {}", symbol_name(reader, item.symbol),
          item.count_expression < 0 ? "" : " < " + expression_text(reader, item.count_expression),
          condition.empty() ? "" : " while " + condition, item.end);
    case QNL_ITEM_BRANCH:
      return fmt::format("if {}, else from {}, to {}", condition, item.else_begin, item.end);
    default:
      return "";
  }
}

// Values that the kernel gets: "n, (n * 2)".
std::string item_symbols_text(const BundleReader& reader, uint32_t entry, uint32_t variant, uint32_t index,
                              const ItemView& item) {
  std::string out;
  for (uint32_t s = 0; s < item.symbol_count; ++s)
    out += (s == 0 ? "" : ", ") +
           expression_text(reader, reader.item_symbol(reader.plan(entry, variant), index, s));
  return out;
}

// The variant, or its companion, that has the item's kernel.
uint32_t image_of(const BundleReader& reader, uint32_t variant, const ItemView& item) {
  return item.kind == QNL_ITEM_COMPANION_DISPATCH ? static_cast<uint32_t>(reader.variant(variant).companion)
                                                  : variant;
}

std::string item_name(const BundleReader& reader, uint32_t variant, const ItemView& item) {
  if (runtime::is_dispatch(item.kind))
    return reader.kernel(image_of(reader, variant, item), item.kernel).name;
  return item.kind == QNL_ITEM_HOST_CALLBACK ? item.callback : text(item.kind);
}

// Bytes of all arenas of a kind.
uint64_t arena_bytes(const BundleReader& reader, ArenaKind kind) {
  uint64_t bytes = 0;
  for (uint32_t a = 0; a < reader.arena_count(); ++a)
    if (reader.arena(a).kind == kind) bytes += reader.arena(a).bytes;
  return bytes;
}

// What a kernel does in one plan, all its dispatches together.
struct KernelUse {
  uint32_t dispatches = 0;
  uint64_t workgroups = 0, flops = 0, bytes = 0;
  std::string node;
};

// By image, which is the variant or its companion, and kernel.
std::map<std::pair<uint32_t, uint32_t>, KernelUse> kernel_uses(const BundleReader& reader, uint32_t entry,
                                                               uint32_t variant) {
  std::map<std::pair<uint32_t, uint32_t>, KernelUse> uses;
  for (uint32_t i = 0; i < reader.item_count(reader.plan(entry, variant)); ++i) {
    ItemView item = reader.item(reader.plan(entry, variant), i);
    if (!runtime::is_dispatch(item.kind)) continue;
    KernelUse& use = uses[{image_of(reader, variant, item), item.kernel}];
    if (use.dispatches++ == 0) use.node = item.source_node;
    use.workgroups += item.workgroups;
    use.flops += item.flops;
    use.bytes += item.bytes_read + item.bytes_written;
  }
  return uses;
}

// "  scale 0.5, zero point -1"; empty: the tensor has none.
std::string scale_text(const BundleReader& reader, uint32_t entry, qnl_tensor_role role, uint32_t index) {
  int32_t zero_point;
  float scale = reader.scale(entry, role, index, &zero_point);
  return scale == 0 ? "" : fmt::format("  scale {}, zero point {}", scale, zero_point);
}

void print_entry(const BundleReader& reader, uint32_t entry) {
  print("\nentry point {}\n", reader.entry_point(entry).name);
  for (qnl_tensor_role role : kRoles)
    for (uint32_t i = 0; i < tensor_count(reader, entry, role); ++i) {
      qnl_tensor tensor;
      reader.tensor(entry, role, i, &tensor, nullptr, nullptr);
      std::string shape = shape_text(reader, entry, role, i, tensor);
      std::string bytes = "  " + format_bytes(tensor.bytes);
      for (uint32_t d = 0; d < tensor.rank; ++d)
        if (tensor.shape[d] < 0) bytes.clear();
      print("  {:<7} {}  {}{}{}\n", kRoleNames[role], tensor.name, shape, bytes,
            scale_text(reader, entry, role, i));
    }
}

void print_symbols(const BundleReader& reader) {
  if (reader.symbol_count() > 0) print("\nsymbols\n");
  for (uint32_t i = 0; i < reader.symbol_count(); ++i) {
    SymbolView s = reader.symbol(i);
    std::string to = s.max_expression >= 0 ? "to " + expression_text(reader, s.max_expression)
                     : s.max == INT64_MAX  ? "up"
                                           : "to " + std::to_string(s.max);
    if (s.multiple_of != 1) to += ", a multiple of " + std::to_string(s.multiple_of);
    print("  {}  {} {}{}\n", s.name, s.min, to, s.runtime ? ", computed during the run" : "");
  }
}

void print_memory(const BundleReader& reader) {
  print("\nmemory\n");
  print("  weights    {:>9}  mapped from the file, never copied\n",
        format_bytes(arena_bytes(reader, ArenaKind::kConstants)));
  print("  workspace  {:>9}  contents matter within a run only\n",
        format_bytes(arena_bytes(reader, ArenaKind::kWorkspace)));
  print("  state      {:>9}  kept between runs\n", format_bytes(arena_bytes(reader, ArenaKind::kState)));
  print("  in, out    {:>9}  unless the caller binds memory of his own\n",
        format_bytes(arena_bytes(reader, ArenaKind::kInput) + arena_bytes(reader, ArenaKind::kOutput)));
  if (reader.symbol_count() > 0) print("  not counting what depends on symbols\n");
  print("\narenas\n");
  for (uint32_t a = 0; a < reader.arena_count(); ++a) {
    ArenaView arena = reader.arena(a);
    print("  {:>3}  {:<9}  {:>12} bytes, aligned to {}\n", a, text(arena.kind),
          size_text(reader, arena.bytes_expression, arena.bytes), arena.alignment);
  }
}

// What an output may be off by.
std::string tolerance_text(const qnl_test_tensor& t) {
  std::string text = fmt::format("within rtol {:g}, atol {:g}", t.rtol, t.atol);
  if (t.mean_atol >= 0) text += fmt::format(", mean error {:g}", t.mean_atol);
  return text + (t.top1 ? ", same top 1" : "");
}

bool is_float(qnl_dtype dtype) {
  return dtype == QNL_F32 || dtype == QNL_F16 || dtype == QNL_BF16 || dtype == QNL_F64 ||
         dtype == QNL_F8E4M3 || dtype == QNL_F8E5M2;
}

void print_tests(const BundleReader& reader) {
  if (reader.test_count() > 0) print("\ntest vectors\n");
  for (uint32_t i = 0; i < reader.test_count(); ++i) {
    runtime::TestView test = reader.test(i);
    print("  {} of {}\n", test.name, reader.entry_point(test.entry).name);
    for (uint32_t j = 0; j < test.tensor_count; ++j) {
      qnl_test_tensor t;
      reader.test_tensor(i, j, &t);
      bool output = t.role == QNL_OUTPUT;
      print("    {:<7} {}  {}  {}{}\n", kRoleNames[t.role], t.tensor.name, shape_text(t.tensor),
            format_bytes(t.tensor.bytes),
            !output                    ? ""
            : is_float(t.tensor.dtype) ? ", " + tolerance_text(t)
                                       : ", exactly");
    }
  }
}

// Of the variant, or of its companion.
void print_kernels(const BundleReader& reader, uint32_t variant, uint32_t image) {
  print("  {:<24} {:>8} {:>8} {:>10} {:>11} {:>9} {:>10}  {}\n", "kernel", "stack", "scratch", "dispatches",
        "workgroups", "MFLOP", "traffic", "first node");
  std::map<std::pair<uint32_t, uint32_t>, KernelUse> uses = kernel_uses(reader, 0, variant);
  for (uint32_t k = 0; k < reader.variant(image).kernel_count; ++k) {
    const KernelUse& use = uses[{image, k}];
    uint32_t stack = reader.kernel(image, k).stack_bytes;
    print("  {:<24} {:>8} {:>8} {:>10} {:>11} {:>9.2f} {:>10}  {}\n", reader.kernel(image, k).name,
          stack == 0 ? "-" : format_bytes(stack), format_bytes(reader.kernel(image, k).scratch_bytes),
          use.dispatches, use.workgroups, static_cast<double>(use.flops) / 1e6, format_bytes(use.bytes),
          use.node);
  }
}

void print_schedule(const BundleReader& reader, uint32_t entry, uint32_t variant) {
  print("\nschedule of {} for {}\n", reader.entry_point(entry).name, reader.variant(variant).target);
  if (const char* plan = reader.plan_text(reader.plan(entry, variant)); *plan != '\0') {
    fmt::print("{}", printable_lines(plan));
    return;
  }
  print("  the bundle does not hold its text; bindings as arena+offset:bytes\n");
  for (uint32_t i = 0; i < reader.item_count(reader.plan(entry, variant)); ++i) {
    ItemView item = reader.item(reader.plan(entry, variant), i);
    if (runtime::is_control(item.kind)) {
      print("  {:>4}  {:<8} {}\n", i, text(item.kind), control_text(reader, item));
    } else {
      print("  {:>4}  {:<8} {:<24} {:>6} workgroups  {:>9.3f} MFLOP  {}\n", i, text(item.kind),
            item_name(reader, variant, item), size_text(reader, item.workgroups_expression, item.workgroups),
            static_cast<double>(item.flops) / 1e6, item.source_node);
    }
    std::string bindings;
    for (uint32_t b = 0; b < item.binding_count; ++b) {
      BindingView binding = reader.binding(reader.plan(entry, variant), i, b);
      bindings += fmt::format("{}{} {}+{}:{}", b == 0 ? "" : ", ", text(binding.access), binding.arena,
                              size_text(reader, binding.offset_expression, binding.offset),
                              size_text(reader, binding.bytes_expression, binding.bytes));
    }
    if (!bindings.empty()) print("        {}\n", bindings);
    std::string symbols = item_symbols_text(reader, entry, variant, i, item);
    if (!symbols.empty()) print("        symbols {}\n", symbols);
  }
}

// The choices about a variant's kernels, as lines of a file of choices.
std::vector<std::string> choice_lines(const BundleReader& reader, uint32_t variant) {
  std::vector<std::string> lines;
  std::set<std::string> seen;
  for (uint32_t e = 0; e < reader.entry_point_count(); ++e)
    for (uint32_t i = 0; i < reader.item_count(reader.plan(e, variant)); ++i) {
      ItemView item = reader.item(reader.plan(e, variant), i);
      if (item.choice[0] == '\0') continue;
      std::string target = reader.variant(image_of(reader, variant, item)).target;
      if (seen.insert(target + " " + item.key).second)
        lines.push_back(fmt::format("{} {} = {}", target, item.key, item.choice));
    }
  return lines;
}

// Operators that the application computes, each once.
void print_custom_ops(const BundleReader& reader, uint32_t variant) {
  std::set<std::string> ops;
  for (uint32_t e = 0; e < reader.entry_point_count(); ++e)
    for (uint32_t i = 0; i < reader.item_count(reader.plan(e, variant)); ++i) {
      ItemView item = reader.item(reader.plan(e, variant), i);
      if (item.signature[0] != '\0') ops.insert(fmt::format("{}  {}", item.callback, item.signature));
    }
  for (const std::string& op : ops) print("  function of the application  {}\n", op);
}

// The companion CPU of a variant's device.
void print_companion(const BundleReader& reader, uint32_t variant, const Options& options) {
  auto companion = static_cast<uint32_t>(reader.variant(variant).companion);
  VariantView view = reader.variant(companion);
  qnl_arch arch = static_cast<qnl_arch>(view.arch);
  uint32_t items = 0;
  for (uint32_t i = 0; i < reader.item_count(reader.plan(0, variant)); ++i)
    items += reader.item(reader.plan(0, variant), i).kind == QNL_ITEM_COMPANION_DISPATCH;
  print("  {} of these items on {}, {} image, needs {}: {} of code, {} kernels\n", items, view.target,
        arch_name(arch), feature_text(arch, view.required_features), format_bytes(view.code_bytes),
        view.kernel_count);
  if (options.kernels) print_kernels(reader, variant, companion);
}

void print_text(const BundleReader& reader, const Options& options) {
  print("{}: {}, schema {}, made by {}\n", options.name, format_bytes(reader.file_bytes()),
        reader.schema_version(), reader.producer());
  for (uint32_t i = 0; i < reader.property_count(); ++i)
    print("  {}: {}\n", reader.property_name(i), first_line(reader.property_value(i)));
  if (*reader.rounding()) print("rounding of quantized operators: {}\n", reader.rounding());
  for (uint32_t e = 0; e < reader.entry_point_count(); ++e) print_entry(reader, e);
  print_symbols(reader);
  print_memory(reader);
  print_tests(reader);
  for (uint32_t v = 0; v < reader.variant_count(); ++v) {
    VariantView variant = reader.variant(v);
    qnl_arch arch = static_cast<qnl_arch>(variant.arch);
    uint64_t flops = 0;
    for (const auto& [kernel, use] : kernel_uses(reader, 0, v)) flops += use.flops;
    print("\nvariant {}: {} {}, needs {}\n", variant.target, arch_name(arch),
          variant.code_format == runtime::CodeFormat::kElfImage ? "image" : "SPIR-V",
          feature_text(arch, variant.required_features));
    print("  {} of code, {} kernels, {} schedule items, {:.2f} MFLOP a run\n",
          format_bytes(variant.code_bytes), variant.kernel_count, reader.item_count(reader.plan(0, v)),
          static_cast<double>(flops) / 1e6);
    print_custom_ops(reader, v);
    if (options.kernels) print_kernels(reader, v, v);
    if (variant.companion >= 0) print_companion(reader, v, options);
  }
  if (options.schedule)
    for (uint32_t e = 0; e < reader.entry_point_count(); ++e)
      for (uint32_t v = 0; v < reader.variant_count(); ++v) print_schedule(reader, e, v);
  if (options.check) print("\nchecked: header, structure, code and weights are intact\n");
}

Json entry_json(const BundleReader& reader, uint32_t entry) {
  Json result = Json::Object{{"name", reader.entry_point(entry).name}};
  for (qnl_tensor_role role : kRoles) {
    Json::Array tensors;
    for (uint32_t i = 0; i < tensor_count(reader, entry, role); ++i) {
      qnl_tensor tensor;
      reader.tensor(entry, role, i, &tensor, nullptr, nullptr);
      tensors.push_back(Json::Object{{"name", tensor.name},
                                     {"dtype", qnl_dtype_name(tensor.dtype)},
                                     {"shape", Json::Array(tensor.shape, tensor.shape + tensor.rank)},
                                     {"type", shape_text(reader, entry, role, i, tensor)},
                                     {"bytes", tensor.bytes}});
      int32_t zero_point;
      float scale = reader.scale(entry, role, i, &zero_point);
      if (scale == 0) continue;
      tensors.back().set("scale", static_cast<double>(scale));
      tensors.back().set("zero_point", zero_point);
    }
    result.set(std::string(kRoleNames[role]) + "s", std::move(tensors));
  }
  return result;
}

Json schedule_json(const BundleReader& reader, uint32_t entry, uint32_t variant) {
  Json::Array items;
  for (uint32_t i = 0; i < reader.item_count(reader.plan(entry, variant)); ++i) {
    ItemView item = reader.item(reader.plan(entry, variant), i);
    Json::Array bindings;
    for (uint32_t b = 0; b < item.binding_count; ++b) {
      BindingView binding = reader.binding(reader.plan(entry, variant), i, b);
      bindings.push_back(Json::Object{{"arena", binding.arena},
                                      {"access", text(binding.access)},
                                      {"offset", binding.offset},
                                      {"bytes", binding.bytes}});
      if (binding.offset_expression >= 0)
        bindings.back().set("offset_expression", expression_text(reader, binding.offset_expression));
      if (binding.bytes_expression >= 0)
        bindings.back().set("bytes_expression", expression_text(reader, binding.bytes_expression));
    }
    items.push_back(Json::Object{{"kind", text(item.kind)},
                                 {"name", item_name(reader, variant, item)},
                                 {"node", item.source_node},
                                 {"on_companion", item.kind == QNL_ITEM_COMPANION_DISPATCH},
                                 {"workgroups", item.workgroups},
                                 {"flops", item.flops},
                                 {"bytes_read", item.bytes_read},
                                 {"bytes_written", item.bytes_written},
                                 {"bindings", std::move(bindings)}});
    if (item.workgroups_expression >= 0)
      items.back().set("workgroups_expression", expression_text(reader, item.workgroups_expression));
    if (item.kernel_class[0] != '\0') items.back().set("class", item.kernel_class);
    if (item.choice[0] != '\0') {
      items.back().set("key", item.key);
      items.back().set("choice", item.choice);
    }
    if (item.symbol_count > 0)
      items.back().set("symbols", item_symbols_text(reader, entry, variant, i, item));
    if (item.signature[0] != '\0') {
      items.back().set("signature", item.signature);
      items.back().set("attributes", item.attributes);
    }
    if (runtime::is_control(item.kind)) items.back().set("control", control_text(reader, item));
  }
  return items;
}

Json variant_json(const BundleReader& reader, uint32_t v, const Options& options) {
  VariantView variant = reader.variant(v);
  qnl_arch arch = static_cast<qnl_arch>(variant.arch);
  Json::Array features, kernels;
  for (std::string& name : feature_names(arch, variant.required_features))
    features.push_back(std::move(name));
  for (uint32_t k = 0; k < variant.kernel_count; ++k)
    kernels.push_back(Json::Object{{"name", reader.kernel(v, k).name},
                                   {"stack_bytes", reader.kernel(v, k).stack_bytes},
                                   {"scratch_bytes", reader.kernel(v, k).scratch_bytes}});
  Json result = Json::Object{{"target", variant.target},
                             {"arch", arch_name(arch)},
                             {"required_features", std::move(features)},
                             {"code_bytes", variant.code_bytes},
                             {"items", reader.item_count(reader.plan(0, v))},
                             {"kernels", std::move(kernels)}};
  if (variant.companion >= 0)
    result.set("companion", reader.variant(static_cast<uint32_t>(variant.companion)).target);
  if (options.schedule) {
    result.set("schedule", schedule_json(reader, 0, v));
    result.set("plan_text", reader.plan_text(reader.plan(0, v)));
  }
  return result;
}

Json tests_json(const BundleReader& reader) {
  Json::Array tests;
  for (uint32_t i = 0; i < reader.test_count(); ++i) {
    runtime::TestView test = reader.test(i);
    Json::Array tensors;
    for (uint32_t j = 0; j < test.tensor_count; ++j) {
      qnl_test_tensor t;
      reader.test_tensor(i, j, &t);
      tensors.push_back(Json::Object{{"name", t.tensor.name},
                                     {"role", kRoleNames[t.role]},
                                     {"type", shape_text(t.tensor)},
                                     {"bytes", t.tensor.bytes}});
      if (t.role != QNL_OUTPUT) continue;
      tensors.back().set("rtol", t.rtol);
      tensors.back().set("atol", t.atol);
      tensors.back().set("mean_atol", t.mean_atol < 0 ? Json() : Json(t.mean_atol));
      tensors.back().set("top1", t.top1 != 0);
    }
    tests.push_back(Json::Object{{"name", test.name},
                                 {"entry", reader.entry_point(test.entry).name},
                                 {"tensors", std::move(tensors)}});
  }
  return tests;
}

Json properties_json(const BundleReader& reader) {
  Json result = Json::Object{};
  for (uint32_t i = 0; i < reader.property_count(); ++i)
    result.set(reader.property_name(i), reader.property_value(i));
  return result;
}

Json to_json(const BundleReader& reader, const Options& options) {
  Json::Array entries, arenas, symbols, variants;
  for (uint32_t i = 0; i < reader.symbol_count(); ++i) {
    SymbolView s = reader.symbol(i);
    symbols.push_back(Json::Object{{"name", s.name},
                                   {"min", s.min},
                                   {"max", s.max},
                                   {"multiple_of", s.multiple_of},
                                   {"runtime", s.runtime}});
  }
  for (uint32_t e = 0; e < reader.entry_point_count(); ++e) entries.push_back(entry_json(reader, e));
  for (uint32_t a = 0; a < reader.arena_count(); ++a)
    arenas.push_back(
        Json::Object{{"kind", text(reader.arena(a).kind)},
                     {"bytes", reader.arena(a).bytes},
                     {"size", size_text(reader, reader.arena(a).bytes_expression, reader.arena(a).bytes)},
                     {"alignment", reader.arena(a).alignment}});
  for (uint32_t v = 0; v < reader.variant_count(); ++v) variants.push_back(variant_json(reader, v, options));
  return Json::Object{{"producer", reader.producer()},         {"rounding", reader.rounding()},
                      {"properties", properties_json(reader)}, {"schema_version", reader.schema_version()},
                      {"file_bytes", reader.file_bytes()},     {"constants_bytes", reader.constants_bytes()},
                      {"code_bytes", reader.code_bytes()},     {"weights_checked", options.check},
                      {"entry_points", std::move(entries)},    {"symbols", std::move(symbols)},
                      {"arenas", std::move(arenas)},           {"test_vectors", tests_json(reader)},
                      {"variants", std::move(variants)}};
}

}  // namespace

void list_contents(const Bundle& bundle, const ListOptions& options) {
  const BundleReader& reader = bundle.get()->reader;
  if (options.json)
    fmt::print("{}", to_json(reader, options).dump());
  else
    print_text(reader, options);
}

void list_choices(const Bundle& bundle) {
  const BundleReader& reader = bundle.get()->reader;
  for (uint32_t v = 0; v < reader.variant_count(); ++v)
    for (const std::string& line : choice_lines(reader, v)) print("{}\n", line);
}

}  // namespace quernel::tools
