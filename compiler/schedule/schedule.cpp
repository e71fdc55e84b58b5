
#include "schedule/schedule.h"

#include "schedule/choices.h"
#include "targets/target.h"

namespace quernel::schedule {

std::string_view to_string(GroupKind kind) {
  switch (kind) {
    case GroupKind::kMap:
      return "map";
    case GroupKind::kReduce:
      return "reduce";
    case GroupKind::kContract:
      return "contract";
    case GroupKind::kWinograd:
      return "winograd";
    case GroupKind::kCat:
      return "cat";
    case GroupKind::kOrdered:
      return "ordered";
    case GroupKind::kRows:
      return "rows";
    case GroupKind::kAttention:
      return "attention";
    case GroupKind::kControl:
      return "control";
    case GroupKind::kCustom:
      return "custom";
  }
  return "map";
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

Schedule empty_schedule(Graph graph, std::vector<Region> regions) {
  Schedule schedule;
  schedule.graph = std::move(graph);
  if (!regions.empty()) schedule.regions = std::move(regions);
  return schedule;
}

std::string kernel_class(const Group& group) {
  if (group.kind != GroupKind::kContract) return std::string(to_string(group.kind));
  return group.key.substr(0, group.key.find(' '));
}

namespace {

LoopChoice choice_of(const Group& group) {
  LoopChoice choice;
  if (group.work.group_work != Target::kAllWork) choice.group_work = group.work.group_work;
  auto take = [&](const LoopPlan& loops) { choice.along = loops.vector_axis; };
  if (group.kind == GroupKind::kMap) {
    const MapPlan& map = group.maps[0];
    take(map.loops);
    if (map.tile_axis >= 0) choice.tiles = map.loops.lanes, choice.across = map.tile_axis;
  } else if (group.kind == GroupKind::kReduce) {
    take(group.reduce.loops);
    if (group.reduce.window)
      choice.windows = group.reduce.window->in, choice.rows = group.reduce.window->rows;
  } else if (!group.scan.extents.empty()) {
    take(group.scan);
  }
  return choice;
}

}  // namespace

std::string choice_text(const Group& group) {
  if (group.key.empty()) return "";
  if (group.winograd.tile != 0) return to_string(tiling_of(group.winograd));
  if (group.kind == GroupKind::kContract) return to_string(tiling_of(group.contraction));
  return to_string(choice_of(group));
}

}  // namespace quernel::schedule
