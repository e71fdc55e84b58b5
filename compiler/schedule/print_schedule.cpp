#include "schedule/print_schedule.h"

#include <algorithm>
#include <sstream>

#include "graph/text.h"
#include "targets/target.h"

namespace quernel::schedule {
namespace {

class Printer {
 public:
  explicit Printer(const Schedule& schedule) : s_(schedule), g_(schedule.graph) {}

  std::string run() {
    text_ = "schedule " + g_.name + "\n";
    if (s_.groups.empty() && s_.items.empty() && !g_.nodes.empty()) return text_ + print(g_, kMostPrinted);
    if (s_.items.empty())
      print_groups();
    else
      print_items();
    return std::move(text_);
  }

 private:
  void print_groups() {
    for (const Group& group : s_.groups) {
      text_ += "  group " + std::to_string(&group - s_.groups.data()) + ": ";
      print_group(group);
      for (ValueId v : group.outputs) print_value("stores", v);
      for (ValueId v : group.reads) print_value("reads", v);
      for (int packed : group.packed_buffers) text_ += "    reads " + s_.buffers[packed].name + "\n";
      if (group.scratch_buffer >= 0) text_ += "    scratch " + s_.buffers[group.scratch_buffer].name + "\n";
    }
  }

  void print_value(const char* role, ValueId v) {
    text_ += std::string("    ") + role + " " + g_.values[v].name + ": " + to_string(g_.type(v));
    const Storage* storage = s_.storage.empty() ? nullptr : &s_.storage[v];
    if (storage && storage->valid()) {
      text_ += " in " + buffer_name(storage->buffer);
      if (!(storage->offset == Dim(0))) text_ += " from " + to_string(storage->offset);
    }
    text_ += "\n";
  }

  // A buffer that has no offset yet.
  std::string buffer_name(int b) const {
    const Buffer& buffer = s_.buffers[b];
    switch (buffer.kind) {
      case BufferKind::kConstant:
        return "constant " + buffer.name;
      case BufferKind::kWorkspace:
        return "buffer " + buffer.name;
      default:
        return place(b);
    }
  }

  void print_items() {
    text_ += "  constants " + std::to_string(s_.constant_bytes) + " bytes";
    for (const Region& region : s_.regions)
      text_ += ", " + region.name + " " + to_string(region.bytes) + " bytes";
    text_ += "\n";
    for (const Item& item : s_.items) {
      text_ += "  item " + std::to_string(&item - s_.items.data()) + ": ";
      if (item.group < 0) {
        text_ += "read symbol " + item.symbol + " from " + g_.values[item.bindings[0].value].name + "\n";
        continue;
      }
      print_group(s_.groups[item.group]);
      for (const Binding& b : item.bindings) print_binding(b);
      text_ += "    " + to_string(item.flops) + " flops, " + to_string(item.bytes_read) + " bytes read, " +
               to_string(item.bytes_written) + " bytes written";
      if (!item.dependencies.empty()) text_ += ", after";
      for (const Dependency& d : item.dependencies)
        text_ += " " + std::to_string(d.item) + ":" + std::string(to_string(d.hazard));
      text_ += "\n";
    }
  }

  void print_binding(const Binding& b) {
    text_ += std::string("    ") + (b.write ? "writes " : "reads ");
    text_ += b.value == kNoValue ? (b.write ? "scratch" : "packed weights")
                                 : g_.values[b.value].name + ": " + to_string(g_.type(b.value));
    text_ += " at " + place(b.buffer) + (b.offset == Dim(0) ? "" : "+" + to_string(b.offset));
    if (b.write && s_.buffers[b.buffer].shares >= 0) text_ += " in place";
    text_ += "\n";
  }

  std::string place(int b) const {
    const Buffer& buffer = s_.buffers[b];
    switch (buffer.kind) {
      case BufferKind::kConstant:
        return "constants+" + to_string(buffer.offset);
      case BufferKind::kWorkspace:
        return s_.regions[buffer.region].name + "+" + to_string(buffer.offset);
      case BufferKind::kInput:
        return "input " + std::to_string(buffer.slot);
      case BufferKind::kOutput:
        return "output " + std::to_string(buffer.slot);
      case BufferKind::kState:
        return "state " + std::to_string(buffer.slot);
      case BufferKind::kBlock:
        return "block";
    }
    return {};
  }

  // The nodes of the group; for what has a tiling, that in a second line.
  void print_group(const Group& group) {
    if (group.kind == GroupKind::kControl) {
      print_control(group);
    } else if (group.kind == GroupKind::kCustom) {
      text_ += "custom " + g_.nodes[group.anchor].attributes.custom->name + "\n";
    } else {
      text_ += std::string(to_string(group.kind));
      for (int n : group.inlined) text_ += " (" + std::string(to_string(g_.nodes[n].op)) + ")";
      for (int n : group.nodes) text_ += " " + std::string(to_string(g_.nodes[n].op));
      text_ += "\n";
    }
    if (group.winograd.tile != 0) print_winograd(group.winograd);
    if (group.kind == GroupKind::kContract && group.winograd.tile == 0) print_tiles(group.contraction);
    if (group.kind == GroupKind::kAttention && group.block_rows != 0) {
      text_ += "    " + std::to_string(group.block_rows) + " rows at a time";
      if (group.block_keys != 0) text_ += ", " + std::to_string(group.block_keys) + " keys";
      text_ += "\n";
      for (const Group* part : {&group.parts.front(), &group.parts.back()}) print_tiles(part->contraction);
    }
    if (group.stream) print_stream(*group.stream);
    print_work(group);
    if (std::string choice = choice_text(group); !choice.empty())
      text_ += "    choice " + group.key + " = " + choice + "\n";
  }

  void print_stream(const StreamPlan& stream) {
    const std::string rows = std::to_string(stream.row_count) + " rows", parts = std::to_string(stream.parts);
    if (stream.combines) {
      text_ += "    adds " + parts + " parts of keys for " + rows + "\n";
      return;
    }
    text_ += "    streams keys for " + rows + ", " + std::to_string(stream.block_keys) +
             " at a time, products of " + std::to_string(stream.sums_at_once) + " with " +
             std::to_string(stream.rows_at_once) + (stream.holds_rows ? " held" : "") + " rows at once";
    if (stream.parts > 1) text_ += ", in " + parts + " parts";
    text_ += "\n";
    for (const KeyLimit& limit : stream.limits) {
      text_ += std::string("    keys ") + (limit.is_first ? "from " : "below ") + g_.values[limit.value].name;
      if (limit.plus != 0) text_ += (limit.plus > 0 ? " + " : " - ") + std::to_string(std::abs(limit.plus));
      text_ += "\n";
    }
    for (const ShownCondition& condition : stream.shown)
      text_ += "    where " + g_.values[condition.value].name + (condition.holds ? " holds\n" : " fails\n");
  }

  static std::string_view unit_of_work(GroupKind kind) {
    switch (kind) {
      case GroupKind::kReduce:
        return "terms";
      case GroupKind::kOrdered:
        return "steps";
      case GroupKind::kWinograd:
        return "tiles";
      case GroupKind::kAttention:
        return "multiply-adds";
      default:
        return "elements";
    }
  }
  void print_work(const Group& group) {
    if (group.work.group_work == 0) return;
    const int64_t work = group.work.group_work;
    text_ += "    ";
    if (work == Target::kAllWork)
      text_ += "one workgroup";
    else
      text_ += std::to_string(work) + " " + std::string(unit_of_work(group.kind)) + " per workgroup";
    const RowsPlan& rows =
        group.kind == GroupKind::kAttention && !group.stream ? group.parts[1].rows : group.rows;
    if (rows.in_registers) text_ += ", rows in registers";
    if (rows.together > 1) text_ += ", " + std::to_string(rows.together) + " rows together";
    if (!rows.kept.empty()) text_ += ", kept loads: " + std::to_string(rows.kept.size());
    if (group.kind == GroupKind::kOrdered && g_.nodes[group.anchor].op == OpKind::k_argsort)
      text_ += group.work.selects ? ", by heap" : ", by merging";
    text_ += "\n";
    for (const MapPlan& map : group.maps) print_map(map);
    if (group.kind == GroupKind::kReduce) print_reduce(group.reduce);
    if (group.kind == GroupKind::kOrdered && is_scatter(g_.nodes[group.anchor].op))
      print_scatter(group.scatter);
    if (!group.scan.extents.empty()) text_ += "    " + loops_text(group.scan, "scan") + "\n";
  }

  // "loops 4, 64 by 16, reduce 9": extents of axes, the vector axis in vectors of 16.
  static std::string loops_text(const LoopPlan& loops, const std::string& other) {
    std::string text;
    for (size_t i = 0; i < loops.extents.size(); ++i) {
      bool first_other = loops.classes[i] == 1 && (i == 0 || loops.classes[i - 1] == 0);
      text += (i == 0 ? " " : ", ") + (first_other ? other + " " : "") + to_string(loops.extents[i]);
      if (static_cast<int>(i) == loops.vector_axis && loops.lanes > 1)
        text += " by " + std::to_string(loops.lanes);
    }
    if (loops.part != 0) text += ", vectors shared in parts of " + std::to_string(loops.part);
    return "loops" + (text.empty() ? " none" : text);
  }
  void print_map(const MapPlan& map) {
    if (map.loops.extents.empty()) return;  // nothing to copy
    text_ += "    " + loops_text(map.loops, "");
    if (map.tile_axis >= 0)
      text_ += ", tiles of " + std::to_string(map.loops.lanes) + " transposed with axis " +
               std::to_string(map.tile_axis);
    if (map.inner_begin < map.inner_end)
      text_ += ", borders before " + std::to_string(map.inner_begin) + " and from " +
               std::to_string(map.inner_end);
    if (!map.workgroups) text_ += ", in one workgroup";
    text_ += "\n";
  }
  void print_scatter(const ScatterPlan& scatter) {
    std::string text;
    auto add = [&](const std::string& words) { text += (text.empty() ? "    " : ", ") + words; };
    if (scatter.ranges > 1) add(std::to_string(scatter.ranges) + " ranges of places");
    if (scatter.shared_updates != 0)
      add("updates shared in parts of " + std::to_string(scatter.shared_updates));
    if (scatter.shares_columns) add("columns shared in parts of " + std::to_string(scatter.lanes));
    if (scatter.updates_per_turn > 1) add(std::to_string(scatter.updates_per_turn) + " updates per turn");
    if (!text.empty()) text_ += text + "\n";
  }
  void print_reduce(const ReducePlan& reduce) {
    if (reduce.loops.extents.empty() && reduce.loops.indices.empty()) return;  // not planned yet
    text_ += "    " + loops_text(reduce.loops, "reduce");
    if (reduce.window) {
      const WindowPlan& window = *reduce.window;
      text_ += ", windows of " + std::to_string(window.size) + " by " + std::to_string(window.step) +
               " in two steps, " + std::to_string(window.results) + " results of " +
               std::to_string(window.rows) + " rows at a time";
    }
    text_ += "\n";
  }

  // "loop i below n while go", then the schedules of the bodies, indented.
  void print_control(const Group& group) {
    const Node& node = g_.nodes[group.anchor];
    const Control& control = *node.attributes.control;
    bool loop = node.op == OpKind::k_loop;
    text_ += std::string(to_string(node.op));
    if (loop) text_ += " " + control.symbol;
    if (control.count) text_ += " below " + to_string(*control.count);
    if (control.condition) text_ += (loop ? " while " : " if ") + to_string(*control.condition);
    text_ += "\n";
    for (const Schedule& body : group.bodies) {
      std::istringstream lines(schedule::print(body));
      for (std::string line; std::getline(lines, line);) text_ += "    " + line + "\n";
    }
  }

  void print_winograd(const WinogradPlan& p) {
    text_ += "    winograd " + std::to_string(p.tile) + ": " + std::to_string(p.tiles_y) + "x" +
             std::to_string(p.tiles_x) + " tiles, " + std::to_string(p.block) + " at a time, tile " +
             std::to_string(p.tile_m) + "x" + std::to_string(p.panel_n()) + " reduce " +
             std::to_string(p.channels) + " columns " + std::to_string(p.columns) +
             (p.groups > 1 ? " groups " + std::to_string(p.groups) : "") + "\n";
  }

  void print_tiles(const ContractionPlan& p) {
    if (p.axes.empty() && p.reason.empty()) return;  // not planned yet
    text_ += "    tile " + std::to_string(p.tile_m) + "x" + std::to_string(p.tile_n()) +
             (p.elementwise ? " elementwise" : "") + (p.packed ? " packed" : "") +
             (p.dot > 1 ? " dot " + std::to_string(p.dot) : "") +
             (p.slack > 0 ? " slack " + std::to_string(p.slack) : "") + (p.sums_lanes ? " sums lanes" : "") +
             (p.gathers_rows ? " gathers rows" : "") + (p.pairs_rows ? " pairs rows" : "") +
             (p.dot_shift != 0 ? " shifted" : "") + (p.swapped ? " swapped" : "") +
             (p.staged ? " staged" : "") + (p.windows.empty() ? "" : " windows") +
             (p.matrices ? " matrices" : "") + (p.half_sums ? " half sums" : "") +
             (columns_of_lane(p) > 1 ? " columns of lanes" : "") +
             (shares_rows(p) ? " shared " + std::to_string(p.shared_steps) : "");
    auto axes = [&](const char* role, const std::vector<int>& which) {
      if (which.empty()) return;
      text_ += std::string(" ") + role;
      for (int a : which) text_ += " " + p.axes[a].name + ":" + to_string(p.axes[a].extent);
    };
    axes("grid", p.grid_axes);
    axes("rows", p.row_axes);
    axes("columns", {p.vector_axis});
    axes("reduce", p.reduction_axes);
    text_ += ", " + p.reason + "\n";
    print_walk(p);
  }

  void print_walk(const ContractionPlan& p) {
    const TileWalk& walk = p.walk;
    std::string text;
    auto add = [&](const std::string& words) { text += (text.empty() ? "    " : ", ") + words; };
    std::string loops;
    for (const TileLoop& loop : walk.loops) {
      if (loop.extent == Dim(1)) continue;
      size_t grid = p.grid_axes.size();
      loops += " " +
               (loop.place < grid    ? p.axes[p.grid_axes[loop.place]].name
                : loop.place == grid ? "columns"
                                     : "rows") +
               ":" + to_string(loop.extent);
    }
    if (!loops.empty()) add("loops" + loops + (p.backwards ? " backwards" : ""));
    if (walk.block_rows != 0) add("blocks of " + std::to_string(walk.block_rows) + " rows");
    if (walk.gathers_columns) add("gathered columns");
    if (walk.tail_columns) {
      const TileVectors& tail = *walk.tail_columns;
      add("tail of " + std::to_string(tail.vectors * p.lanes + tail.short_lanes) + " columns");
    }
    if (walk.tail_rows && !(floormod(row_count(p), p.tile_m) == Dim(0))) add("tail rows");
    if (walk.even_rows) add("even rows");
    if (walk.shares_elements) add("rows share elements");
    if (walk.first_addend >= 0) add("beginning with " + g_.values[g_.nodes[walk.first_addend].output].name);
    std::string constants;
    for (const ColumnConstant& c : p.column_constants) constants += " " + g_.values[c.constant].name;
    if (!constants.empty()) add("panels ending with" + constants);
    if (walk.transposes) add("transposed tiles");
    if (walk.steps_at_once > 1) add(std::to_string(walk.steps_at_once) + " steps at once");
    std::string unrolled;
    const bool any =
        std::any_of(walk.unrolled.begin(), walk.unrolled.end(), [](int64_t n) { return n != 1; });
    for (int64_t n : any ? walk.unrolled : decltype(walk.unrolled)())
      unrolled += (unrolled.empty() ? "unrolled " : "x") + std::to_string(n);
    if (!unrolled.empty()) add(unrolled);
    if (walk.rest_by_elements) add("rest by elements");
    if (walk.single_bytes) add("dot products of single bytes");
    if (!text.empty()) text_ += text + "\n";
  }

  const Schedule& s_;
  const Graph& g_;
  std::string text_;
};

}  // namespace

std::string print(const Schedule& schedule) { return Printer(schedule).run(); }

}  // namespace quernel::schedule
