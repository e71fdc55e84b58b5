#include "bundle/bundle_from_schedule.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

namespace quernel::bundle {
namespace {

constexpr uint64_t kAlignment = 64;

std::string_view bytes_of(const schedule::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data.bytes.data()), buffer.data.bytes.size()};
}

uint32_t arch_code(Arch arch) {
  switch (arch) {
    case Arch::kX86_64:
      return QNL_ARCH_X86_64;
    case Arch::kAArch64:
      return QNL_ARCH_AARCH64;
    case Arch::kArm:
      return QNL_ARCH_ARM;
    case Arch::kRiscV64:
      return QNL_ARCH_RISCV64;
    case Arch::kRiscV32:
      return QNL_ARCH_RISCV32;
  }
  return QNL_ARCH_NONE;
}

Access access_of(bool write) { return write ? Access::kWrite : Access::kRead; }

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
  explicit Assembler(const std::vector<CompiledVariant>& variants) : variants_(variants) {}

  BundleContents run(const std::string& producer) {
    const schedule::Schedule& first = variants_[0].schedule;
    contents_.producer = producer;
    for (const quernel::Symbol& symbol : first.graph.symbols) {
      Symbol to{symbol.name, symbol.min, symbol.max, symbol.multiple_of};
      if (symbol.runtime) to.kind = SymbolKind::kRuntime;
      symbol_index_[symbol.name] = static_cast<int64_t>(contents_.symbols.size());
      contents_.symbols.push_back(std::move(to));
    }
    for (size_t i = 0; i < contents_.symbols.size(); ++i)
      if (const quernel::Symbol& symbol = first.graph.symbols[i]; !symbol.bound.empty())
        contents_.symbols[i].max_expression = expression(symbol.bound[0].upper_bound());
    contents_.constants.emplace_back();
    add_arena("constants", ArenaKind::kConstants, 0);
    contents_.arenas[0].constants = 0;
    add_arena("workspace", ArenaKind::kWorkspace, 0);
    EntryPoint entry;
    entry.name = first.graph.name;
    for (ValueId v : first.graph.inputs) {
      input_arenas_.push_back(add_arena("input " + first.graph.values[v].name, ArenaKind::kInput, 0));
      entry.inputs.push_back(tensor(first, v, first.graph.values[v].name, input_arenas_.back()));
    }
    for (const Graph::Output& output : first.graph.outputs) {
      output_arenas_.push_back(add_arena("output " + output.name, ArenaKind::kOutput, 0));
      entry.outputs.push_back(tensor(first, output.value, output.name, output_arenas_.back()));
    }
    for (size_t i = 0; i < variants_.size(); ++i) add_variant(variants_[i], static_cast<uint32_t>(i), entry);
    contents_.entry_points.push_back(std::move(entry));
    contents_.arenas[0].bytes = contents_.constants[0].bytes;
    set_bytes(contents_.arenas[1], workspace_bytes_);
    return std::move(contents_);
  }

 private:
  uint32_t add_arena(std::string name, ArenaKind kind, uint64_t bytes) {
    Arena arena;
    arena.name = std::move(name);
    arena.kind = kind;
    arena.bytes = bytes;
    contents_.arenas.push_back(std::move(arena));
    return static_cast<uint32_t>(contents_.arenas.size()) - 1;
  }

  Tensor tensor(const schedule::Schedule& s, ValueId v, const std::string& name, uint32_t arena) {
    Tensor t;
    t.name = name;
    t.dtype = s.graph.dtype(v);
    const Shape& shape = s.graph.shape(v);
    for (const Dim& d : shape) t.shape.push_back(d.is_const() ? d.value() : -1);
    if (!is_static(shape))
      for (const Dim& d : shape) t.shape_expressions.push_back(d.is_const() ? -1 : expression(d));
    Dim bytes = schedule::byte_size(t.dtype, element_count(shape));
    t.bytes = bytes.is_const() ? static_cast<uint64_t>(bytes.value()) : 0;
    t.arena = arena;
    // A slot has a symbolic size exactly where its tensor has a symbolic shape.
    if (is_static(shape))
      set_bytes(contents_.arenas[arena], bytes);
    else
      contents_.arenas[arena].bytes_expression = expression(bytes.upper_bound());
    return t;
  }

  void set_bytes(Arena& arena, const Dim& bytes) {
    if (bytes.is_const())
      arena.bytes = static_cast<uint64_t>(bytes.value());
    else
      arena.bytes_expression = expression(bytes);
  }

  // Index of the postfix code of a dim; equal dims share it.
  int32_t expression(const Dim& dim) {
    auto [it, fresh] =
        expressions_.try_emplace(to_string(dim), static_cast<int32_t>(contents_.expressions.size()));
    if (fresh) {
      SizeExpression code;
      emit(dim, code.code);
      contents_.expressions.push_back(std::move(code));
    }
    return it->second;
  }

  void emit(const Dim& dim, std::vector<int64_t>& code) const {
    auto step = [&](int64_t opcode, int64_t operand) { code.push_back(opcode), code.push_back(operand); };
    if (dim.is_const()) return step(0, dim.value());
    if (dim.kind() == Dim::Kind::kSymbol) return step(1, symbol_index_.at(dim.name()));
    emit(dim.lhs(), code);
    emit(dim.rhs(), code);
    step(2 + (static_cast<int64_t>(dim.kind()) - static_cast<int64_t>(Dim::Kind::kAdd)), 0);
  }

  // Offset of the constant in the one constants segment; equal contents share it.
  uint64_t constant_offset(const schedule::Buffer& buffer) {
    std::string_view bytes = bytes_of(buffer);
    auto [it, fresh] = constants_.try_emplace(bytes, contents_.constants[0].bytes);
    if (fresh) {
      ConstantsSegment& segment = contents_.constants[0];
      ConstantPiece piece;
      piece.offset = segment.bytes;
      piece.bytes = bytes.size();
      piece.view = {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
      segment.pieces.push_back(std::move(piece));
      segment.bytes = (segment.bytes + bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
    }
    return it->second;
  }

  void add_variant(const CompiledVariant& compiled, uint32_t index, EntryPoint& entry) {
    Variant variant;
    variant.target = compiled.target.name;
    variant.arch = arch_code(compiled.target.arch);
    variant.required_features = compiled.target.required_features;
    variant.code.resize(compiled.image.elf.size());
    if (!variant.code.empty())
      std::memcpy(variant.code.data(), compiled.image.elf.data(), variant.code.size());
    for (size_t k = 0; k < compiled.image.kernel_names.size(); ++k)
      variant.kernels.push_back(
          {compiled.image.kernel_names[k], 0, static_cast<uint32_t>(compiled.image.stack_bytes[k])});
    contents_.variants.push_back(std::move(variant));

    const schedule::Schedule& s = compiled.schedule;
    workspace_bytes_ = max(workspace_bytes_, s.workspace_bytes);
    Plan plan;
    plan.variant = index;
    plan.text = schedule::print(s);
    add_items(plan.items, s, compiled.dispatches, Frame{nullptr, &s, 0});
    entry.plans.push_back(std::move(plan));
  }

  // A schedule within the items of another one; its workspace begins at `workspace`.
  struct Frame {
    const Frame* outer = nullptr;
    const schedule::Schedule* schedule = nullptr;
    Dim workspace = 0;
  };

  // Bodies follow their loop or branch.
  void add_items(std::vector<Item>& items, const schedule::Schedule& s,
                 const std::vector<Dispatch>& dispatches, const Frame& frame) {
    std::vector<uint32_t> index;  // of the schedule's items
    for (size_t i = 0; i < s.items.size(); ++i) {
      const schedule::Item& from = s.items[i];
      index.push_back(static_cast<uint32_t>(items.size()));
      Item item;
      if (from.group < 0) {
        item.kind = ItemKind::kReadSymbol;
        item.symbol = static_cast<int32_t>(symbol_index_.at(from.symbol));
        item.dtype = s.graph.dtype(from.bindings[0].value);
      } else if (s.groups[from.group].kind == schedule::GroupKind::kControl) {
        add_control(item, s.graph.nodes[s.groups[from.group].anchor]);
      } else {
        add_dispatch(item, dispatches[i]);
      }
      if (from.group >= 0) item.source_nodes = source_nodes(s, s.groups[from.group]);
      if (item.kind == ItemKind::kDispatch || item.kind == ItemKind::kReadSymbol)
        for (const schedule::Binding& b : from.bindings) item.bindings.push_back(binding(frame, b));
      for (const schedule::Dependency& d : from.dependencies)
        item.edges.push_back({index[static_cast<size_t>(d.item)], edge_kind(d.hazard)});
      item.flops = static_cast<uint64_t>(from.flops);
      item.bytes_read = static_cast<uint64_t>(from.bytes_read);
      item.bytes_written = static_cast<uint64_t>(from.bytes_written);
      items.push_back(std::move(item));
      if (from.group >= 0 && s.groups[from.group].kind == schedule::GroupKind::kControl)
        add_bodies(items, frame, s.groups[from.group], dispatches[i]);
    }
  }

  void add_dispatch(Item& item, const Dispatch& dispatch) {
    item.kernel = static_cast<uint32_t>(dispatch.kernel);
    if (dispatch.workgroups.is_const())
      item.workgroups = static_cast<uint64_t>(dispatch.workgroups.value());
    else
      item.workgroups_expression = expression(dispatch.workgroups);
    for (const Dim& d : dispatch.symbols) item.symbols.push_back(expression(d));
  }

  void add_control(Item& item, const Node& node) {
    const Control& control = *node.attributes.control;
    item.kind = node.op == OpKind::k_loop ? ItemKind::kLoop : ItemKind::kBranch;
    if (node.op == OpKind::k_loop) item.symbol = static_cast<int32_t>(symbol_index_.at(control.symbol));
    if (control.count) item.count_expression = expression(*control.count);
    if (control.condition) item.condition_expression = expression(*control.condition);
  }

  // The bodies of the last item.
  void add_bodies(std::vector<Item>& items, const Frame& outer, const schedule::Group& group,
                  const Dispatch& dispatch) {
    size_t control = items.size() - 1;
    for (size_t b = 0; b < group.bodies.size(); ++b) {
      Frame frame{&outer, &group.bodies[b], outer.workspace};
      if (group.scratch_buffer >= 0) frame.workspace += outer.schedule->buffers[group.scratch_buffer].offset;
      add_items(items, group.bodies[b], dispatch.bodies[b], frame);
      if (b == 0) items[control].else_begin = static_cast<uint32_t>(items.size());
    }
    items[control].end = static_cast<uint32_t>(items.size());
  }

  Binding binding(const Frame& frame, const schedule::Binding& from) {
    Binding to;
    to.access = access_of(from.write);
    Dim offset = from.offset;
    to.arena = place(frame, from.buffer, offset);
    if (offset.is_const())
      to.offset = static_cast<uint64_t>(offset.value());
    else
      to.offset_expression = expression(offset);
    if (from.bytes.is_const())
      to.bytes = static_cast<uint64_t>(from.bytes.value());
    else
      to.bytes_expression = expression(from.bytes);
    return to;
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
        return 1;
      case schedule::BufferKind::kInput:
      case schedule::BufferKind::kOutput:
        break;
    }
    if (!frame.outer) return (input ? input_arenas_ : output_arenas_)[static_cast<size_t>(buffer.slot)];
    const schedule::Port& port = (input ? s.inputs : s.outputs)[static_cast<size_t>(buffer.slot)];
    offset += port.base;
    return place(*frame.outer, port.buffer, offset);
  }

  static std::vector<std::string> source_nodes(const schedule::Schedule& s, const schedule::Group& group) {
    std::vector<std::string> names;
    std::set<std::string> seen;
    for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
      for (int n : *nodes) {
        const Location& place = s.graph.nodes[n].location;
        std::string name = !place.node.empty() ? place.node : s.graph.values[s.graph.nodes[n].output].name;
        if (seen.insert(name).second) names.push_back(name);
      }
    return names;
  }

  const std::vector<CompiledVariant>& variants_;
  BundleContents contents_;
  Dim workspace_bytes_ = 0;
  std::unordered_map<std::string, int64_t> symbol_index_;
  std::unordered_map<std::string, int32_t> expressions_;
  std::vector<uint32_t> input_arenas_, output_arenas_;
  std::unordered_map<std::string_view, uint64_t> constants_;
};

}  // namespace

BundleContents bundle_from_schedule(const std::vector<CompiledVariant>& variants,
                                    const std::string& producer) {
  return Assembler(variants).run(producer);
}

}  // namespace quernel::bundle
