#include "bundle/bundle_from_schedule.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/empty_choice.h"
#include "graph/multiply_adds.h"
#include "graph/nonzero_dim.h"
#include "schedule/custom_call.h"
#include "schedule/print_schedule.h"
#include "schedule/storage.h"

namespace quernel::bundle {
namespace {

constexpr size_t kMaxAnalysisSteps = 30;  // of an amount that is worth computing for the symbols' values

// Of constants, in bytes: a cache line, or where no caches are, as flash is dear, an element, or a word of smaller ones.
constexpr uint64_t kLineAlignment = 64, kWordAlignment = 4;

// Types do not matter.
bool same_contents(const schedule::Buffer& a, const schedule::Buffer& b) {
  if (a.packed || b.packed) return a.packed && b.packed && schedule::same_constant(*a.packed, *b.packed);
  return schedule::same_bytes(a.data.bytes, b.data.bytes);
}

Access access_of(const schedule::Binding& b) {
  return !b.write ? Access::kRead : b.whole ? Access::kWrite : Access::kReadWrite;
}

EdgeKind edge_kind(schedule::Hazard hazard) {
  switch (hazard) {
    case schedule::Hazard::kReadAfterWrite:
      return EdgeKind::kRaw;
    case schedule::Hazard::kWriteAfterRead:
      return EdgeKind::kWar;
    case schedule::Hazard::kWriteAfterWrite:
      return EdgeKind::kWaw;
    case schedule::Hazard::kAlias:
      return EdgeKind::kAlias;
  }
  return EdgeKind::kRaw;
}

class Assembler {
 public:
  explicit Assembler(const std::vector<CompiledVariant>& variants)
      : variants_(variants),
        least_alignment_(std::all_of(variants.begin(), variants.end(),
                                     [](const CompiledVariant& v) { return v.target.code_is_dear(); })
                             ? kWordAlignment
                             : kLineAlignment) {}

  BundleContents run(const std::string& producer) {
    contents_.producer = producer;
    contents_.constants.emplace_back();
    add_arena("constants", ArenaKind::kConstants, 0);
    contents_.arenas[0].constants = 0;
    for (const CompiledVariant& variant : variants_)  // those of one have more, or all the same
      for (size_t r = contents_.regions.size(); r < variant.entries[0].schedule.regions.size(); ++r) {
        const schedule::Region& region = variant.entries[0].schedule.regions[r];
        contents_.regions.push_back({region.name, static_cast<uint64_t>(region.capacity)});
        shared_.push_back(region.shared);
      }
    for (const CompiledVariant& variant : variants_) add_variant(variant);
    for (size_t e = 0; e < variants_[0].entries.size(); ++e) add_entry(e);
    contents_.arenas[0].bytes = contents_.constants[0].bytes;
    return std::move(contents_);
  }

 private:
  // The signature is that of the first variant.
  void add_entry(size_t index) {
    const schedule::Schedule& schedule = variants_[0].entries[index].schedule;
    const Graph& graph = schedule.graph;
    symbol_index_.clear(), inputs_.clear(), outputs_.clear(), states_.clear();
    symbols_ = graph.symbols;
    add_symbols(graph);
    bool alone = variants_[0].entries.size() == 1;
    EntryPoint entry;
    entry.name = graph.name;
    workspaces_.clear();
    for (const MemoryRegion& region : contents_.regions) {
      std::string name = alone ? region.name : region.name + " of " + graph.name;
      auto index = static_cast<uint32_t>(workspaces_.size());
      workspaces_.push_back(add_arena(std::move(name), ArenaKind::kWorkspace, 0));
      contents_.arenas[workspaces_.back()].region = index;
      contents_.arenas[workspaces_.back()].host_access = shared_[index];
    }
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const std::string& name = graph.values[graph.inputs[i]].name;
      inputs_.push_back(0);
      if (graph.state_of_input(i)) continue;
      if (schedule.io_in_workspace) {
        entry.inputs.push_back(tensor_in_workspace(schedule, graph.inputs[i], name));
        continue;
      }
      inputs_.back() = add_arena("input " + name, ArenaKind::kInput, 0);
      entry.inputs.push_back(tensor(graph, graph.inputs[i], name, inputs_.back()));
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const Graph::Output& output = graph.outputs[i];
      outputs_.push_back(0);
      if (graph.state_of_output(i)) continue;
      if (schedule.io_in_workspace) {
        entry.outputs.push_back(tensor_in_workspace(schedule, output.value, output.name));
        continue;
      }
      outputs_.back() = add_arena("output " + output.name, ArenaKind::kOutput, 0);
      entry.outputs.push_back(tensor(graph, output.value, output.name, outputs_.back()));
    }
    for (const Graph::State& state : graph.states) {
      entry.states.push_back(state_index(graph, state));
      states_.push_back(contents_.states[entry.states.back()].arena);
    }
    std::vector<Dim> workspaces(workspaces_.size(), 0);
    for (size_t v = 0; v < variants_.size(); ++v) {
      const CompiledEntry& compiled = variants_[v].entries[index];
      for (size_t r = 0; r < compiled.schedule.regions.size(); ++r)
        workspaces[r] = max(workspaces[r], compiled.schedule.regions[r].bytes);
      entry.plans.push_back(plan(compiled, static_cast<uint32_t>(v)));
    }
    for (size_t r = 0; r < workspaces.size(); ++r) set_bytes(contents_.arenas[workspaces_[r]], workspaces[r]);
    contents_.entry_points.push_back(std::move(entry));
  }

  // Symbols that entry points have in common are one; another of a known name gets the entry point's before
  // it.
  void add_symbols(const Graph& graph) {
    size_t first = contents_.symbols.size();
    for (const quernel::Symbol& from : graph.symbols) {
      Symbol to{from.name, from.min, from.max, from.multiple_of};
      if (from.runtime) to.kind = SymbolKind::kRuntime;
      auto known = std::find_if(contents_.symbols.begin(), contents_.symbols.end(),
                                [&](const Symbol& s) { return s.name == to.name; });
      bool same = known != contents_.symbols.end() && known->min == to.min && known->max == to.max &&
                  known->multiple_of == to.multiple_of && known->kind == to.kind && !from.runtime;
      if (known != contents_.symbols.end() && !same) to.name = graph.name + "." + to.name;
      symbol_index_[from.name] =
          same ? known - contents_.symbols.begin() : static_cast<int64_t>(contents_.symbols.size());
      if (!same) contents_.symbols.push_back(std::move(to));
    }
    for (const quernel::Symbol& from : graph.symbols)
      if (auto index = static_cast<size_t>(symbol_index_[from.name]); !from.bound.empty() && index >= first)
        contents_.symbols[index].max_expression = expression(from.bound[0].upper_bound());
  }

  // Of the state of that name in the contents; each is an arena of its own.
  uint32_t state_index(const Graph& graph, const Graph::State& state) {
    ValueId v = graph.inputs[state.input];
    const std::string& name = graph.values[v].name;
    for (size_t i = 0; i < contents_.states.size(); ++i)
      if (contents_.states[i].name == name) return static_cast<uint32_t>(i);
    uint32_t arena = add_arena("state " + name, ArenaKind::kState, 0);
    contents_.states.push_back(tensor(graph, v, name, arena));
    if (state.initial.bytes.size() != 0) {
      ConstantsSegment segment;
      segment.bytes = state.initial.bytes.size();
      ConstantPiece piece;
      piece.bytes = segment.bytes;
      piece.view = {reinterpret_cast<const std::byte*>(state.initial.bytes.data()), segment.bytes};
      segment.pieces.push_back(std::move(piece));
      contents_.arenas[arena].constants = static_cast<int32_t>(contents_.constants.size());
      contents_.constants.push_back(std::move(segment));
    }
    return static_cast<uint32_t>(contents_.states.size()) - 1;
  }

  uint32_t add_arena(std::string name, ArenaKind kind, uint64_t bytes) {
    Arena arena;
    arena.name = std::move(name);
    arena.kind = kind;
    arena.bytes = bytes;
    contents_.arenas.push_back(std::move(arena));
    return static_cast<uint32_t>(contents_.arenas.size()) - 1;
  }

  Tensor tensor(const Graph& graph, ValueId v, const std::string& name, uint32_t arena) {
    Tensor t = described(graph, v, name);
    Dim bytes = schedule::byte_size(t.dtype, element_count(graph.shape(v)));
    t.arena = arena;
    // A slot has a symbolic size exactly where its tensor has a symbolic shape.
    if (is_static(graph.shape(v)))
      set_bytes(contents_.arenas[arena], bytes);
    else
      contents_.arenas[arena].bytes_expression = expression(bytes.upper_bound());
    return t;
  }

  // Where the workspace has free dims, places are unknown: build_static_program refuses those.
  Tensor tensor_in_workspace(const schedule::Schedule& s, ValueId v, const std::string& name) {
    Tensor t = described(s.graph, v, name);
    const schedule::Buffer& buffer = s.buffers[static_cast<size_t>(s.storage[v].buffer)];
    t.arena = workspaces_[static_cast<size_t>(buffer.region)];
    auto known = [](const Dim& d) { return d.is_const() ? static_cast<uint64_t>(d.value()) : 0; };
    t.offset = known(buffer.offset);
    t.bytes = known(buffer.bytes);
    return t;
  }

  Tensor described(const Graph& graph, ValueId v, const std::string& name) {
    Tensor t;
    t.name = name;
    t.dtype = graph.dtype(v);
    const Shape& shape = graph.shape(v);
    for (const Dim& d : shape) t.shape.push_back(d.is_const() ? d.value() : -1);
    if (!is_static(shape))
      for (const Dim& d : shape) t.shape_expressions.push_back(d.is_const() ? -1 : expression(d));
    Dim bytes = schedule::byte_size(t.dtype, element_count(shape));
    t.bytes = bytes.is_const() ? static_cast<uint64_t>(bytes.value()) : 0;
    return t;
  }

  void set_bytes(Arena& arena, const Dim& bytes) {
    if (bytes.is_const())
      arena.bytes = static_cast<uint64_t>(bytes.value());
    else
      arena.bytes_expression = expression(bytes);
  }

  // Index of the postfix code of a dim; equal ones are stored once.
  int32_t expression(const Dim& dim) {
    SizeExpression expression;
    emit(dim, expression.code);
    return add_expression(std::move(expression));
  }

  int32_t add_expression(SizeExpression expression) {
    auto [it, fresh] =
        expressions_.try_emplace(expression.code, static_cast<int32_t>(contents_.expressions.size()));
    if (fresh) contents_.expressions.push_back(std::move(expression));
    return it->second;
  }

  // The same, evaluated just before its item runs, as it mentions a run-time symbol.
  int32_t late_expression(const Dim& dim, const std::string& symbol) {
    SizeExpression expression;
    emit(dim, expression.code);
    for (int64_t word : {int64_t{1}, symbol_index_.at(symbol), int64_t{0}, int64_t{0}, int64_t{4}, int64_t{0},
                         int64_t{2}, int64_t{0}})
      expression.code.push_back(word);
    return add_expression(std::move(expression));
  }

  void emit(const Dim& dim, std::vector<int64_t>& code) const {
    auto step = [&](int64_t opcode, int64_t operand) { code.push_back(opcode), code.push_back(operand); };
    if (dim.is_const()) return step(0, dim.value());
    if (dim.kind() == Dim::Kind::kSymbol) return step(1, symbol_index_.at(dim.name()));
    emit(dim.lhs(), code);
    bool divides = dim.kind() == Dim::Kind::kFloorDiv || dim.kind() == Dim::Kind::kMod;
    // Nothing is there to be divided where a divisor is 0, but a run evaluates every expression.
    emit(divides ? as_divisor(dim.rhs(), symbols_) : dim.rhs(), code);
    step(2 + (static_cast<int64_t>(dim.kind()) - static_cast<int64_t>(Dim::Kind::kAdd)), 0);
  }

  // Offset of the constant in the one constants segment; equal contents share it.
  uint64_t constant_offset(const schedule::Buffer& buffer) {
    const schedule::PackedConstant* packed = buffer.packed.get();
    const uint64_t alignment = std::max(
        least_alignment_, static_cast<uint64_t>(element_size(packed ? packed->dtype : buffer.data.dtype)));
    const size_t hash = packed ? schedule::sampled_hash(*packed) : schedule::sampled_hash(buffer.data.bytes);
    auto range = constants_.equal_range(hash);
    auto known = std::find_if(range.first, range.second,
                              [&](const auto& entry) { return same_contents(*entry.second.buffer, buffer); });
    if (known != range.second && known->second.offset % alignment == 0) return known->second.offset;
    ConstantsSegment& segment = contents_.constants[0];
    ConstantPiece piece;
    piece.offset = (segment.bytes + alignment - 1) / alignment * alignment;
    piece.bytes = packed ? static_cast<uint64_t>(packed->bytes) : buffer.data.bytes.size();
    if (packed)
      piece.produce = packed->pack;
    else
      piece.view = {reinterpret_cast<const std::byte*>(buffer.data.bytes.data()), buffer.data.bytes.size()};
    const uint64_t offset = piece.offset;
    segment.bytes = (offset + piece.bytes + least_alignment_ - 1) / least_alignment_ * least_alignment_;
    segment.pieces.push_back(std::move(piece));
    if (known != range.second)
      known->second.offset = offset;
    else
      constants_.emplace(hash, StoredConstant{&buffer, offset});
    return offset;
  }

  void add_variant(const CompiledVariant& compiled) {
    contents_.variants.push_back(image_of(compiled.target, compiled.image));
    if (!compiled.target.companion) return;
    contents_.variants.back().companion = static_cast<int32_t>(contents_.companions.size());
    contents_.companions.push_back(image_of(*compiled.target.companion, compiled.companion_image));
  }

  static Variant image_of(const Target& target, const codegen::Image& image) {
    Variant variant;
    variant.target = target.name;
    variant.arch = target.arch;
    variant.required_features = target.required_features;
    variant.code_format = target.arch == QNL_ARCH_SPIRV ? CodeFormat::kSpirv : CodeFormat::kElfImage;
    variant.code.resize(image.code.size());
    if (!variant.code.empty()) std::memcpy(variant.code.data(), image.code.data(), variant.code.size());
    for (size_t k = 0; k < image.kernel_names.size(); ++k)
      variant.kernels.push_back(
          {image.kernel_names[k], image.scratch_bytes[k], static_cast<uint32_t>(image.stack_bytes[k])});
    return variant;
  }

  Plan plan(const CompiledEntry& compiled, uint32_t variant) {
    const schedule::Schedule& s = compiled.schedule;
    Plan plan;
    plan.variant = variant;
    plan.text = schedule::print(s);
    add_items(plan.items, s, compiled.dispatches, Frame{nullptr, &s});
    return plan;
  }

  // A schedule within the items of another one; its workspace begins at `workspace` of `region`.
  struct Frame {
    const Frame* outer = nullptr;
    const schedule::Schedule* schedule = nullptr;
    Dim workspace = 0;
    int region = 0;
    bool on_companion = false;
    std::string symbol;  // a run-time one, which has its value where the body runs
    int region_of(const schedule::Buffer& buffer) const { return outer ? region : buffer.region; }
  };

  // Bodies follow their loop or branch; what runs on the companion CPU is items like any other.
  void add_items(std::vector<Item>& items, const schedule::Schedule& s,
                 const std::vector<Dispatch>& dispatches, const Frame& frame) {
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> index;  // of the schedule's items
    std::vector<int64_t> live = schedule::live_bytes(s);
    for (size_t i = 0; i < s.items.size(); ++i) {
      const schedule::Item& from = s.items[i];
      auto add_edges = [&](Item& item) {
        for (const schedule::Dependency& d : from.dependencies)
          if (uint32_t before = index[static_cast<size_t>(d.item)]; before != kNone)
            item.edges.push_back({before, edge_kind(d.hazard)});
      };
      if (from.group >= 0 && s.groups[from.group].on_companion) {
        size_t first = items.size();
        add_items(items, s.groups[from.group].bodies[0], dispatches[i].bodies[0],
                  body_frame(frame, s.groups[from.group], 0));
        if (items.size() != first) add_edges(items[first]);
        index.push_back(items.size() == first ? kNone : static_cast<uint32_t>(items.size() - 1));
        continue;
      }
      index.push_back(static_cast<uint32_t>(items.size()));
      Item item;
      item.on_companion = frame.on_companion;
      if (from.group < 0) {
        item.kind = ItemKind::kReadSymbol;
        item.symbol = static_cast<int32_t>(symbol_index_.at(from.symbol));
        item.dtype = s.graph.dtype(from.bindings[0].value);
      } else if (s.groups[from.group].kind == schedule::GroupKind::kControl) {
        add_control(item, s.graph.nodes[s.groups[from.group].anchor]);
      } else if (s.groups[from.group].kind == schedule::GroupKind::kCustom && dispatches[i].kernel < 0) {
        add_custom(item, s.graph, s.graph.nodes[s.groups[from.group].anchor], dispatches[i]);
      } else {
        add_dispatch(item, dispatches[i], frame);
        describe(item, s, s.groups[from.group]);
      }
      if (!frame.outer) item.live_bytes = static_cast<uint64_t>(live[i]);
      if (from.group >= 0) item.source_nodes = source_nodes(s, s.groups[from.group]);
      if (item.kind != ItemKind::kLoop && item.kind != ItemKind::kBranch)
        for (const schedule::Binding& b : from.bindings) item.bindings.push_back(binding(frame, b));
      if (frame.on_companion) mark_companion_access(item);
      add_edges(item);
      auto analyse = [&](const Dim& amount, uint64_t& typical, int32_t& exact) {
        typical = static_cast<uint64_t>(amount.estimate());
        if (amount.is_const() || !amount.is_bound()) return;
        std::vector<int64_t> code;
        emit(amount, code);
        if (code.size() <= 2 * kMaxAnalysisSteps) exact = expression(amount);
      };
      analyse(from.flops, item.flops, item.flops_expression);
      analyse(from.bytes_read, item.bytes_read, item.bytes_read_expression);
      analyse(from.bytes_written, item.bytes_written, item.bytes_written_expression);
      items.push_back(std::move(item));
      if (from.group >= 0 && s.groups[from.group].kind == schedule::GroupKind::kControl)
        add_bodies(items, frame, s.groups[from.group], dispatches[i]);
    }
  }

  void add_dispatch(Item& item, const Dispatch& dispatch, const Frame& frame) {
    item.kernel = static_cast<uint32_t>(dispatch.kernel);
    item.may_fail = dispatch.may_fail;
    if (dispatch.workgroups.is_const())
      item.workgroups = static_cast<uint64_t>(dispatch.workgroups.value());
    else if (dispatch.may_fail && !frame.symbol.empty())
      item.workgroups_expression = late_expression(dispatch.workgroups, frame.symbol);
    else
      item.workgroups_expression = expression(dispatch.workgroups);
    for (const Dim& d : dispatch.symbols) item.symbols.push_back(expression(d));
  }

  static void describe(Item& item, const schedule::Schedule& s, const schedule::Group& group) {
    item.kernel_class = schedule::kernel_class(group);
    item.key = group.key;
    item.choice = schedule::choice_text(group);
    Dim sum = 0;
    for (int n : group.nodes) sum += multiply_adds(s.graph.nodes[n]);
    item.multiply_adds = static_cast<uint64_t>(sum.estimate());
  }

  // A function of the application computes it.
  void add_custom(Item& item, const Graph& graph, const Node& node, const Dispatch& dispatch) {
    item.kind = ItemKind::kHostCallback;
    item.callback = node.attributes.custom->name;
    item.signature = schedule::custom_signature(graph, node);
    item.attributes = node.attributes.custom->attributes;
    for (const Dim& d : dispatch.symbols) item.symbols.push_back(expression(d));
  }

  void add_control(Item& item, const Node& node) {
    const Control& control = *node.attributes.control;
    item.kind = node.op == OpKind::k_loop ? ItemKind::kLoop : ItemKind::kBranch;
    if (node.op == OpKind::k_loop) item.symbol = static_cast<int32_t>(symbol_index_.at(control.symbol));
    if (control.count) item.count_expression = expression(*control.count);
    if (control.condition) item.condition_expression = expression(*control.condition);
  }

  // What a loop counts, or what a branch asks.
  static std::string run_time_symbol(const Frame& outer, const Control& control) {
    if (!control.symbol.empty()) return control.symbol;
    std::vector<quernel::Symbol> symbols;
    if (control.condition) control.condition->collect_symbols(symbols);
    for (const quernel::Symbol& s : symbols)
      if (s.runtime) return s.name;
    return outer.symbol;
  }

  static Frame body_frame(const Frame& outer, const schedule::Group& group, size_t body) {
    Frame frame{&outer,
                &group.bodies[body],
                outer.workspace,
                outer.region,
                outer.on_companion || group.on_companion,
                run_time_symbol(outer, *outer.schedule->graph.nodes[group.anchor].attributes.control)};
    if (group.scratch_buffer < 0) return frame;
    const schedule::Buffer& workspace = outer.schedule->buffers[group.scratch_buffer];
    frame.workspace += workspace.offset;
    frame.region = outer.region_of(workspace);
    return frame;
  }

  void mark_companion_access(const Item& item) {
    for (const Binding& b : item.bindings)
      if (Arena& arena = contents_.arenas[b.arena]; arena.kind == ArenaKind::kState) arena.host_access = true;
  }

  // The bodies of the last item.
  void add_bodies(std::vector<Item>& items, const Frame& outer, const schedule::Group& group,
                  const Dispatch& dispatch) {
    size_t control = items.size() - 1;
    for (size_t b = 0; b < group.bodies.size(); ++b) {
      add_items(items, group.bodies[b], dispatch.bodies[b], body_frame(outer, group, b));
      if (b == 0) items[control].else_begin = static_cast<uint32_t>(items.size());
    }
    items[control].end = static_cast<uint32_t>(items.size());
  }

  Binding binding(const Frame& frame, const schedule::Binding& from) {
    Binding to;
    to.access = access_of(from);
    Dim offset = from.offset, bytes = from.bytes;
    if (may_be_empty(*frame.schedule, from)) {
      // Nothing lies anywhere, least of all beyond the buffer.
      const Dim& whole = frame.schedule->buffers[static_cast<size_t>(from.buffer)].bytes;
      if (whole.bounds().lo <= 0) offset = min(offset, whole);
      bytes = max(bytes, 0);
    }
    to.arena = place(frame, from.buffer, offset);
    if (offset.is_const())
      to.offset = static_cast<uint64_t>(offset.value());
    else
      to.offset_expression = expression(offset);
    if (bytes.is_const())
      to.bytes = static_cast<uint64_t>(bytes.value());
    else
      to.bytes_expression = expression(bytes);
    return to;
  }

  // Of a value whose dims may be 0, where they are not known now.
  static bool may_be_empty(const schedule::Schedule& s, const schedule::Binding& b) {
    if (b.value == kNoValue || b.bytes.is_const()) return false;
    const Shape& shape = s.graph.shape(b.value);
    return std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return d.bounds().lo <= 0; });
  }

  // The arena of a buffer, whose offset in it is added to `offset`.
  uint32_t place(const Frame& frame, int index, Dim& offset) {
    const schedule::Schedule& s = *frame.schedule;
    const schedule::Buffer& buffer = s.buffers[static_cast<size_t>(index)];
    bool input = buffer.kind == schedule::BufferKind::kInput;
    switch (buffer.kind) {
      case schedule::BufferKind::kConstant:
        offset += Dim(static_cast<int64_t>(constant_offset(buffer)));
        return 0;
      case schedule::BufferKind::kWorkspace:
        offset += buffer.offset + frame.workspace;
        return workspaces_[static_cast<size_t>(frame.region_of(buffer))];
      case schedule::BufferKind::kState:
        return states_[static_cast<size_t>(buffer.slot)];
      case schedule::BufferKind::kInput:
      case schedule::BufferKind::kOutput:
        break;
      case schedule::BufferKind::kBlock:
        QUERNEL_UNREACHABLE("a kernel's own buffer is bound");
    }
    if (!frame.outer) return (input ? inputs_ : outputs_)[static_cast<size_t>(buffer.slot)];
    const schedule::Port& port = (input ? s.inputs : s.outputs)[static_cast<size_t>(buffer.slot)];
    offset += port.base;
    return place(*frame.outer, port.buffer, offset);
  }

  // Those that may fail first: a failure names the first one.
  static std::vector<std::string> source_nodes(const schedule::Schedule& s, const schedule::Group& group) {
    std::vector<std::string> names;
    std::set<std::string> seen;
    for (bool failing : {true, false})
      for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
        for (int n : *nodes) {
          const Node& node = s.graph.nodes[n];
          if (failing && empty_choice(s.graph, node) == Dim(0)) continue;
          std::string name =
              !node.location.node.empty() ? node.location.node : s.graph.values[node.output].name;
          if (seen.insert(name).second) names.push_back(name);
        }
    return names;
  }

  const std::vector<CompiledVariant>& variants_;
  const uint64_t least_alignment_;  // of constants
  BundleContents contents_;
  std::vector<bool> shared_;  // per region: both a GPU and its companion CPU reach it
  std::map<std::vector<int64_t>, int32_t> expressions_;
  // Of the present entry point.
  std::unordered_map<std::string, int64_t> symbol_index_;
  std::vector<quernel::Symbol> symbols_;
  std::vector<uint32_t> workspaces_, inputs_, outputs_, states_;  // arenas
  struct StoredConstant {
    const schedule::Buffer* buffer;
    uint64_t offset;
  };
  std::unordered_multimap<size_t, StoredConstant> constants_;  // by sampled_hash
};

}  // namespace

BundleContents bundle_from_schedule(const std::vector<CompiledVariant>& variants,
                                    const std::string& producer) {
  return Assembler(variants).run(producer);
}

}  // namespace quernel::bundle
