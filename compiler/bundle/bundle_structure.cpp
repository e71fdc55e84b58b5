#include "bundle/bundle_structure.h"

#include <algorithm>
#include <set>
#include <string>

#include "schemas/bundle_tables.h"

namespace quernel::bundle {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
template <class T>
using Vec = Offset<flatbuffers::Vector<T>>;

// The numbers in the file are those of the schema; ours must be the same.
static_assert(static_cast<int>(DType::kF8E5M2) == static_cast<int>(schema::DType::f8e5m2));
static_assert(static_cast<int>(DType::kF32) == QNL_F32 && static_cast<int>(DType::kBool) == QNL_BOOL &&
              static_cast<int>(DType::kF8E5M2) == QNL_F8E5M2);
static_assert(static_cast<int>(ArenaKind::kState) == static_cast<int>(schema::ArenaKind::state));
static_assert(static_cast<int>(Access::kReadWrite) == static_cast<int>(schema::Access::read_write));
static_assert(static_cast<int>(EdgeKind::kAlias) == static_cast<int>(schema::EdgeKind::alias));
static_assert(static_cast<int>(SymbolKind::kRuntime) == static_cast<int>(schema::SymbolKind::runtime));
static_assert(static_cast<int>(ItemKind::kBranch) == static_cast<int>(schema::ItemKind::branch));
static_assert(static_cast<int>(CodeFormat::kSpirv) == static_cast<int>(schema::CodeFormat::spirv));
static_assert(static_cast<int>(SegmentKind::kTestValues) ==
              static_cast<int>(schema::SegmentKind::test_values));

std::string at(const std::string& what, size_t index) { return what + " " + std::to_string(index); }

Status broken(const std::string& where, const std::string& message) {
  return internal_error(where + ": " + message, {}, "write_bundle");
}

bool is_control(ItemKind kind) { return kind >= ItemKind::kReadSymbol; }

// The shape is known before a run only.
bool is_symbolic(const Tensor& tensor) {
  for (int32_t expression : tensor.shape_expressions)
    if (expression >= 0) return true;
  return false;
}

bool fits_signature(const TestTensor& value, const Tensor& tensor) {
  if (value.shape.size() != tensor.shape.size()) return false;
  int64_t elements = 1;
  for (size_t d = 0; d < value.shape.size(); ++d) {
    bool known = tensor.shape_expressions.empty() || tensor.shape_expressions[d] < 0;
    if (value.shape[d] < 0 || (known && value.shape[d] != tensor.shape[d])) return false;
    elements *= value.shape[d];
  }
  return value.value.size() == static_cast<size_t>(byte_size(tensor.dtype, elements));
}

// An index of an expression, or -1 where one need not be there.
bool is_expression(const BundleContents& contents, int32_t index) {
  return index >= -1 && index < static_cast<int32_t>(contents.expressions.size());
}

// What a reader evaluates, as bundle.fbs says.
constexpr size_t kMaxSteps = 1024;
constexpr int kMaxStack = 32;

Status check_limits(const SizeExpression& expression) {
  int depth = 0, deepest = 0;
  for (size_t step = 0; step < expression.code.size(); step += 2) {
    depth += expression.code[step] <= 1 ? 1 : -1;
    deepest = std::max(deepest, depth);
  }
  if (expression.code.size() / 2 <= kMaxSteps && deepest <= kMaxStack) return {};
  return unsupported("expected sizes of at most " + std::to_string(kMaxSteps) + " steps and " +
                         std::to_string(kMaxStack) + " values at once, found one of " +
                         std::to_string(expression.code.size() / 2) + " and " + std::to_string(deepest),
                     {}, "fix some of the model's free dims with --dim NAME=N");
}

Status check_symbols(const BundleContents& contents) {
  for (const Symbol& symbol : contents.symbols) {
    bool runtime = symbol.kind == SymbolKind::kRuntime;
    if (symbol.min > symbol.max || symbol.multiple_of < 1 || (!runtime && symbol.min < 0))
      return broken("symbol '" + symbol.name + "'", "its range is empty or negative");
    if (!is_expression(contents, symbol.max_expression) || (!runtime && symbol.max_expression != -1))
      return broken("symbol '" + symbol.name + "'", "wrong max_expression");
  }
  for (size_t i = 0; i < contents.expressions.size(); ++i) {
    const std::vector<int64_t>& code = contents.expressions[i].code;
    if (code.empty() || code.size() % 2 != 0)
      return broken(at("expression", i), "expected two words per step");
    for (size_t step = 0; step < code.size(); step += 2)
      if (code[step] == 1 &&
          (code[step + 1] < 0 || code[step + 1] >= static_cast<int64_t>(contents.symbols.size())))
        return broken(at("expression", i), "no such symbol");
    QUERNEL_CHECK(check_limits(contents.expressions[i]));
  }
  return {};
}

Status check_constants(const BundleContents& contents) {
  for (size_t i = 0; i < contents.constants.size(); ++i) {
    uint64_t end = 0;
    for (const ConstantPiece& piece : contents.constants[i].pieces) {
      if (piece.offset < end) return broken(at("constants segment", i), "pieces overlap or are out of order");
      if (piece.bytes > contents.constants[i].bytes ||
          piece.offset > contents.constants[i].bytes - piece.bytes)
        return broken(at("constants segment", i), "a piece lies outside the segment");
      if (!piece.produce && piece.view.size() != piece.bytes)
        return broken(at("constants segment", i), "a piece's view and byte count differ");
      end = piece.offset + piece.bytes;
    }
  }
  for (size_t i = 0; i < contents.arenas.size(); ++i) {
    const Arena& arena = contents.arenas[i];
    bool needs = arena.kind == ArenaKind::kConstants;
    bool may = needs || arena.kind == ArenaKind::kState;
    if (arena.constants >= static_cast<int32_t>(contents.constants.size()) ||
        (needs && arena.constants < 0) || (!may && arena.constants >= 0))
      return broken(at("arena", i), "wrong constants segment");
    if (arena.constants >= 0 && contents.constants[arena.constants].bytes != arena.bytes)
      return broken(at("arena", i), "byte count differs from its constants segment");
    if (arena.alignment == 0 || (arena.alignment & (arena.alignment - 1)) != 0 || arena.alignment > 4096)
      return broken(at("arena", i), "alignment is not a power of two up to 4096");
  }
  return {};
}

Status check_slots(const BundleContents& contents, const EntryPoint& entry,
                   const std::vector<Tensor>& tensors, ArenaKind kind, std::set<uint32_t>& used) {
  std::set<std::string> names;
  for (const Tensor& tensor : tensors) {
    std::string where = "entry point '" + entry.name + "', tensor '" + tensor.name + "'";
    if (!names.insert(tensor.name).second) return broken(where, "name is used twice");
    if (tensor.arena >= contents.arenas.size()) return broken(where, "arena index out of range");
    const Arena& arena = contents.arenas[tensor.arena];
    if (arena.kind != kind) return broken(where, "arena is of another kind");
    if (!tensor.shape_expressions.empty() && tensor.shape_expressions.size() != tensor.shape.size())
      return broken(where, "expected no shape expressions, or one per dim");
    for (int32_t expression : tensor.shape_expressions)
      if (!is_expression(contents, expression)) return broken(where, "no such shape expression");
    if (is_symbolic(tensor) != (arena.bytes_expression >= 0))
      return broken(where, "either its shape or the size of its slot is symbolic, but not both");
    if (!is_symbolic(tensor) && arena.bytes != tensor.bytes)
      return broken(where, "byte count differs from its slot");
    if (!used.insert(tensor.arena).second) return broken(where, "slot is used twice");
  }
  return {};
}

Status check_expressions(const BundleContents& contents, const Item& item, const std::string& where) {
  for (int32_t expression : {item.workgroups_expression, item.copy_bytes_expression, item.count_expression,
                             item.condition_expression, item.flops_expression, item.bytes_read_expression,
                             item.bytes_written_expression})
    if (!is_expression(contents, expression)) return broken(where, "no such expression");
  for (int32_t expression : item.symbols)
    if (expression < 0 || !is_expression(contents, expression))
      return broken(where, "no such expression among its symbols");
  for (const Binding& binding : item.bindings)
    if (!is_expression(contents, binding.offset_expression) ||
        !is_expression(contents, binding.bytes_expression))
      return broken(where, "no such expression of a binding");
  if (item.symbols.size() > 256 && !item.signature.empty())
    return unsupported("custom op '" + item.callback +
                       "': expected operands and results of at most 256 dims, found " +
                       std::to_string(item.symbols.size()));
  if (item.symbols.size() > 256) return broken(where, "more than 256 symbols");
  return {};
}

// Of items that set symbols or run others; nesting is checked by check_bodies.
Status check_control(const BundleContents& contents, const Item& item, const std::string& where) {
  if (item.kind == ItemKind::kReadSymbol || item.kind == ItemKind::kLoop) {
    if (item.symbol < 0 || item.symbol >= static_cast<int32_t>(contents.symbols.size()) ||
        contents.symbols[item.symbol].kind != SymbolKind::kRuntime)
      return broken(where, "expected a runtime symbol");
  }
  if (item.kind == ItemKind::kReadSymbol && item.bindings.size() != 1)
    return broken(where, "expected one binding");
  if (item.kind == ItemKind::kLoop && item.count_expression < 0 && item.condition_expression < 0)
    return broken(where, "a loop needs a count or a condition");
  if (item.kind == ItemKind::kBranch && item.condition_expression < 0)
    return broken(where, "a branch needs a condition");
  return {};
}

Status check_bodies(const Plan& plan, const std::string& where) {
  std::vector<size_t> ends = {plan.items.size()};
  for (size_t i = 0; i < plan.items.size(); ++i) {
    while (i == ends.back()) ends.pop_back();
    const Item& item = plan.items[i];
    if (item.kind != ItemKind::kLoop && item.kind != ItemKind::kBranch) continue;
    bool branch = item.kind == ItemKind::kBranch;
    if (item.end <= i || item.end > ends.back() ||
        (branch && (item.else_begin <= i || item.else_begin > item.end)))
      return broken(where + ", " + at("item", i), "its body is not nested in the one around it");
    ends.push_back(item.end);
    if (branch) ends.push_back(item.else_begin);
  }
  return {};
}

Status check_item(const BundleContents& contents, const Variant& variant, const Item& item, size_t index,
                  const std::string& where) {
  QUERNEL_CHECK(check_expressions(contents, item, where));
  if (is_control(item.kind)) QUERNEL_CHECK(check_control(contents, item, where));
  for (const Binding& binding : item.bindings) {
    if (binding.arena >= contents.arenas.size()) return broken(where, "arena index out of range");
    if (contents.arenas[binding.arena].bytes_expression >= 0 || binding.offset_expression >= 0 ||
        binding.bytes_expression >= 0)
      continue;
    uint64_t bytes = contents.arenas[binding.arena].bytes;
    if (binding.bytes > bytes || binding.offset > bytes - binding.bytes)
      return broken(where, "binding lies outside arena " + std::to_string(binding.arena));
  }
  for (const Edge& edge : item.edges)
    if (edge.item >= index) return broken(where, "edge to an item that is not earlier");
  if (item.on_companion && (item.kind != ItemKind::kDispatch || variant.companion < 0))
    return broken(where, "expected a dispatch, of a variant with a companion");
  const Variant& image =
      item.on_companion ? contents.companions[static_cast<size_t>(variant.companion)] : variant;
  if (item.kind == ItemKind::kDispatch && item.kernel >= image.kernels.size())
    return broken(where, "kernel index out of range");
  if (item.kind == ItemKind::kCopy && (item.bindings.size() != 2 || item.copy_loops.size() > 4))
    return broken(where, "a copy has two bindings and at most four loops");
  if (item.kind == ItemKind::kHostCallback && item.callback.empty())
    return broken(where, "callback has no name");
  return {};
}

Status check_entry_point(const BundleContents& contents, const EntryPoint& entry) {
  std::set<uint32_t> used;
  QUERNEL_CHECK(check_slots(contents, entry, entry.inputs, ArenaKind::kInput, used));
  QUERNEL_CHECK(check_slots(contents, entry, entry.outputs, ArenaKind::kOutput, used));
  for (uint32_t state : entry.states)
    if (state >= contents.states.size()) return broken("entry point '" + entry.name + "'", "no such state");
  if (entry.plans.size() != contents.variants.size())
    return broken("entry point '" + entry.name + "'", "expected one plan per variant");
  for (size_t v = 0; v < entry.plans.size(); ++v) {
    const Plan& plan = entry.plans[v];
    if (plan.variant != v)
      return broken("entry point '" + entry.name + "'", "plans are not in the variants' order");
    for (size_t i = 0; i < plan.items.size(); ++i)
      QUERNEL_CHECK(check_item(contents, contents.variants[v], plan.items[i], i,
                               "entry point '" + entry.name + "', " + at("item", i)));
    QUERNEL_CHECK(check_bodies(plan, "entry point '" + entry.name + "'"));
  }
  return {};
}

// Builds the tables; holds nothing but the builder and the inputs.
class StructureBuilder {
 public:
  StructureBuilder(const BundleContents& contents, const SegmentPlan& plan)
      : contents_(contents), plan_(plan) {
    builder_.ForceDefaults(true);
  }

  std::vector<uint8_t> build() {
    std::vector<schema::Segment> segments;
    for (const Segment& s : plan_.segments)
      segments.emplace_back(s.offset, s.bytes, s.hash, static_cast<schema::SegmentKind>(s.kind));
    auto producer = string(contents_.producer);
    auto segment_vector = builder_.CreateVectorOfStructs(segments);
    auto symbols = all<schema::Symbol>(contents_.symbols, [&](const Symbol& s) {
      return schema::CreateSymbol(builder_, string(s.name), s.min, s.max, s.multiple_of,
                                  static_cast<schema::SymbolKind>(s.kind), s.max_expression);
    });
    auto expressions = all<schema::SizeExpression>(contents_.expressions, [&](const SizeExpression& e) {
      return schema::CreateSizeExpression(builder_, builder_.CreateVector(e.code));
    });
    auto arenas = all<schema::Arena>(contents_.arenas, [&](const Arena& a) { return arena(a); });
    auto states = all<schema::Tensor>(contents_.states, [&](const Tensor& t) { return tensor(t); });
    size_t index = 0;
    auto variants =
        all<schema::Variant>(contents_.variants, [&](const Variant& v) { return variant(v, index++); });
    Vec<Offset<schema::Variant>> companions = 0;
    if (!contents_.companions.empty())
      companions =
          all<schema::Variant>(contents_.companions, [&](const Variant& v) { return variant(v, index++); });
    auto entries =
        all<schema::EntryPoint>(contents_.entry_points, [&](const EntryPoint& e) { return entry_point(e); });
    size_t value = 0;
    auto tests = all<schema::TestVector>(contents_.test_vectors,
                                         [&](const TestVector& t) { return test_vector(t, value); });
    Offset<flatbuffers::String> rounding = 0;
    if (!contents_.rounding.empty()) rounding = string(contents_.rounding);
    std::vector<Offset<flatbuffers::String>> names_and_values;
    for (const auto& [name, value] : contents_.properties) {
      names_and_values.push_back(string(name));
      names_and_values.push_back(string(value));
    }
    Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> properties = 0;
    if (!names_and_values.empty()) properties = builder_.CreateVector(names_and_values);
    schema::FinishBundleBuffer(
        builder_, schema::CreateBundle(builder_, producer, segment_vector, symbols, expressions, arenas,
                                       states, variants, entries, tests, companions, rounding, properties));
    return {builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize()};
  }

 private:
  // Equal strings are stored once, but their sum stays within what a reader follows: four times the
  // structure's bytes.
  Offset<flatbuffers::String> string(const std::string& text) {
    if (shared_bytes_ + text.size() > 4 * uint64_t{builder_.GetSize()}) return builder_.CreateString(text);
    shared_bytes_ += text.size();
    return builder_.CreateSharedString(text);
  }

  template <class Table, class T, class Make>
  Vec<Offset<Table>> all(const std::vector<T>& values, Make make) {
    std::vector<Offset<Table>> offsets;
    offsets.reserve(values.size());
    for (const T& value : values) offsets.push_back(make(value));
    return builder_.CreateVector(offsets);
  }

  Offset<schema::Arena> arena(const Arena& a) {
    int32_t segment = a.constants < 0 ? -1 : static_cast<int32_t>(plan_.constants_segments[a.constants]);
    return schema::CreateArena(builder_, string(a.name), static_cast<schema::ArenaKind>(a.kind), a.bytes,
                               a.alignment, segment, a.bytes_expression, a.host_access);
  }

  // Most tensors have no scale, and then no room for one.
  Offset<schema::Tensor> tensor(const Tensor& t) {
    auto name = string(t.name);
    auto shape = builder_.CreateVector(t.shape);
    auto expressions = builder_.CreateVector(t.shape_expressions);
    schema::TensorBuilder to(builder_);
    to.add_offset(t.offset);
    to.add_bytes(is_symbolic(t) ? 0 : t.bytes);
    if (t.scale != 0) {
      to.add_zero_point(t.zero_point);
      to.add_scale(t.scale);
    }
    to.add_arena(t.arena);
    to.add_shape_expressions(expressions);
    to.add_shape(shape);
    to.add_name(name);
    to.add_dtype(static_cast<schema::DType>(t.dtype));
    return to.Finish();
  }

  Offset<schema::Variant> variant(const Variant& v, size_t index) {
    auto kernels = all<schema::Kernel>(v.kernels, [&](const Kernel& k) {
      return schema::CreateKernel(builder_, string(k.name), k.scratch_bytes, k.stack_bytes);
    });
    return schema::CreateVariant(builder_, string(v.target), v.arch, v.required_features,
                                 static_cast<schema::CodeFormat>(v.code_format), plan_.image_segments[index],
                                 kernels, v.companion);
  }

  Offset<schema::Item> item(const Item& i) {
    std::vector<schema::Binding> bindings;
    for (const Binding& b : i.bindings)
      bindings.emplace_back(b.arena, static_cast<schema::Access>(b.access), b.offset, b.bytes);
    std::vector<schema::Edge> edges;
    for (const Edge& e : i.edges) edges.emplace_back(e.item, static_cast<schema::EdgeKind>(e.kind));
    std::vector<schema::CopyLoop> loops;
    for (const CopyLoop& l : i.copy_loops) loops.emplace_back(l.count, l.source_stride, l.target_stride);
    std::vector<Offset<flatbuffers::String>> nodes;
    for (const std::string& node : i.source_nodes) nodes.push_back(string(node));
    auto binding_vector = builder_.CreateVectorOfStructs(bindings);
    auto edge_vector = builder_.CreateVectorOfStructs(edges);
    auto loop_vector = builder_.CreateVectorOfStructs(loops);
    auto callback = string(i.callback);
    auto node_vector = builder_.CreateVector(nodes);
    Vec<int32_t> symbols = i.symbols.empty() ? 0 : builder_.CreateVector(i.symbols);
    auto optional = [&](const std::string& text) { return text.empty() ? 0 : string(text); };
    auto kernel_class = optional(i.kernel_class), key = optional(i.key), choice = optional(i.choice);
    return schema::CreateItem(
        builder_, static_cast<schema::ItemKind>(i.kind), i.kernel, i.workgroups, i.workgroups_expression,
        binding_vector, edge_vector, i.copy_bytes, loop_vector, callback, i.flops, i.bytes_read,
        i.bytes_written, node_vector, symbols, i.copy_bytes_expression, binding_expressions(i), i.symbol,
        static_cast<schema::DType>(i.dtype), i.end, i.else_begin, i.count_expression, i.condition_expression,
        i.signature.empty() ? 0 : string(i.signature), i.signature.empty() ? 0 : string(i.attributes),
        i.flops_expression, i.bytes_read_expression, i.bytes_written_expression, kernel_class, key, choice,
        i.on_companion);
  }

  // None when all bindings are constant.
  Offset<flatbuffers::Vector<const schema::BindingExpressions*>> binding_expressions(const Item& i) {
    std::vector<schema::BindingExpressions> expressions;
    bool any = false;
    for (const Binding& b : i.bindings) {
      expressions.emplace_back(b.offset_expression, b.bytes_expression);
      any = any || b.offset_expression >= 0 || b.bytes_expression >= 0;
    }
    if (!any) return 0;
    return builder_.CreateVectorOfStructs(expressions);
  }

  Offset<schema::EntryPoint> entry_point(const EntryPoint& e) {
    auto name = string(e.name);
    auto inputs = all<schema::Tensor>(e.inputs, [&](const Tensor& t) { return tensor(t); });
    auto outputs = all<schema::Tensor>(e.outputs, [&](const Tensor& t) { return tensor(t); });
    auto states = builder_.CreateVector(e.states);
    auto plans = all<schema::Plan>(e.plans, [&](const Plan& p) {
      auto items = all<schema::Item>(p.items, [&](const Item& i) { return item(i); });
      auto workspaces = builder_.CreateVector(workspaces_of(p));
      return schema::CreatePlan(builder_, p.variant, items, workspaces, builder_.CreateString(p.text));
    });
    return schema::CreateEntryPoint(builder_, name, inputs, outputs, states, plans);
  }

  std::vector<uint32_t> workspaces_of(const Plan& p) const {
    std::set<uint32_t> used;
    for (const Item& i : p.items)
      for (const Binding& b : i.bindings)
        if (contents_.arenas[b.arena].kind == ArenaKind::kWorkspace) used.insert(b.arena);
    return {used.begin(), used.end()};
  }

  Offset<schema::TestVector> test_vector(const TestVector& t, size_t& value) {
    std::vector<schema::TestTensor> tensors;
    std::vector<int64_t> dims;
    std::vector<schema::TestTolerance> tolerances;
    for (const TestTensor& tensor : t.tensors) {
      tensors.emplace_back(tensor.tensor, tensor.output, plan_.test_segment,
                           plan_.test_value_offsets[value++], tensor.value.size());
      dims.insert(dims.end(), tensor.shape.begin(), tensor.shape.end());
      const TestTolerance& tolerance = tensor.tolerance;
      tolerances.emplace_back(tolerance.rtol, tolerance.atol, tolerance.mean_atol, tolerance.top1 ? 1 : 0);
    }
    return schema::CreateTestVector(builder_, string(t.name), t.entry_point,
                                    builder_.CreateVectorOfStructs(tensors), builder_.CreateVector(dims),
                                    builder_.CreateVectorOfStructs(tolerances));
  }

  const BundleContents& contents_;
  const SegmentPlan& plan_;
  FlatBufferBuilder builder_;
  uint64_t shared_bytes_ = 0;  // sum of the strings that may be shared
};

}  // namespace

namespace {

constexpr size_t kMaxNameBytes = 1024;  // the runtime's limit

// Names that other parts of a bundle refer to by their index.
Status check_names(const BundleContents& contents) {
  auto check = [](const char* what, const std::string& name) -> Status {
    if (name.size() <= kMaxNameBytes) return {};
    return unsupported(std::string(what) + " '" + name.substr(0, 64) + "…': expected a name of up to " +
                       std::to_string(kMaxNameBytes) + " bytes, found " + std::to_string(name.size()));
  };
  for (const Symbol& symbol : contents.symbols) QUERNEL_CHECK(check("symbol", symbol.name));
  for (const Tensor& state : contents.states) QUERNEL_CHECK(check("state", state.name));
  for (size_t i = 0; i < contents.image_count(); ++i) {
    QUERNEL_CHECK(check("target", contents.image(i).target));
    for (const Kernel& kernel : contents.image(i).kernels) QUERNEL_CHECK(check("kernel", kernel.name));
  }
  for (const EntryPoint& entry : contents.entry_points) {
    QUERNEL_CHECK(check("entry point", entry.name));
    for (const Tensor& input : entry.inputs) QUERNEL_CHECK(check("input", input.name));
    for (const Tensor& output : entry.outputs) QUERNEL_CHECK(check("output", output.name));
  }
  return {};
}

}  // namespace

Status check_counts(const BundleContents& contents) {
  constexpr size_t kMaxSymbols = 1024, kMaxTensors = 65536, kMaxEntryPoints = 4096;
  auto check = [](const std::string& what, size_t found, size_t most) -> Status {
    if (found <= most) return {};
    return unsupported("expected at most " + std::to_string(most) + " " + what + ", found " +
                       std::to_string(found));
  };
  QUERNEL_CHECK(check("symbols", contents.symbols.size(), kMaxSymbols));
  QUERNEL_CHECK(check("states", contents.states.size(), kMaxTensors));
  QUERNEL_CHECK(check("entry points", contents.entry_points.size(), kMaxEntryPoints));
  for (const EntryPoint& entry : contents.entry_points) {
    QUERNEL_CHECK(check("inputs of '" + entry.name + "'", entry.inputs.size(), kMaxTensors));
    QUERNEL_CHECK(check("outputs of '" + entry.name + "'", entry.outputs.size(), kMaxTensors));
  }
  return check("inputs, outputs, states and other buffers in all", contents.arenas.size(), kMaxTensors);
}

Status check_contents(const BundleContents& contents) {
  QUERNEL_CHECK(check_names(contents));
  QUERNEL_CHECK(check_symbols(contents));
  QUERNEL_CHECK(check_constants(contents));
  if (contents.variants.empty()) return broken("bundle", "expected at least one variant");
  if (contents.entry_points.empty()) return broken("bundle", "expected at least one entry point");
  for (const Variant& variant : contents.variants)
    if (variant.companion >= static_cast<int32_t>(contents.companions.size()))
      return broken("variant '" + variant.target + "'", "companion index out of range");
  for (const Tensor& state : contents.states) {
    if (state.arena >= contents.arenas.size() || contents.arenas[state.arena].kind != ArenaKind::kState)
      return broken("state '" + state.name + "'", "expected an arena of kind state");
    uint64_t bytes = contents.arenas[state.arena].bytes;
    if (state.bytes > bytes || state.offset > bytes - state.bytes)
      return broken("state '" + state.name + "'", "lies outside its arena");
  }
  std::set<std::string> names;
  for (const EntryPoint& entry : contents.entry_points) {
    if (!names.insert(entry.name).second)
      return broken("entry point '" + entry.name + "'", "name is used twice");
    QUERNEL_CHECK(check_entry_point(contents, entry));
  }
  for (const TestVector& test : contents.test_vectors) {
    if (test.entry_point >= contents.entry_points.size()) return broken("test vector", "no such entry point");
    const EntryPoint& entry = contents.entry_points[test.entry_point];
    for (const TestTensor& tensor : test.tensors) {
      const std::vector<Tensor>& tensors = tensor.output ? entry.outputs : entry.inputs;
      if (tensor.tensor >= tensors.size() || !fits_signature(tensor, tensors[tensor.tensor]))
        return broken("test vector", "tensor index, shape or byte count does not fit the signature");
    }
  }
  return {};
}

namespace {
bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin()));
}
}  // namespace

SegmentPlan plan_segments(const BundleContents& contents) {
  SegmentPlan plan;
  for (size_t i = 0; i < contents.image_count(); ++i) {
    std::span<const std::byte> code = contents.image(i).image();
    uint32_t found = 0;
    while (found < plan.segments.size() &&
           !same_bytes(contents.image(plan.segments[found].source).image(), code))
      ++found;
    if (found == plan.segments.size()) plan.segments.push_back({SegmentKind::kCode, i, code.size()});
    plan.image_segments.push_back(found);
  }
  for (size_t c = 0; c < contents.constants.size(); ++c) {
    plan.constants_segments.push_back(static_cast<uint32_t>(plan.segments.size()));
    plan.segments.push_back({SegmentKind::kConstants, c, contents.constants[c].bytes});
  }
  uint64_t end = 0;
  for (const TestVector& vector : contents.test_vectors) {
    for (const TestTensor& tensor : vector.tensors) {
      end = (end + 63) / 64 * 64;
      plan.test_value_offsets.push_back(end);
      end += tensor.value.size();
    }
  }
  if (!contents.test_vectors.empty()) {
    plan.test_segment = static_cast<uint32_t>(plan.segments.size());
    plan.segments.push_back({SegmentKind::kTestValues, 0, end});
  }
  return plan;
}

uint64_t place_segments(SegmentPlan& plan, uint64_t begin) {
  uint64_t end = begin;
  for (Segment& segment : plan.segments) {
    segment.offset = (end + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
    end = segment.offset + segment.bytes;
  }
  return end;
}

uint64_t required_features(const BundleContents& contents) {
  uint64_t features = 0;
  if (!contents.symbols.empty() || !contents.expressions.empty())
    features |= static_cast<uint64_t>(schema::Feature::symbols);
  auto add = [&](schema::Feature feature) { features |= static_cast<uint64_t>(feature); };
  if (!contents.companions.empty()) add(schema::Feature::companions);
  for (const EntryPoint& entry : contents.entry_points)
    for (const Plan& plan : entry.plans)
      for (const Item& item : plan.items) {
        if (is_control(item.kind)) add(schema::Feature::control_flow);
        bool constant_symbols = !item.symbols.empty() && contents.symbols.empty();
        if (!item.signature.empty() || constant_symbols) add(schema::Feature::custom_ops);
      }
  return features;
}

std::vector<uint8_t> build_structure(const BundleContents& contents, const SegmentPlan& plan) {
  return StructureBuilder(contents, plan).build();
}

}  // namespace quernel::bundle
