// Where stored values live. Outputs go straight into the caller's slots; operands of a cat into its storage
// where their producer can write there; everything else into a workspace buffer of its own.
#include <algorithm>
#include <bit>
#include <map>
#include <unordered_set>

#include "graph/quantized.h"
#include "schedule/attention/attention_block.h"
#include "schedule/contraction/column_constants.h"
#include "schedule/contraction/contraction_text.h"
#include "schedule/contraction/pack_blocks.h"
#include "schedule/contraction/packed_operand.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/contraction/tile_estimates.h"
#include "schedule/custom_call.h"
#include "schedule/selection.h"
#include "schedule/steps.h"
#include "schedule/storage.h"
#include "schedule/winograd/winograd_weights.h"

namespace quernel::schedule {
namespace {

Dim value_bytes(const Graph& graph, ValueId v) {
  return byte_size(graph.dtype(v), element_count(graph.shape(v))).upper_bound();
}

constexpr int64_t kSmallConstant = 64 << 10;  // bytes

Tensor packed_tensor(const PackedConstant& constant) {
  std::vector<uint8_t> bytes;
  bytes.reserve(static_cast<size_t>(constant.bytes));
  constant.pack([&](std::span<const std::byte> part) {
    const auto* begin = reinterpret_cast<const uint8_t*>(part.data());
    bytes.insert(bytes.end(), begin, begin + part.size());
  });
  return {constant.dtype, {constant.bytes / element_size(constant.dtype)}, Bytes::own(std::move(bytes))};
}

class Assigner {
 public:
  Assigner(Schedule& schedule, const Target& target, Packings& packings)
      : s_(schedule), g_(schedule.graph), target_(target), packings_(packings) {
    s_.storage.assign(g_.values.size(), {});
    producer_.assign(g_.values.size(), -1);
    for (size_t i = 0; i < s_.groups.size(); ++i)
      for (ValueId v : s_.groups[i].outputs) producer_[v] = static_cast<int>(i);
  }

  Status run() {
    if (target_.companion && !s_.is_body) s_.regions.push_back({"shared memory", 0, 0, true});
    for (size_t i = 0; i < g_.states.size(); ++i)
      place(g_.inputs[g_.states[i].input], BufferKind::kState, static_cast<int>(i));
    for (const Group& group : s_.groups) {
      if (group.kind == GroupKind::kContract)
        for (int i = 0; i < 2; ++i) {
          const ValueId v = resolve_operand(g_, g_.nodes[group.anchor], i).base;
          contractions_.emplace(v, group.anchor);
          if (std::optional<RowsOfBytes> rows = rows_of_bytes(g_, v)) {
            dense_.insert(rows->digits.begin(), rows->digits.end());
            dense_.insert({rows->scales, rows->sums});
          }
        }
      if (group.kind == GroupKind::kCustom)
        for (ValueId v : g_.nodes[group.anchor].inputs) dense_.insert(v);
      for (const Group& part : group.parts) {
        if (part.kind == GroupKind::kContract)  // form_attention has planned with dense operands
          for (int i = 0; i < 2; ++i) dense_.insert(resolve_operand(g_, g_.nodes[part.anchor], i).base);
        if (&part != &group.parts.back())
          for (ValueId v : part.outputs) place(v, BufferKind::kBlock, -1);
      }
    }
    for (size_t i = 0; i < g_.inputs.size(); ++i)
      if (!g_.state_of_input(i)) place(g_.inputs[i], kind_of_io(BufferKind::kInput), static_cast<int>(i));
    for (size_t i = 0; i < s_.inputs.size(); ++i) use_port(g_.inputs[i], s_.inputs[i]);
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      if (!g_.state_of_output(i))
        place(g_.outputs[i].value, kind_of_io(BufferKind::kOutput), static_cast<int>(i));
    for (size_t i = 0; i < s_.outputs.size(); ++i) use_port(g_.outputs[i].value, s_.outputs[i]);
    for (size_t i = s_.groups.size(); i-- > 0;) {
      Group& group = s_.groups[i];
      if (group.kind == GroupKind::kControl) place_carried(group);
      for (ValueId v : group.outputs)
        if (!s_.storage[v].valid()) place(v, BufferKind::kWorkspace, -1);
      if (group.kind == GroupKind::kCat) write_cat_in_place(group);
    }
    for (Group& group : s_.groups) {
      collect_reads(group);
      if (g_.nodes[group.anchor].op == OpKind::k_argsort) add_scratch(group);
      if (group.stream) add_parts(group);
    }
    for (Group& group : s_.groups) {
      if (group.kind == GroupKind::kContract) QUERNEL_CHECK(plan(group));
      if (group.kind == GroupKind::kAttention && !group.stream) plan_attention(group);
      for (ValueId v : group.reads)
        if (!s_.storage[v].valid()) place_constant(v);
    }
    return {};
  }

 private:
  int add_buffer(BufferKind kind, DType dtype, Dim bytes, int slot, std::string name) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.dtype = dtype;
    buffer.bytes = bytes;
    buffer.slot = slot;
    buffer.name = std::move(name);
    s_.buffers.push_back(std::move(buffer));
    return static_cast<int>(s_.buffers.size()) - 1;
  }

  BufferKind kind_of_io(BufferKind kind) const { return s_.io_in_workspace ? BufferKind::kWorkspace : kind; }

  void place(ValueId v, BufferKind kind, int slot) {
    int buffer = add_buffer(kind, g_.dtype(v), value_bytes(g_, v), slot, g_.values[v].name);
    s_.storage[v] = {buffer, 0, contiguous_strides(g_.shape(v))};
  }

  // An input or output of a body lies where the schedule around it says.
  void use_port(ValueId v, const Port& port) {
    s_.buffers[s_.storage[v].buffer].bytes = port.bytes;
    s_.storage[v].offset = port.offset;
    s_.storage[v].strides = port.strides;
  }

  // Two slots for each value that a loop carries: the initial value is written to the first, the last one is
  // where the number of iterations says.
  void place_carried(const Group& group) {
    const Node& loop = g_.nodes[group.anchor];
    const Control& control = *loop.attributes.control;
    for (ValueId v : group.outputs) {
      const Node& result = *g_.def(v);
      if (!is_carried(g_, result)) continue;
      Dim slot = slot_elements(g_.type(v));
      int buffer = add_buffer(BufferKind::kWorkspace, g_.dtype(v), byte_size(g_.dtype(v), slot * 2), -1,
                              g_.values[v].name);
      Dim which = floormod(Dim::symbol(*g_.find_symbol(control.symbol)), 2);
      ValueId initial = loop.inputs[static_cast<size_t>(result.attributes.ints[0])];
      s_.storage[initial] = {buffer, 0, contiguous_strides(g_.shape(v))};
      s_.storage[v] = {buffer, which * slot, contiguous_strides(g_.shape(v))};
    }
  }

  // Equal contents share a buffer.
  int constant_buffer(const Tensor& data, const std::string& name) {
    const size_t hash = sampled_hash(data.bytes);
    auto range = constants_.equal_range(hash);
    for (auto it = range.first; it != range.second; ++it)
      if (const Buffer& known = s_.buffers[it->second];
          !known.packed && known.dtype == data.dtype && same_bytes(known.data.bytes, data.bytes))
        return it->second;
    int buffer =
        add_buffer(BufferKind::kConstant, data.dtype, static_cast<int64_t>(data.bytes.size()), -1, name);
    s_.buffers[buffer].data = data;
    constants_.emplace(hash, buffer);
    return buffer;
  }

  // Small ones are packed here, so that equal contents share a buffer whatever they were made of.
  int packed_buffer(PackedConstant constant, const std::string& name) {
    if (constant.bytes <= kSmallConstant) return constant_buffer(packed_tensor(constant), name);
    const size_t hash = sampled_hash(constant);
    auto range = constants_.equal_range(hash);
    for (auto it = range.first; it != range.second; ++it)
      if (const Buffer& known = s_.buffers[it->second];
          known.packed && same_constant(*known.packed, constant))
        return it->second;
    int buffer = add_buffer(BufferKind::kConstant, constant.dtype, constant.bytes, -1, name);
    s_.buffers[buffer].packed = std::make_shared<const PackedConstant>(std::move(constant));
    constants_.emplace(hash, buffer);
    return buffer;
  }

  void place_constant(ValueId v) {
    const Tensor* data = g_.constant(v);
    QUERNEL_ASSERT(data);
    s_.storage[v] = {constant_buffer(*data, g_.values[v].name), 0,
                     contiguous_strides(make_shape(data->dims))};
  }

  // Strides of a contraction's operand, from where its stored value lives or, without a place yet, will by
  // default.
  OperandStrides strides_of(const Node& contraction, const OperandAccess& access) const {
    const Tensor* constant = g_.constant(access.base);
    const Storage& storage = s_.storage[access.base];
    bool placed = !constant && storage.valid();
    Shape dims = placed ? storage.strides
                        : contiguous_strides(constant ? make_shape(constant->dims) : g_.shape(access.base));
    // A place that depends on a run-time symbol is found by the kernel.
    Dim offset = placed && !storage.offset.is_bound() ? storage.offset : Dim(0);
    return operand_strides(g_, access, dims, offset, contraction.attributes.contraction.axes.size());
  }

  // materialize_operands promised that contractions can read their operands in place: whether those that read
  // `v` still can.
  bool keeps_contractions(ValueId v) const {
    auto [first, last] = contractions_.equal_range(v);
    return std::all_of(first, last, [&](const std::pair<const ValueId, int>& entry) {
      const Node& node = g_.nodes[entry.second];
      const Contraction& c = node.attributes.contraction;
      OperandStrides a = strides_of(node, resolve_operand(g_, node, 0));
      if (c.winograd != 0) return a.axis[winograd_form(g_, node)->channels] == Dim(1);
      OperandStrides b = strides_of(node, resolve_operand(g_, node, 1));
      return plan_contraction(c, a, b, target_).vector_axis >= 0;
    });
  }

  void write_cat_in_place(Group& group) {
    const Node& cat = g_.nodes[group.anchor];
    Storage whole = s_.storage[cat.output];
    size_t axis = static_cast<size_t>(cat.attributes.ints[0]);
    Dim start = 0;
    for (size_t i = 0; i < cat.inputs.size(); ++i) {
      ValueId v = cat.inputs[i];
      // A producer of ours that has no place yet writes here; the operand's own groups come before the cat's.
      bool in_place = producer_[v] >= 0 && !s_.storage[v].valid() && !is_carried(g_, *g_.def(v)) &&
                      !is_custom_result(g_, *g_.def(v)) && !dense_.count(v);
      if (in_place) {
        s_.storage[v] = {whole.buffer, whole.offset + start * whole.strides[axis], whole.strides};
        in_place = keeps_contractions(v);
        if (!in_place) s_.storage[v] = {};
      }
      if (!in_place) group.copied.push_back(static_cast<int>(i));
      start += g_.shape(v)[axis];
    }
  }

  void collect_reads(Group& group) {
    if (group.kind == GroupKind::kCustom) {  // constants of one element, too
      std::unordered_set<ValueId> operands(g_.nodes[group.anchor].inputs.begin(),
                                           g_.nodes[group.anchor].inputs.end());
      group.reads.assign(operands.begin(), operands.end());
      std::sort(group.reads.begin(), group.reads.end());
      return;
    }
    std::unordered_set<ValueId> own, seen;
    for (int n : group.nodes) own.insert(g_.nodes[n].output);
    std::vector<ValueId> stack;
    auto visit = [&](ValueId v) {
      if (!own.count(v) && seen.insert(v).second) stack.push_back(v);
    };
    if (group.kind == GroupKind::kCat) {
      for (int i : group.copied) visit(g_.nodes[group.anchor].inputs[i]);
    } else {
      for (int n : group.nodes) {
        const Node& node = g_.nodes[n];
        if (node.op == OpKind::k_contract) continue;
        for (ValueId v : node.inputs) visit(v);
      }
      if (group.kind == GroupKind::kContract)
        for (int i = 0; i < 2; ++i)
          if (ValueId base = resolve_operand(g_, g_.nodes[group.anchor], i).base;
              !quantized_constant(g_, base))
            visit(base);
      for (const Group& part : group.parts)
        if (part.kind == GroupKind::kContract)
          for (int i = 0; i < 2; ++i) visit(resolve_operand(g_, g_.nodes[part.anchor], i).base);
      if (group.stream && !group.stream->combines)
        for (const KeyLimit& limit : group.stream->limits) visit(limit.value);
    }
    while (!stack.empty()) {
      ValueId v = stack.back();
      stack.pop_back();
      const Tensor* constant = g_.constant(v);
      if (s_.storage[v].valid() || constant) {
        if (!(constant && constant->count() == 1))
          group.reads.push_back(v);
        else if (group.kind == GroupKind::kContract)
          scalars_.insert(v);
        continue;
      }
      for (ValueId input : g_.def(v)->inputs) visit(input);
    }
    std::sort(group.reads.begin(), group.reads.end());
  }

  // The choice of a file, where there is one.
  const Choice* chosen(const Group& group) const {
    Choices* choices = packings_.choices();
    return choices ? choices->find(target_.name, group.key) : nullptr;
  }

  Status plan(Group& group) {
    const Node& node = g_.nodes[group.anchor];
    OperandAccess access[2];
    OperandStrides strides[2];
    for (int i = 0; i < 2; ++i) {
      access[i] = resolve_operand(g_, node, i);
      strides[i] = strides_of(node, access[i]);
    }
    if (node.attributes.contraction.winograd != 0) return plan_winograd(group, access, strides);
    group.contraction = plan_contraction(node.attributes.contraction, strides[0], strides[1], target_);
    ContractionPlan& p = group.contraction;
    QUERNEL_ASSERT(p.vector_axis >= 0);
    group.key = contraction_text(g_, node, p);
    const Choice* choice = chosen(group);
    const Tiling* tiling = choice ? std::get_if<Tiling>(choice) : nullptr;
    if (choice) {
      std::vector<Tiling> legal = tilings(p, target_);
      bool known = tiling && std::any_of(legal.begin(), legal.end(), [&](const Tiling& t) {
                     return t.rows == tiling->rows && t.columns == tiling->columns && tiling->winograd == 0;
                   });
      if (!known)
        return packings_.choices()->refuse(target_.name, group.key, "a tile among " + tiles_text(legal));
      set_tiling(p, *tiling);
      p.reason = "as the file of choices says";
    }
    if (!tiling && finds_rows_once(group)) p.order = TileOrder::kColumns;
    ValueId a = access[p.swapped ? 1 : 0].base, b = access[p.swapped ? 0 : 1].base;
    p.line_rows = rows_of_line(group);
    if (p.packed) {
      const std::optional<QuantizedConstant> quantized = quantized_constant(g_, b);
      const Tensor& data = quantized ? *quantized->elements : *g_.constant(b);
      QUERNEL_ASSERT(quantized.has_value() == p.blocks.has_value());
      std::string order = packing_order(p);
      if (int panel_v = packings_.panel_v(data, order, p.panel_v); panel_v != p.panel_v) {
        // A chosen tile that does not fit the panels has some of its own.
        if (tiling)
          set_tiling(p, *tiling, panel_v);
        else
          p = plan_contraction(node.attributes.contraction, strides[0], strides[1], target_,
                               {.panel_v = panel_v});
        p.line_rows = rows_of_line(group);
      }
      const std::vector<const Tensor*> constants = take_column_constants(group, order);
      const std::string name = g_.values[b].name;
      group.packed_buffers.clear();
      if (quantized) {
        const char* parts[] = {".packed", ".scales", ".zeros"};
        for (PackedConstant& part : pack_blocks(*quantized, p, order))
          group.packed_buffers.push_back(
              packed_buffer(std::move(part), name + parts[group.packed_buffers.size()]));
      } else {
        group.packed_buffers = {packed_buffer(packed_operand(data, p, constants, order), name + ".packed")};
      }
      if (a != b && !read_by_epilogue(group, b)) std::erase(group.reads, b);
    }
    // Single-element operands are read from memory like any other.
    for (ValueId v : {a, b})
      if (scalars_.count(v) && !(p.packed && v == b) &&
          std::find(group.reads.begin(), group.reads.end(), v) == group.reads.end())
        group.reads.push_back(v);
    if (a != b) give_slack(p, a);
    return {};
  }

  // Lets the last word of a sum read past the elements of `a`, where it would else be combined from single bytes.
  void give_slack(ContractionPlan& p, ValueId a) {
    constexpr int64_t kWord = 4;
    const Storage& storage = s_.storage[a];
    if (!p.integers || p.dot != kWord || p.staged || target_.registers_are_few() ||
        target_.lanes_are_invocations() || !storage.valid())
      return;
    Buffer& buffer = s_.buffers[storage.buffer];
    const Dim end = storage.offset + span(g_.shape(a), storage.strides);
    const Dim& last = p.axes[p.reduction_axes.back()].extent;
    if (buffer.kind != BufferKind::kWorkspace || !buffer.bytes.is_const() || !end.is_const() ||
        !last.is_const() || last.value() % kWord == 0)
      return;
    p.slack = static_cast<int>(kWord - last.value() % kWord);
    buffer.bytes = std::max(buffer.bytes.value(), end.value() + p.slack);
  }

  // Lets panels of words end with the constants of their columns, where registers are few: the pointer to the panel then
  // leads to them, and tables of their own need no pointers. Returns the constants; `order` becomes that of the panels
  // with them.
  std::vector<const Tensor*> take_column_constants(Group& group, std::string& order) {
    ContractionPlan& p = group.contraction;
    const bool panels_by_grid =
        std::any_of(p.grid_axes.begin(), p.grid_axes.end(), [&](int i) { return !(p.axes[i].b == Dim(0)); });
    if (!target_.registers_are_few() || !p.integers || p.dot != 4 || p.tile_v > p.panel_v || panels_by_grid)
      return {};
    p.column_constants = column_constants(g_, group);
    std::vector<const Tensor*> tensors;
    for (const ColumnConstant& c : p.column_constants) {
      tensors.push_back(g_.constant(c.constant));
      order += "/column";
      if (!read_by_epilogue(group, c.constant)) std::erase(group.reads, c.constant);
    }
    return tensors;
  }

  // Whether all columns of a tile's rows come first, so that the place of each row is found once: results lie
  // within a padded image, no loop counts rows by lines, and there are no caches that another order would fill better.
  bool finds_rows_once(const Group& group) const {
    return target_.memory_is_dear() && group.contraction.packed && rows_of_line(group) == 0 &&
           std::any_of(group.outputs.begin(), group.outputs.end(),
                       [&](ValueId v) { return s_.storage[v].strides != contiguous_strides(g_.shape(v)); });
  }

  // Where rows lie on lines of an image, their places are not divided out of numbers of rows if a loop counts those of a
  // line; with lines as the outermost loop, results follow what is read. Where code is dear and tiles end with lines.
  int64_t rows_of_line(const Group& group) const {
    const ContractionPlan& p = group.contraction;
    if (!target_.code_is_dear() || !p.sums_lanes || p.row_axes.empty()) return 0;
    const ContractionPlan::Axis& last = p.axes[p.row_axes.back()];
    const bool padded = std::any_of(group.outputs.begin(), group.outputs.end(), [&](ValueId v) {
      return s_.storage[v].strides != contiguous_strides(g_.shape(v));
    });
    const bool one_axis = p.row_axes.size() == 1;
    const Dim& line = padded || one_axis ? p.member_extents[last.members.back()] : last.extent;
    const bool several = line.is_const() && !(row_count(p) == line) && line.value() > 1;
    return several && line.value() % p.tile_m == 0 ? line.value() : 0;
  }

  void plan_attention(Group& group) {
    for (Group* part : {&group.parts.front(), &group.parts.back()}) {
      const Node& node = g_.nodes[part->anchor];
      OperandStrides strides[2];
      for (int i = 0; i < 2; ++i) strides[i] = strides_of(node, resolve_operand(g_, node, i));
      part->contraction = plan_contraction(node.attributes.contraction, strides[0], strides[1], target_);
    }
    ValueId scores = group.parts[0].outputs[0], weights = group.parts[1].outputs[0];
    ContractionPlan& result = group.parts[2].contraction;
    AttentionBlock block =
        plan_block(group.parts[0].contraction, result, score_rows(g_, group.parts[1], scores), target_);
    group.block_rows = block.rows;
    group.block_keys = block.keys;
    if (block.keys == 0) return;
    // Of a row, the block holds some keys.
    for (ValueId v : {scores, weights}) {
      Shape& strides = s_.storage[v].strides;
      std::fill(strides.begin(), strides.end(), Dim(0));
      strides.back() = 1;
      strides[strides.size() - 2] = block.keys;
    }
    for (ContractionPlan::Axis& axis : result.axes) axis.a = 0;
    result.a_offset = 0;
    result.axes[result.row_axes[0]].a = block.keys;
    result.axes[result.reduction_axes[0]].a = 1;
  }

  Status plan_winograd(Group& group, const OperandAccess (&access)[2], const OperandStrides (&strides)[2]) {
    const Node& node = g_.nodes[group.anchor];
    const Contraction& c = node.attributes.contraction;
    WinogradForm form = *winograd_form(g_, node);
    ValueId weights = access[1].base;
    const Tensor& data = *g_.constant(weights);
    std::string order = "/winograd " + std::to_string(c.winograd) + "/" + to_string(strides[1].offset);
    for (int axis : {form.window_y, form.window_x, form.channels, form.columns, form.group})
      if (axis >= 0) order += "," + to_string(strides[1].axis[axis]);
    group.winograd = schedule::plan_winograd(c, form, c.winograd, strides[0], target_);
    group.key = contraction_text(c, form);
    const Choice* choice = chosen(group);
    const Tiling* tiling = choice ? std::get_if<Tiling>(choice) : nullptr;
    if (choice) {
      if (!tiling || !is_legal(group.winograd, target_, *tiling))
        return packings_.choices()->refuse(
            target_.name, group.key,
            "a tile among " + tiles_text(tilings(group.winograd, target_)) +
                ", and a block of a multiple of its rows that the image and 2 MB of scratch hold");
      set_tiling(group.winograd, *tiling);
    }
    int panel_v = packings_.panel_v(data, order, group.winograd.tile_v);
    // A chosen tile that does not fit the panels has some of its own.
    if (panel_v != group.winograd.tile_v && !tiling)
      group.winograd = schedule::plan_winograd(c, form, c.winograd, strides[0], target_, panel_v);
    group.packed_buffers = {packed_buffer(packed_winograd_weights(data, group.winograd, strides[1], order),
                                          g_.values[weights].name + ".packed")};
    if (access[0].base != weights && !read_by_epilogue(group, weights)) std::erase(group.reads, weights);
    return {};
  }

  // Two positions for each element that is sorted, or a heap for each line whose first elements are selected.
  // What the parts of an attention's keys give: for each row, its sums over values, its largest score and its sum of
  // exponentials. One kernel writes it, the next one reads it.
  void add_parts(Group& group) {
    const StreamPlan& plan = *group.stream;
    if (plan.parts == 1) return;
    if (plan.combines) {
      group.scratch_buffer = parts_buffer_;
      return;
    }
    Dim elements = plan.parts * plan.row_count * (plan.columns + 2);
    for (const StreamPlan::Axis& axis : plan.grid) elements *= axis.extent;
    group.scratch_buffer = parts_buffer_ =
        add_buffer(BufferKind::kWorkspace, DType::kF32, byte_size(DType::kF32, elements).upper_bound(), -1,
                   g_.values[g_.nodes[group.anchor].output].name + ".parts");
  }

  void add_scratch(Group& group) {
    const Node& node = g_.nodes[group.anchor];
    auto axis = static_cast<size_t>(node.attributes.ints[0]);
    Shape dims = g_.shape(node.inputs[0]);
    bool selects = selects_first(g_, node, target_);
    DType dtype = !selects && always_le(dims[axis], INT32_MAX) ? DType::kI32 : DType::kI64;
    dims[axis] = selects ? Dim(selection_slots(node.attributes.shape[0].value()) * selection_words(g_, node))
                         : dims[axis] * 2;
    group.scratch_buffer =
        add_buffer(BufferKind::kWorkspace, dtype, byte_size(dtype, element_count(dims)).upper_bound(), -1,
                   g_.values[node.output].name + ".scratch");
  }

  // In which order the operand's elements are packed, but for the width of panels.
  std::string packing_order(const ContractionPlan& p) const {
    std::string key = "/" + to_string(p.b_offset);
    auto axis = [&](int i) {
      key += ",";
      for (int m : p.axes[i].members)
        key += to_string(p.member_extents[m]) + "*" + to_string(p.member_b_strides[m]) + ".";
    };
    for (int i : p.grid_axes)
      if (!(p.axes[i].b == Dim(0))) axis(i);
    key += "|";
    for (int i : p.reduction_axes) axis(i);
    key += "|";
    axis(p.vector_axis);
    if (packs_bytes(p)) key += p.gathers_rows ? "|vectors of rows" : "|vectors";
    if (p.blocks)
      key += "|" + std::to_string(p.blocks->format.bits) + " bits by " + std::to_string(p.blocks->steps) +
             (p.blocks->pairs ? " in pairs" : "");
    if (p.dot > 1) key += "|words shifted by " + std::to_string(p.dot_shift);
    return key;
  }

  bool read_by_epilogue(const Group& group, ValueId v) const {
    std::vector<ValueId> stack;
    std::unordered_set<ValueId> seen{g_.nodes[group.anchor].output};
    for (const ColumnConstant& c : group.contraction.column_constants) seen.insert(c.read_as);
    for (int n : group.nodes)
      if (n != group.anchor)
        for (ValueId x : g_.nodes[n].inputs) stack.push_back(x);
    while (!stack.empty()) {
      ValueId x = stack.back();
      stack.pop_back();
      if (!seen.insert(x).second) continue;
      if (x == v) return true;
      if (s_.storage[x].valid() || g_.constant(x)) continue;
      if (const Node* node = g_.def(x))
        for (ValueId y : node->inputs) stack.push_back(y);
    }
    return false;
  }

  Schedule& s_;
  const Graph& g_;
  const Target& target_;
  Packings& packings_;
  std::vector<int> producer_;  // per value: group that stores it
  std::multimap<size_t, int> constants_;
  int parts_buffer_ = -1;  // of the latest attention in parts of keys
  std::unordered_set<ValueId> scalars_;
  std::multimap<ValueId, int> contractions_;  // nodes, by the stored values that they read
  std::unordered_set<ValueId> dense_;         // those that custom ops read
};

}  // namespace

Status assign_storage(Schedule& schedule, const Target& target, Packings& packings) {
  return Assigner(schedule, target, packings).run();
}

}  // namespace quernel::schedule
