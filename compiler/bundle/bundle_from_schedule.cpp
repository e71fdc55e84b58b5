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
    t.shape = static_dims(s.graph.shape(v));
    t.bytes = static_cast<uint64_t>(byte_size(t.dtype, *element_count(t.shape)));
    t.arena = arena;
    contents_.arenas[arena].bytes = t.bytes;
    return t;
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
    contents_.arenas[1].bytes = std::max(contents_.arenas[1].bytes, static_cast<uint64_t>(s.workspace_bytes));
    Plan plan;
    plan.variant = index;
    plan.text = schedule::print(s);
    for (size_t i = 0; i < s.items.size(); ++i) {
      const schedule::Item& from = s.items[i];
      Item item;
      item.kernel = static_cast<uint32_t>(compiled.kernel_of_item[i]);
      item.workgroups = static_cast<uint64_t>(compiled.workgroups[i]);
      for (const schedule::Binding& b : from.bindings) item.bindings.push_back(binding(s, b));
      for (const schedule::Dependency& d : from.dependencies)
        item.edges.push_back({static_cast<uint32_t>(d.item), edge_kind(d.hazard)});
      item.flops = static_cast<uint64_t>(from.flops);
      item.bytes_read = static_cast<uint64_t>(from.bytes_read);
      item.bytes_written = static_cast<uint64_t>(from.bytes_written);
      item.source_nodes = source_nodes(s, s.groups[from.group]);
      plan.items.push_back(std::move(item));
    }
    entry.plans.push_back(std::move(plan));
  }

  Binding binding(const schedule::Schedule& s, const schedule::Binding& from) {
    const schedule::Buffer& buffer = s.buffers[from.buffer];
    Binding to;
    to.access = access_of(from.write);
    to.offset = static_cast<uint64_t>(from.offset);
    to.bytes = static_cast<uint64_t>(from.bytes);
    switch (buffer.kind) {
      case schedule::BufferKind::kConstant:
        to.arena = 0, to.offset += constant_offset(buffer);
        break;
      case schedule::BufferKind::kWorkspace:
        to.arena = 1, to.offset += static_cast<uint64_t>(buffer.offset);
        break;
      case schedule::BufferKind::kInput:
        to.arena = input_arenas_[buffer.slot];
        break;
      case schedule::BufferKind::kOutput:
        to.arena = output_arenas_[buffer.slot];
        break;
    }
    return to;
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
  std::vector<uint32_t> input_arenas_, output_arenas_;
  std::unordered_map<std::string_view, uint64_t> constants_;
};

}  // namespace

BundleContents bundle_from_schedule(const std::vector<CompiledVariant>& variants,
                                    const std::string& producer) {
  return Assembler(variants).run(producer);
}

}  // namespace quernel::bundle
