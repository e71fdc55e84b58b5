#include "lower/lower_item.h"

#include "graph/empty_choice.h"
#include "lower/loop_nest.h"

namespace quernel::lower {
namespace {

// -1 where a node that the group computes has nothing to choose its result from, else 0.
Dim empty_choice(const Graph& graph, const schedule::Group& group) {
  Dim empty = 0;
  for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
    for (int n : *nodes) empty = min(empty, quernel::empty_choice(graph, graph.nodes[n]));
  for (const schedule::Group& part : group.parts) empty = min(empty, empty_choice(graph, part));
  return empty;
}

}  // namespace

LoweredItem lower_item(const schedule::Schedule& schedule, const schedule::Item& item, const Target& target) {
  const schedule::Group& group = schedule.groups[item.group];
  restart_names();
  Context context{schedule, item, group, target, make_buffers(schedule, item, target), {}, {}, {}, 1};
  context.kernel.name = to_string(group.kind);
  context.kernel.buffers = context.buffers.buffers;
  switch (group.kind) {
    case schedule::GroupKind::kMap:
      lower_map(context);
      break;
    case schedule::GroupKind::kReduce:
      lower_reduce(context);
      break;
    case schedule::GroupKind::kRows:
      lower_rows(context);
      break;
    case schedule::GroupKind::kAttention:
      lower_attention(context);
      break;
    case schedule::GroupKind::kContract:
      group.winograd.tile != 0 ? lower_winograd(context) : lower_contract(context);
      break;
    case schedule::GroupKind::kWinograd:
      lower_winograd_transform(context);
      break;
    case schedule::GroupKind::kCat:
      lower_cat(context);
      break;
    case schedule::GroupKind::kOrdered: {
      OpKind op = schedule.graph.nodes[group.anchor].op;
      is_scan(op) ? lower_scan(context) : is_scatter(op) ? lower_scatter(context) : lower_sort(context);
      break;
    }
    case schedule::GroupKind::kControl:
    case schedule::GroupKind::kCustom:
      QUERNEL_UNREACHABLE("no kernel is generated for a loop, branch or custom op");
  }
  for (size_t i = 0; i < context.symbols.dims.size(); ++i)
    context.kernel.symbols.push_back("s" + std::to_string(i));
  constexpr int64_t kMoreThanAny = int64_t{1} << 50;
  Dim empty = empty_choice(schedule.graph, group);
  return {std::move(context.kernel), std::move(context.symbols.dims),
          context.workgroups + empty * kMoreThanAny, !(empty == Dim(0)), std::move(context.iterations)};
}

}  // namespace quernel::lower
