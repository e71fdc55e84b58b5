#include "schedule/schedule.h"

#include <sstream>

namespace quernel::schedule {
namespace {

// The graph with copies, after everything else, of these states' next values: over the present ones.
Expected<Graph> copy_states_last(Graph graph, const std::vector<size_t>& states) {
  for (size_t i : states) {
    Graph::Output& output = graph.outputs[graph.states[i].output];
    QUERNEL_TRY(output.value, graph.add(OpKind::k_contiguous, {output.value}, {}, {}, output.name));
  }
  return graph;
}

}  // namespace

Expected<Schedule> make_schedule(Graph graph, const Target& target, Packings& packings,
                                 std::vector<Region> regions, std::vector<Port> inputs,
                                 std::vector<Port> outputs) {
  bool is_body = !inputs.empty() || !outputs.empty();
  QUERNEL_TRY(graph, give_values_storage(graph, is_body));
  for (;;) {
    QUERNEL_TRY(Schedule schedule, form_groups(std::move(graph), target));
    if (!regions.empty()) schedule.regions = regions;
    if (target.host && !is_body) schedule.regions.push_back({"shared memory", 0, 0, true});
    schedule.inputs = inputs;
    schedule.outputs = outputs;
    form_attention(schedule, target);
    split_long_rows(schedule, target);
    QUERNEL_CHECK(assign_storage(schedule, target, packings));
    std::vector<size_t> clashes = place_states(schedule);
    if (clashes.empty()) {
      QUERNEL_CHECK(schedule_bodies(schedule, target, packings));
      QUERNEL_CHECK(plan_memory(schedule));
      return schedule;
    }
    QUERNEL_TRY(graph, copy_states_last(std::move(schedule.graph), clashes));
  }
}

std::string_view to_string(Hazard hazard) {
  switch (hazard) {
    case Hazard::kReadAfterWrite:
      return "RAW";
    case Hazard::kWriteAfterRead:
      return "WAR";
    case Hazard::kWriteAfterWrite:
      return "WAW";
    case Hazard::kAlias:
      return "alias";
  }
  return "RAW";
}

namespace {

// "loop i below n while go", then the schedules of the bodies, indented.
std::string control_text(const Schedule& s, const Group& group) {
  const Node& node = s.graph.nodes[group.anchor];
  const Control& control = *node.attributes.control;
  bool loop = node.op == OpKind::k_loop;
  std::string text(to_string(node.op));
  if (loop) text += " " + control.symbol;
  if (control.count) text += " below " + to_string(*control.count);
  if (control.condition) text += (loop ? " while " : " if ") + to_string(*control.condition);
  text += "\n";
  for (const Schedule& body : group.bodies) {
    std::istringstream lines(print(body));
    for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
  }
  return text;
}

}  // namespace

std::string print(const Schedule& s) {
  std::string text = "schedule " + s.graph.name + "\n";
  text += "  constants " + std::to_string(s.constant_bytes) + " bytes";
  for (const Region& region : s.regions)
    text += ", " + region.name + " " + to_string(region.bytes) + " bytes";
  text += "\n";
  auto place = [&](int b) {
    const Buffer& buffer = s.buffers[b];
    switch (buffer.kind) {
      case BufferKind::kConstant:
        return "constants+" + to_string(buffer.offset);
      case BufferKind::kWorkspace:
        return s.regions[buffer.region].name + "+" + to_string(buffer.offset);
      case BufferKind::kInput:
        return "input " + std::to_string(buffer.slot);
      case BufferKind::kOutput:
        return "output " + std::to_string(buffer.slot);
      case BufferKind::kState:
        return "state " + std::to_string(buffer.slot);
      case BufferKind::kBlock:
        break;
    }
    return std::string();
  };
  for (size_t i = 0; i < s.items.size(); ++i) {
    const Item& item = s.items[i];
    text += "  item " + std::to_string(i) + ": ";
    if (item.group < 0) {
      text += "read symbol " + item.symbol + " from " + s.graph.values[item.bindings[0].value].name + "\n";
      continue;
    }
    const Group& group = s.groups[item.group];
    if (group.kind == GroupKind::kControl) {
      text += control_text(s, group);
    } else if (group.kind == GroupKind::kCustom) {
      text += "custom " + s.graph.nodes[group.anchor].attributes.custom->name + "\n";
    } else {
      text += std::string(to_string(group.kind));
      for (int n : group.inlined) text += " (" + std::string(to_string(s.graph.nodes[n].op)) + ")";
      for (int n : group.nodes) text += " " + std::string(to_string(s.graph.nodes[n].op));
      text += "\n";
    }
    if (group.winograd.tile != 0) {
      const WinogradPlan& p = group.winograd;
      text += "    winograd " + std::to_string(p.tile) + ": " + std::to_string(p.tiles_y) + "x" +
              std::to_string(p.tiles_x) + " tiles, " + std::to_string(p.block) + " at a time, tile " +
              std::to_string(p.tile_m) + "x" + std::to_string(p.panel_n()) + " reduce " +
              std::to_string(p.channels) + " columns " + std::to_string(p.columns) +
              (p.groups > 1 ? " groups " + std::to_string(p.groups) : "") + "\n";
    }
    auto tiles = [&](const ContractionPlan& p) {
      text += "    tile " + std::to_string(p.tile_m) + "x" + std::to_string(p.tile_n()) +
              (p.elementwise ? " elementwise" : "") + (p.packed ? " packed" : "") +
              (p.dot > 1 ? " dot " + std::to_string(p.dot) : "") + (p.dot_shift != 0 ? " shifted" : "") +
              (p.swapped ? " swapped" : "") + (p.staged ? " staged" : "") +
              (p.windows.empty() ? "" : " windows") +
              (shares_rows(p) ? " shared " + std::to_string(p.shared_steps) : "");
      auto axes = [&](const char* role, const std::vector<int>& which) {
        if (which.empty()) return;
        text += std::string(" ") + role;
        for (int a : which) text += " " + p.axes[a].name + ":" + to_string(p.axes[a].extent);
      };
      axes("grid", p.grid_axes);
      axes("rows", p.row_axes);
      axes("columns", {p.vector_axis});
      axes("reduce", p.reduction_axes);
      text += ", " + p.reason + "\n";
    };
    if (group.kind == GroupKind::kContract && group.winograd.tile == 0) tiles(group.contraction);
    if (group.kind == GroupKind::kAttention) {
      text += "    " + std::to_string(group.block_rows) + " rows at a time";
      if (group.block_keys != 0) text += ", " + std::to_string(group.block_keys) + " keys";
      text += "\n";
      for (const Group* part : {&group.parts.front(), &group.parts.back()}) tiles(part->contraction);
    }
    for (const Binding& b : item.bindings) {
      text += std::string("    ") + (b.write ? "writes " : "reads ");
      text += b.value == kNoValue ? (b.write ? "scratch" : "packed weights")
                                  : s.graph.values[b.value].name + ": " + to_string(s.graph.type(b.value));
      text += " at " + place(b.buffer) + (b.offset == Dim(0) ? "" : "+" + to_string(b.offset));
      if (b.write && s.buffers[b.buffer].shares >= 0) text += " in place";
      text += "\n";
    }
    text += "    " + to_string(item.flops) + " flops, " + to_string(item.bytes_read) + " bytes read, " +
            to_string(item.bytes_written) + " bytes written";
    if (!item.dependencies.empty()) text += ", after";
    for (const Dependency& d : item.dependencies)
      text += " " + std::to_string(d.item) + ":" + std::string(to_string(d.hazard));
    text += "\n";
  }
  return text;
}

}  // namespace quernel::schedule
