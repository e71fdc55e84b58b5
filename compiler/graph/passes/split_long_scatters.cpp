// Scatters that combine many updates with few places, in parts: what updates one place, one invocation does
// in order. Each part has a table of its own; a reduction, in the order of the parts, combines the tables.
#include <algorithm>
#include <optional>
#include <utility>

#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// A scatter whose updates are numbered by one dim: of elements along `axis`, else of tuples in front of which
// there are no other dims.
struct Updates {
  size_t axis = 0;
  Dim count = 1, places = 1;
  Dim slices = 1, columns = 1;  // beside the places: the last dim, and all others
};

std::optional<OpKind> reduction(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::kAdd:
      return OpKind::k_reduce_sum;
    case ScatterMode::kMax:
      return OpKind::k_reduce_max;
    case ScatterMode::kMin:
      return OpKind::k_reduce_min;
    default:  // the last update counts; or products, which may overflow in parts
      return std::nullopt;
  }
}

std::optional<Updates> updates_of(const Graph& g, const Node& node) {
  auto parameter = static_cast<size_t>(node.attributes.ints[0]);
  const Shape &x = g.shape(node.inputs[0]), &indices = g.shape(node.inputs[1]);
  Updates u;
  u.axis = parameter;
  size_t addressed = 1;
  if (node.op == OpKind::k_scatter_elements) {
    for (size_t d = 0; d < x.size(); ++d)
      if (d != parameter && !(x[d] == indices[d])) return std::nullopt;
    u.count = indices[parameter];
  } else {
    bool is_tuple = node.op == OpKind::k_scatter_nd;
    if (is_tuple) addressed = static_cast<size_t>(indices.back().value());
    if (parameter != 0 || addressed == 0) return std::nullopt;
    u.count = element_count(Shape(indices.begin(), indices.end() - (is_tuple ? 1 : 0)));
  }
  for (size_t d = 0; d < x.size(); ++d) {
    bool is_addressed = d >= u.axis && d < u.axis + addressed;
    (is_addressed ? u.places : d + 1 == x.size() ? u.columns : u.slices) *= x[d];
  }
  return u;
}

class Splitter {
 public:
  Splitter(GraphBuilder& build, const Node& node, Updates updates, const Dim& parts)
      : build_(build), node_(node), u_(std::move(updates)), parts_(parts), part_(ceildiv(u_.count, parts)) {}

  ValueId split(ValueId x, ValueId indices, ValueId updates) {
    bool of_elements = node_.op == OpKind::k_scatter_elements;
    bool adds = node_.attributes.scatter == ScatterMode::kAdd;
    if (!of_elements) {  // tuples, numbered by one dim
      const Shape &old = build_.graph().shape(updates), index = build_.graph().shape(indices);
      bool is_tuple = node_.op == OpKind::k_scatter_nd;
      size_t rest = index.size() - (is_tuple ? 1 : 0);
      Shape all{u_.count};
      all.insert(all.end(), old.begin() + static_cast<std::ptrdiff_t>(rest), old.end());
      indices = build_.reshape(indices, {u_.count, is_tuple ? index.back() : Dim(1)});
      updates = build_.reshape(updates, all);
    }
    // Padding names no place.
    indices = in_parts(indices, nowhere(indices)), updates = in_parts(updates, 0);
    if (!build_.ok()) return kNoValue;
    Shape tables = build_.graph().shape(x);
    tables.insert(tables.begin() + static_cast<std::ptrdiff_t>(u_.axis), parts_);
    ValueId table;
    if (adds) {
      table = build_.full(build_.graph().dtype(x), tables, 0);
    } else {  // combining twice with the template changes nothing
      Shape one = tables;
      one[u_.axis] = 1;
      table = build_.broadcast_to(build_.reshape(x, one), tables);
    }
    OpKind op = of_elements ? OpKind::k_scatter_elements : OpKind::k_scatter_nd;
    ValueId written = build_.scatter(op, table, indices, updates, static_cast<int64_t>(u_.axis) + 1,
                                     node_.attributes.scatter);
    ValueId all =
        build_.reduce(*reduction(node_.attributes.scatter), written, {static_cast<int64_t>(u_.axis)}, false);
    return adds ? build_.binary(BinaryOp::k_add, x, all) : all;
  }

 private:
  double nowhere(ValueId indices) const {
    return build_.ok() && build_.graph().dtype(indices) == DType::kI64 ? 0x1p62 : 0x7fffffff;
  }
  ValueId in_parts(ValueId x, double fill) {
    if (!build_.ok()) return kNoValue;
    Shape shape = build_.graph().shape(x), none(shape.size(), Dim(0)), some = none;
    some[u_.axis] = parts_ * part_ - u_.count;
    if (!(some[u_.axis] == Dim(0))) x = build_.pad(x, none, some, PadMode::kConstant, fill);
    shape[u_.axis] = part_;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(u_.axis), parts_);
    return build_.reshape(x, std::move(shape));
  }

  GraphBuilder& build_;
  const Node& node_;
  Updates u_;
  Dim parts_, part_;
};

// How many parts, whose tables take no more memory than the updates or, where these are known to a run alone,
// than the limit; 0 or 1: the scatter stays whole.
int64_t parts_of(const Updates& u, const Dim& results, const LongScatters& limits) {
  constexpr int64_t kManySlices = 8, kManyParts = 16;
  if (!u.places.is_const()) return 0;
  int64_t columns = 1;
  if (limits.columns_count) {
    if (u.slices.estimate() >= kManySlices) return 0;
    columns = std::clamp<int64_t>(u.columns.estimate(), 1, limits.part);
  }
  int64_t longest = limits.longest / columns, part = limits.part / columns;
  if (u.count.is_const()) {
    if (u.count.value() <= longest) return 0;
    part = std::max(part, u.places.value() * limits.most_places);
    if (limits.columns_count) part = std::max(part, (u.count.value() - 1) / kManyParts + 1);
    return (u.count.value() - 1) / part + 1;
  }
  if (limits.free_parts == 0 || u.count.bounds().hi <= longest) return 0;
  return results.is_const() && results.value() <= limits.most_results / limits.free_parts ? limits.free_parts
                                                                                          : 0;
}

// Sums of narrow floats round at each update, and those of narrow integers wrap around.
bool comes_in_parts(ScatterMode mode, DType dtype) {
  if (mode != ScatterMode::kAdd) return reduction(mode).has_value();
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI32 || dtype == DType::kI64;
}

}  // namespace

Expected<Graph> split_long_scatters(const Graph& graph, const LongScatters& limits) {
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    const Attributes& a = node.attributes;
    if (!is_scatter(node.op) || a.unique || !comes_in_parts(a.scatter, graph.dtype(node.output)))
      return kNoValue;
    std::optional<Updates> updates = updates_of(graph, node);
    if (!updates) return kNoValue;
    int64_t parts = parts_of(*updates, element_count(graph.shape(node.output)), limits);
    if (parts < 2) return kNoValue;
    Splitter splitter(r.build, node, *updates, parts);
    return splitter.split(r(node.inputs[0]), r(node.inputs[1]), r(node.inputs[2]));
  });
}

}  // namespace quernel
