#include "schedule/verify_schedule.h"

#include <algorithm>

#include "graph/verify.h"

namespace quernel::schedule {
namespace {

class Verifier {
 public:
  Verifier(const Schedule& schedule, const std::string& after)
      : s_(schedule), g_(schedule.graph), after_(after), stored_(g_.values.size(), 0) {
    for (ValueId v : g_.inputs) stored_[v] = 1;
  }

  Status run() {
    QUERNEL_CHECK(quernel::verify(g_, after_));
    if (!s_.storage.empty() && s_.storage.size() != g_.values.size())
      return fail("expected a place or none for each of " + std::to_string(g_.values.size()) +
                  " values, found " + std::to_string(s_.storage.size()));
    std::vector<char> grouped(g_.nodes.size(), 0);
    for (const Group& group : s_.groups) {
      for (int n : group.nodes)
        if (std::exchange(grouped[static_cast<size_t>(n)], 1))
          return fail("expected each node in one group, found " + name(g_.nodes[n].output) + " in two");
      QUERNEL_CHECK(check_values(group));
      QUERNEL_CHECK(check_plans(group));
    }
    for (const Item& item : s_.items)
      for (const Dependency& d : item.dependencies)
        if (d.item < 0 || d.item >= &item - s_.items.data())
          return fail("expected item " + std::to_string(&item - s_.items.data()) +
                      " to depend on earlier ones, found " + std::to_string(d.item));
    return {};
  }

 private:
  Status fail(std::string message) const {
    return internal_error("invalid schedule: " + std::move(message), {}, after_);
  }
  std::string name(ValueId v) const { return "'" + g_.values[v].name + "'"; }

  // A place, once places have been given.
  bool has_place(ValueId v) const { return s_.storage.empty() || s_.storage[v].valid(); }

  Status check_values(const Group& group) {
    for (ValueId v : group.reads) {
      if (!stored_[v] && !g_.constant(v))
        return fail("expected " + name(v) + " to be stored before it is read");
      if (!has_place(v)) return fail("expected a place for " + name(v) + ", which is read");
    }
    for (ValueId v : group.outputs) {
      if (std::exchange(stored_[v], 1)) return fail("expected one group to store " + name(v) + ", found two");
      if (!has_place(v)) return fail("expected a place for " + name(v) + ", which is stored");
      bool own =
          std::any_of(group.nodes.begin(), group.nodes.end(), [&](int n) { return g_.nodes[n].output == v; });
      if (!own) return fail("expected a node of the group that stores " + name(v) + " to compute it");
    }
    return {};
  }

  // Plans, once they have been chosen.
  Status check_plans(const Group& group) {
    if (group.work.group_work == 0) return {};
    const size_t maps = group.kind == GroupKind::kMap   ? 1
                        : group.kind == GroupKind::kCat ? group.copied.size()
                                                        : 0;
    if (group.maps.size() != maps)
      return fail("expected " + std::to_string(maps) + " plans for the kernel of " + kernel_name(group) +
                  ", found " + std::to_string(group.maps.size()));
    for (const MapPlan& map : group.maps) QUERNEL_CHECK(check_loops(group, map.loops));
    QUERNEL_CHECK(check_loops(group, group.reduce.loops));
    return check_loops(group, group.scan);
  }
  Status check_loops(const Group& group, const LoopPlan& loops) {
    const int axes = static_cast<int>(loops.extents.size());
    if (loops.vector_axis >= axes)
      return fail("expected the vector axis of the kernel of " + kernel_name(group) + " among its " +
                  std::to_string(axes) + " axes, found " + std::to_string(loops.vector_axis));
    for (const std::vector<IndexExpr>& indices : loops.indices)
      for (const IndexExpr& e : indices)
        if (highest_axis(e) >= axes)
          return fail("expected indices of the kernel of " + kernel_name(group) + " over " +
                      std::to_string(axes) + " axes, found " + to_string(e));
    return {};
  }
  std::string kernel_name(const Group& group) const {
    return group.outputs.empty() ? std::string(to_string(group.kind)) : name(group.outputs[0]);
  }
  static int highest_axis(const IndexExpr& e) {
    switch (e.kind()) {
      case IndexExpr::Kind::kConst:
        return -1;
      case IndexExpr::Kind::kAxis:
        return e.axis_index();
      case IndexExpr::Kind::kAdd:
        return std::max(highest_axis(e.lhs()), highest_axis(e.rhs()));
      default:
        return highest_axis(e.lhs());
    }
  }

  const Schedule& s_;
  const Graph& g_;
  const std::string& after_;
  std::vector<char> stored_;  // per value, by the groups seen so far
};

}  // namespace

Status verify(const Schedule& schedule, const std::string& after) { return Verifier(schedule, after).run(); }

}  // namespace quernel::schedule
