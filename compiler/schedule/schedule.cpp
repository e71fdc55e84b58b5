
#include <map>

#include "schedule/schedule.h"

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
  return group.contraction_text.substr(0, group.contraction_text.find(' '));
}

}  // namespace quernel::schedule
