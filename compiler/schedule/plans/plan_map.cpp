// Maps and cats: vectors along the axis that most accesses walk contiguously; square tiles where the result
// and an operand run along different axes.
#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "schedule/byte_lookup.h"
#include "schedule/plans/access_walk.h"
#include "schedule/plans/axes.h"
#include "schedule/plans/loop_key.h"
#include "schedule/plans/plan_loops.h"
#include "schedule/storage.h"

namespace quernel::schedule {
namespace {

constexpr double kWorthAnotherAxis = 1.3;  // how much faster vectors along an axis before the last must be
constexpr int kFewestTransposed = 4;       // lanes of a tile

// Notes what the kernel accesses for the element at these indices.
using WalkElement = std::function<void(AccessWalk&, const std::vector<IndexExpr>&)>;

class MapPlanner {
 public:
  MapPlanner(const KernelPlace& kernel, WalkElement walk) : k_(kernel), walk_element_(std::move(walk)) {}

  // `pick`: null for what has no choice.
  MapPlan plan(const Shape& dims, bool workgroups, const PickLoops* pick = nullptr) {
    MapPlan plan;
    plan.workgroups = workgroups;
    LoopPlan& loops = plan.loops;
    loops.lanes = lanes_of(k_);
    choose_axes(dims, loops);
    LoopChoice choice = estimate(loops);
    if (pick) choice = (*pick)(options(loops, choice));
    loops.vector_axis = choice.along;
    if (choice.tiles != 0) {
      plan.tile_axis = choice.across;
      plan.transposed = transposed_loads(loops.extents, choice.along, choice.across);
      loops.lanes = static_cast<int>(choice.tiles);
      return plan;
    }
    // A long vector axis is split so that workgroups get a fair size.
    const Dim& inner = loops.extents[loops.vector_axis];
    if (workgroups && share_axis(inner, 2 * choice.group_work, k_.target))
      loops.part = choice.group_work;
    else if (!k_.target.lanes_are_invocations())
      std::tie(plan.inner_begin, plan.inner_end) = inside(loops.extents, loops.vector_axis);
    return plan;
  }

 private:
  std::vector<IndexExpr> probe(const std::vector<IndexExpr>& at, const Shape& extents) {
    AccessWalk walk(k_.schedule, k_.group, extents);
    walk_element_(walk, at);
    accesses_ = walk.accesses;
    loads_ = std::move(walk.loads);
    unpadded_ = std::move(walk.unpadded);
    std::vector<IndexExpr> all = std::move(walk.accesses);
    all.insert(all.end(), walk.guards.begin(), walk.guards.end());
    if (!k_.target.lanes_are_invocations())
      for (const IndexGuard& guard : unpadded_) all.push_back(guard.expr);
    return all;
  }

  void choose_axes(const Shape& dims, LoopPlan& loops) {
    loops.indices.resize(1);
    for (size_t d = 0; d < dims.size(); ++d) loops.indices[0].push_back(IndexExpr::axis(static_cast<int>(d)));
    auto probe_at = [&](const auto& indices, const Shape& extents) { return probe(indices[0], extents); };
    loops.extents =
        merge_axes(dims, std::vector<int>(dims.size(), 0), loops.indices, loops.classes, probe_at);
    std::vector<IndexExpr> merged = probe_at(loops.indices, loops.extents);
    // Invocations of a GPU, one for each element, find their digits themselves.
    if (!k_.target.lanes_are_invocations())
      loops.extents =
          split_axes(loops.extents, loops.indices, std::max(loops.lanes, 2), std::move(merged), probe_at);
    if (loops.extents.empty()) loops.extents = {1};
    loops.classes.assign(loops.extents.size(), 0);
  }

  double speed(const LoopPlan& loops, int axis) const {
    return vector_speed(accesses_, loops.extents, axis, loops.lanes);
  }

  LoopChoice estimate(const LoopPlan& loops) const {
    LoopChoice choice;
    choice.group_work = k_.group.work.group_work;
    choice.along = static_cast<int>(loops.extents.size()) - 1;
    double best = speed(loops, choice.along);
    for (int i = choice.along - 1; i >= 0; --i)
      if (double s = speed(loops, i); s > best * kWorthAnotherAxis) best = s, choice.along = i;
    if (!k_.target.lanes_are_invocations()) estimate_tiles(loops, choice);
    return choice;
  }

  LoopOptions options(const LoopPlan& loops, const LoopChoice& estimated) const {
    const int axes = static_cast<int>(loops.extents.size());
    AccessWalk walk(k_.schedule, k_.group, loops.extents);
    walk_element_(walk, loops.indices[0]);
    LoopOptions options;
    options.key = loop_key(k_.schedule, k_.group, loops, walk, "", "");
    options.legal = {estimated};
    auto add = [&](int along, int64_t tiles, int across) {
      LoopChoice choice = estimated;
      choice.along = along, choice.tiles = tiles, choice.across = across;
      if (!(choice == estimated)) options.legal.push_back(choice);
    };
    std::vector<int> by_speed;
    for (int i = axes - 1; i >= 0; --i)
      if (!always_le(loops.extents[i], 1)) by_speed.push_back(i);
    std::stable_sort(by_speed.begin(), by_speed.end(),
                     [&](int a, int b) { return speed(loops, a) > speed(loops, b); });
    if (!by_speed.empty()) add(by_speed[0], 0, LoopChoice::kNone);
    for (int along = 0; along < axes && !k_.target.lanes_are_invocations(); ++along)
      for (int across = 0; across < axes; ++across) {
        if (!(estimated.tiles != 0 && along == estimated.along) && !stores_along(walk, along, axes)) continue;
        int64_t largest = 0;
        for (int side = loops.lanes; side >= kFewestTransposed; side /= 2) {
          if (!tiles_fit(loops.extents, side, along, across) ||
              overlap_in_place(loops.extents, side, along, across) ||
              transposed_loads(loops.extents, along, across).empty())
            continue;
          largest = std::max<int64_t>(largest, side);
          add(along, side, across);
        }
        // Kernels of one key have the same choices.
        if (largest != 0)
          options.key += " tiles " + std::to_string(largest) + ":" + std::to_string(along) + ":" +
                         std::to_string(across);
      }
    for (size_t i = 1; i < by_speed.size(); ++i) add(by_speed[i], 0, LoopChoice::kNone);
    return options;
  }

  // Whether all stores are contiguous along the axis.
  bool stores_along(const AccessWalk& walk, int axis, int axes) const {
    const std::vector<ValueId>& outputs = k_.group.outputs;
    for (size_t a = 0; a < walk.accesses.size(); ++a) {
      if (std::find(outputs.begin(), outputs.end(), walk.values[a]) == outputs.end()) continue;
      std::optional<Dim> stride = stride_along(walk.accesses[a], axis, axes);
      if (!stride || !(*stride == Dim(1))) return false;
    }
    return true;
  }

  // Whether what is accessed but not loaded is contiguous along the axis.
  bool stores_contiguously(const Shape& extents, int axis) const {
    return std::all_of(accesses_.begin(), accesses_.end(), [&](const IndexExpr& access) {
      if (std::any_of(loads_.begin(), loads_.end(),
                      [&](const ElementLoad& load) { return load.offset == access; }))
        return true;
      std::optional<Dim> stride = stride_along(access, axis, static_cast<int>(extents.size()));
      return stride && *stride == Dim(1);
    });
  }

  // Square tiles, the largest that fit: of the lanes, or of their halves down to 4. Results are stored along
  // their last axis, also if that one is short.
  void estimate_tiles(const LoopPlan& loops, LoopChoice& choice) const {
    int stored_axis = static_cast<int>(loops.extents.size()) - 1;
    if (stores_contiguously(loops.extents, choice.along)) stored_axis = choice.along;
    if (!stores_contiguously(loops.extents, stored_axis)) return;
    for (int side = loops.lanes; side >= kFewestTransposed; side /= 2) {
      const int across = best_across(loops.extents, side, stored_axis);
      if (across < 0 || overlap_in_place(loops.extents, side, stored_axis, across)) continue;
      choice.along = stored_axis, choice.tiles = side, choice.across = across;
      return;
    }
  }

  // The axis along which most loads that are strided along the vector axis are contiguous; -1: none.
  int best_across(const Shape& extents, int side, int stored_axis) const {
    int best = -1;
    size_t most = 0;
    for (int u = 0; u < static_cast<int>(extents.size()); ++u) {
      if (!tiles_fit(extents, side, stored_axis, u)) continue;
      if (size_t loads = transposed_loads(extents, stored_axis, u).size(); loads > most)
        most = loads, best = u;
    }
    return best;
  }
  static bool tiles_fit(const Shape& extents, int side, int along, int across) {
    auto fits = [&](int axis) { return extents[axis].is_const() && extents[axis].value() >= side; };
    return along != across && (side & (side - 1)) == 0 && fits(along) && fits(across);
  }
  // Whether the last tiles overlap others, and a result lies where an operand does.
  bool overlap_in_place(const Shape& extents, int side, int along, int across) const {
    auto whole = [&](int axis) { return extents[axis].value() % side == 0; };
    return !(whole(along) && whole(across)) && writes_over_operand();
  }
  // Those that are contiguous across the tiles' vectors only.
  std::vector<ElementLoad> transposed_loads(const Shape& extents, int along, int across) const {
    std::vector<ElementLoad> result;
    for (const ElementLoad& load : loads_)
      if (gains(load, across, along, static_cast<int>(extents.size()))) result.push_back(load);
    return result;
  }
  bool gains(const ElementLoad& load, int along, int stored_axis, int axes) const {
    const DType dtype = k_.schedule.graph.dtype(load.value);
    std::optional<Dim> stride = stride_along(load.offset, along, axes);
    return !is_contiguous(load.offset, stored_axis, axes) && stride && *stride == Dim(1) &&
           dtype != DType::kBool && !is_packed(dtype) && std::count(loads_.begin(), loads_.end(), load) == 1;
  }
  // Whether a result lies where an operand does: no element may then be computed twice, as those of
  // overlapping tiles are.
  bool writes_over_operand() const {
    const Schedule& s = k_.schedule;
    auto place = [&](ValueId v) { return root_buffer(s, s.storage[v].buffer); };
    for (ValueId in : k_.group.reads)
      for (ValueId out : k_.group.outputs)
        if (s.storage[in].valid() && place(in) == place(out)) return true;
    return false;
  }

  // The positions of an axis of known extent at which nothing that depends on it alone is mirrored or
  // repeated; begin == end where nothing depends on it, or always does.
  std::pair<int64_t, int64_t> inside(const Shape& extents, int axis) const {
    if (!extents[axis].is_const()) return {0, 0};
    int64_t begin = 0, end = extents[axis].value();
    for (const IndexGuard& guard : unpadded_) {
      std::optional<AffineForm> f = as_affine(guard.expr, static_cast<int>(extents.size()));
      if (!f || !f->offset.is_const() || !guard.lo.is_const() || !guard.hi.is_const()) continue;
      bool alone = f->coefficients[axis] == Dim(1);
      for (int i = 0; i < static_cast<int>(extents.size()); ++i)
        alone &= i == axis || f->coefficients[i] == Dim(0);
      if (!alone) continue;
      begin = std::max(begin, guard.lo.value() - f->offset.value());
      end = std::min(end, guard.hi.value() - f->offset.value());
    }
    bool all = begin == 0 && end == extents[axis].value();
    return all || begin >= end ? std::pair<int64_t, int64_t>(0, 0) : std::pair(begin, end);
  }

  const KernelPlace& k_;
  WalkElement walk_element_;
  std::vector<IndexExpr> accesses_;  // of the last probe
  std::vector<ElementLoad> loads_;
  std::vector<IndexGuard> unpadded_;
};

}  // namespace

int lanes_of(const KernelPlace& kernel) {
  const Graph& graph = kernel.schedule.graph;
  DType widest = DType::kF32;
  bool looks_up = false, all_bytes = true, wide_integers = false;
  auto consider = [&](DType d) {
    const bool wide = d == DType::kI64 || d == DType::kU64;
    if (!wide && element_size(d) > element_size(widest)) widest = d;
    all_bytes &= wide || (element_size(d) == 1 && !is_packed(d));
    return wide;
  };
  for (const Binding& b : kernel.item.bindings)
    if (b.value != kNoValue) wide_integers |= consider(graph.dtype(b.value));
  for (const std::vector<int>* nodes : {&kernel.group.nodes, &kernel.group.inlined})
    for (int n : *nodes) {
      const Node& node = graph.nodes[n];
      consider(graph.dtype(node.output));
      looks_up = looks_up || is_byte_lookup(graph, node);
    }
  if (wide_integers && kernel.target.code_is_dear()) return 1;
  // A table's vectors are of bytes; other narrow elements are computed as words.
  return kernel.target.lanes(looks_up && all_bytes ? 1 : element_size(widest));
}

std::vector<IndexExpr> unflatten(const IndexExpr& flat, const Shape& dims, const Shape& extents) {
  std::vector<IndexExpr> indices(dims.size(), IndexExpr(0));
  Dim stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    if (dims[d] == Dim(1)) continue;
    indices[d] = simplify(floormod(floordiv(flat, stride), dims[d]), extents);
  }
  return indices;
}

std::vector<MapPlan> plan_map(const KernelPlace& kernel, const PickLoops& pick) {
  const Graph& g = kernel.schedule.graph;
  const ValueId first = kernel.group.outputs[0];
  const Shape& dims = g.shape(first);
  if (!is_packed(g.dtype(first))) {
    MapPlanner planner(kernel, [&](AccessWalk& walk, const std::vector<IndexExpr>& at) {
      for (ValueId v : kernel.group.outputs) walk.read(v, at);
      for (ValueId v : kernel.group.outputs) walk.write(v, at);
    });
    return {planner.plan(dims, true, &pick)};
  }
  // Whole bytes: an element of the iteration space is a pair.
  MapPlanner planner(kernel, [&](AccessWalk& walk, const std::vector<IndexExpr>& at) {
    IndexExpr pair = at[0] * 2;
    walk.read(first, unflatten(pair, dims, walk.extents()));
    walk.read(first, unflatten(pair + 1, dims, walk.extents()));
    walk.access(first, at[0]);
  });
  Dim pairs = floordiv(element_count(dims), 2);
  return {pairs == Dim(0) ? MapPlan() : planner.plan({pairs}, true, &pick)};
}

std::vector<MapPlan> plan_cat(const KernelPlace& kernel) {
  const Graph& g = kernel.schedule.graph;
  const Node& cat = g.nodes[kernel.group.anchor];
  const auto axis = static_cast<size_t>(cat.attributes.ints[0]);
  Dim elements = 0;
  for (int i : kernel.group.copied) elements += element_count(g.shape(cat.inputs[i]));
  // One operand has the kernel's grid. The workgroups of several are numbered one operand after the other,
  // but few elements are copied by one workgroup, which a branch for each operand would not be worth.
  bool alone = kernel.group.copied.size() == 1;
  bool shared = !alone && share_axis(elements, 2 * kernel.group.work.group_work, kernel.target);
  std::vector<MapPlan> plans;
  for (int i : kernel.group.copied) {
    const ValueId x = cat.inputs[i];
    Dim start = 0;
    for (int k = 0; k < i; ++k) start += g.shape(cat.inputs[k])[axis];
    MapPlanner planner(kernel, [&](AccessWalk& walk, const std::vector<IndexExpr>& at) {
      walk.read(x, at);
      std::vector<IndexExpr> shifted = at;
      shifted[axis] = shifted[axis] + start;
      walk.write(cat.output, shifted);
    });
    bool empty = element_count(g.shape(x)) == Dim(0);
    plans.push_back(empty ? MapPlan() : planner.plan(g.shape(x), alone || shared));
  }
  return plans;
}

}  // namespace quernel::schedule
