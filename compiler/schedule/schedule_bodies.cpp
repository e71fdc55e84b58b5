// Schedules of the bodies of loops, branches and on_companion nodes, each a separate schedule: its inputs and
// outputs are in the storage of the schedule around it, its workspace is a block of that one's.
#include "schedule/steps.h"
#include "schedule/storage.h"

namespace quernel::schedule {
namespace {

class Bodies {
 public:
  Bodies(Schedule& schedule, const Target& target, Packings& packings, const ScheduleBody& schedule_body)
      : s_(schedule),
        g_(schedule.graph),
        target_(target),
        packings_(packings),
        schedule_body_(schedule_body) {}

  Status run() {
    for (Group& group : s_.groups) {
      if (group.kind != GroupKind::kControl) continue;
      const Node& node = g_.nodes[group.anchor];
      group.on_companion = node.op == OpKind::k_on_companion;
      const Target& target = group.on_companion ? *target_.companion : target_;
      Packings& packings = group.on_companion ? packings_.of_companion() : packings_;
      Dim workspace = 0;
      for (const Graph& body : node.attributes.control->bodies) {
        Schedule schedule = empty_schedule(body);
        schedule.is_body = true;
        schedule.inputs = inputs(node);
        schedule.outputs = outputs(group, node);
        QUERNEL_CHECK(schedule_body_(schedule, target, packings));
        workspace = max(workspace, schedule.regions[0].bytes);
        group.bodies.push_back(std::move(schedule));
      }
      if (!(workspace == Dim(0)))
        group.scratch_buffer = add_workspace(workspace, g_.values[node.output].name);
    }
    return {};
  }

 private:
  int add_workspace(const Dim& bytes, const std::string& name) {
    Buffer buffer;
    buffer.dtype = DType::kU8;
    buffer.bytes = bytes;
    buffer.name = name + ".workspace";
    s_.buffers.push_back(std::move(buffer));
    return static_cast<int>(s_.buffers.size()) - 1;
  }

  // Where a stored value is. A place that depends on a run-time symbol is found within the whole buffer.
  Port port_of(ValueId v) const {
    const Storage& storage = s_.storage[v];
    QUERNEL_ASSERT(storage.valid());
    Port port{storage.buffer, 0, s_.buffers[storage.buffer].bytes, storage.offset, storage.strides};
    if (storage.offset.is_bound()) {
      port.base = byte_size(g_.dtype(v), storage.offset);
      port.bytes = byte_size(g_.dtype(v), span(g_.shape(v), storage.strides)).upper_bound();
      port.offset = 0;
    }
    return port;
  }

  Port slot_of(ValueId v, const Control& control, int64_t later) const {
    Port port = port_of(v);
    port.base = 0;
    port.bytes = s_.buffers[port.buffer].bytes;
    port.offset =
        floormod(Dim::symbol(*g_.find_symbol(control.symbol)) + later, 2) * slot_elements(g_.type(v));
    return port;
  }

  std::vector<Port> inputs(const Node& node) const {
    const Control& control = *node.attributes.control;
    std::vector<Port> ports;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      ports.push_back(static_cast<int>(i) < control.carried ? slot_of(node.inputs[i], control, 0)
                                                            : port_of(node.inputs[i]));
    return ports;
  }

  // The results are the group's outputs, in order.
  std::vector<Port> outputs(const Group& group, const Node& node) const {
    const Control& control = *node.attributes.control;
    std::vector<Port> ports;
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      ValueId v = group.outputs[i];
      if (static_cast<int>(i) < control.carried) {
        ports.push_back(slot_of(v, control, 1));
        continue;
      }
      ports.push_back(port_of(v));
      if (node.op != OpKind::k_loop) continue;
      // One entry of the leading dim for each iteration.
      Port& port = ports.back();
      port.offset += Dim::symbol(*g_.find_symbol(control.symbol)) * port.strides[0];
      port.strides.erase(port.strides.begin());
    }
    return ports;
  }

  Schedule& s_;
  const Graph& g_;
  const Target& target_;
  Packings& packings_;
  const ScheduleBody& schedule_body_;
};

}  // namespace

Status schedule_bodies(Schedule& schedule, const Target& target, Packings& packings,
                       const ScheduleBody& schedule_body) {
  return Bodies(schedule, target, packings, schedule_body).run();
}

}  // namespace quernel::schedule
