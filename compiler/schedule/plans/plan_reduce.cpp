// Reductions and scans: vectors along an axis of results where the operand is contiguous there, else, of a
// reduction, along the innermost reduced axis. Windows that slide along a contiguous axis of the operand
// (pooling, channels first) are reduced along all other axes first, into a row of positions, which
// neighbouring windows share.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "schedule/plans/access_walk.h"
#include "schedule/plans/axes.h"
#include "schedule/plans/loop_key.h"
#include "schedule/plans/plan_loops.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kRowPositions = 256;        // at most, unless one vector of results takes more
constexpr int64_t kPositionsTogether = 1024;  // of several rows
constexpr int64_t kMostPositions = 4096;      // of several rows, if a file chooses them
constexpr int64_t kLongestStep = 4;           // of windows, what strided loads are made of shuffles for
constexpr double kResultWeight = 1.2;         // of vectors along an axis of results, against reduced ones
constexpr double kRowWeight = 1.3;            // of vectors of windows in two steps
constexpr double kSlowestVector = 0.5;        // of scans: below, scalar code is as good

int64_t lanes_of(const Target& target, DType accumulator) {
  return target.lanes(std::max(4, element_size(accumulator)));
}

class ReducePlanner {
 public:
  explicit ReducePlanner(const KernelPlace& kernel)
      : k_(kernel),
        g_(kernel.schedule.graph),
        node_(g_.nodes[kernel.group.anchor]),
        x_(node_.inputs[0]),
        is_arg_(node_.op == OpKind::k_reduce_argmax || node_.op == OpKind::k_reduce_argmin) {}

  ReducePlan plan(const PickLoops& pick) {
    loops_.lanes = static_cast<int>(lanes_of(k_.target, accumulator_dtype(g_, node_)));
    choose_axes();
    const LoopChoice choice = pick(options());
    loops_.vector_axis = choice.along;
    if (choice.along < 0) loops_.lanes = 1;
    if (choice.windows >= 0) {
      plan_.window = sized(*window_of(choice.along, choice.windows), loops_.lanes);
      plan_.window->rows = choice.rows;
    } else if (choice.along >= 0 && loops_.classes[choice.along] == 0 && loops_.lanes > 1) {
      share_results(choice.group_work);
    }
    return std::move(plan_);
  }

 private:
  int count() const { return static_cast<int>(loops_.extents.size()); }
  bool is_reduced(size_t dim) const {
    const std::vector<int64_t>& reduced = node_.attributes.ints;
    return std::binary_search(reduced.begin(), reduced.end(), static_cast<int64_t>(dim));
  }

  // Axes: output dims, then reduced ones, merged.
  void choose_axes() {
    const Shape& dims = g_.shape(x_);
    Shape extents;
    std::vector<int> classes;
    loops_.indices.assign(2, {});
    std::vector<IndexExpr>&operand = loops_.indices[0], &result = loops_.indices[1];
    operand.assign(dims.size(), IndexExpr(0));
    for (int cls : {0, 1})
      for (size_t d = 0; d < dims.size(); ++d) {
        if (is_reduced(d) != (cls == 1)) continue;
        operand[d] = IndexExpr::axis(static_cast<int>(extents.size()));
        extents.push_back(dims[d]);
        classes.push_back(cls);
      }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!is_reduced(d))
        result.push_back(operand[d]);
      else if (node_.attributes.keepdims)
        result.push_back(IndexExpr(0));
    }
    auto probe = [&](const std::vector<std::vector<IndexExpr>>& at, const Shape& sizes) {
      AccessWalk walk(k_.schedule, k_.group, sizes);
      walk.read(x_, at[0]);
      accesses_ = walk.accesses;
      std::vector<IndexExpr> all = walk.accesses;
      all.insert(all.end(), walk.guards.begin(), walk.guards.end());
      for (ValueId v : k_.group.outputs) all.push_back(walk.offset_of(v, at[1]));
      if (is_arg_)  // the position along the axis is needed as it is
        for (size_t i = 0; i < at[0].size(); ++i)
          if (static_cast<int64_t>(i) == node_.attributes.ints[0]) all.push_back(at[0][i]);
      return all;
    };
    loops_.extents = merge_axes(extents, classes, loops_.indices, loops_.classes, probe);
    probe(loops_.indices, loops_.extents);
  }

  LoopOptions options() const {
    LoopOptions options;
    options.key = key();
    LoopChoice best;
    best.along = LoopChoice::kNone;
    best.group_work = k_.group.work.group_work;
    const LoopChoice none = best;
    double best_speed = 0;
    std::vector<std::pair<double, LoopChoice>> candidates;
    auto add = [&](double speed, const LoopChoice& choice) {
      candidates.emplace_back(speed, choice);
      if (speed > best_speed) best_speed = speed, best = choice;
    };
    for (int i = 0; i < count(); ++i) {
      const Dim& extent = loops_.extents[i];
      if (always_le(extent, 1) || extent.estimate() < 1 || (is_arg_ && loops_.classes[i] == 1)) continue;
      LoopChoice choice = none;
      choice.along = i;
      add(vector_speed(accesses_, loops_.extents, i, loops_.lanes) *
              (loops_.classes[i] == 0 ? kResultWeight : 1.0),
          choice);
    }
    for (int out = 0; out < count(); ++out)
      for (int in = 0; in < count() && loops_.lanes > 1; ++in) {
        std::optional<WindowPlan> window = window_of(out, in);
        if (!window) continue;
        int lanes = loops_.lanes;
        WindowPlan plan = sized(*window, lanes);
        LoopChoice choice = none;
        choice.along = out, choice.windows = in, choice.rows = plan.rows;
        options.most_rows =
            options.most_rows == 1 ? most_rows(plan) : std::min(options.most_rows, most_rows(plan));
        // Kernels of one key have the same choices.
        options.key += " windows " + std::to_string(out) + ":" + std::to_string(in);
        double n = static_cast<double>(loops_.extents[out].estimate());
        add(kRowWeight * n / (std::ceil(n / loops_.lanes) * loops_.lanes), choice);
      }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    options.legal = {best};
    candidates.emplace_back(0, none);
    for (const auto& [speed, choice] : candidates)
      if (!(choice == best)) options.legal.push_back(choice);
    return options;
  }

  std::string key() const {
    AccessWalk walk(k_.schedule, k_.group, loops_.extents);
    walk.read(x_, loops_.indices[0]);
    walk.locals.insert(node_.output);  // the accumulator
    for (ValueId v : k_.group.outputs) walk.read(v, loops_.indices[1]);
    for (ValueId v : k_.group.outputs) walk.write(v, loops_.indices[1]);
    return loop_key(k_.schedule, k_.group, loops_, walk,
                    "acc " + std::string(to_string(accumulator_dtype(g_, node_))), "reduce");
  }

  // An output axis and a reduced one that the operand sees as one position: step * out + in. The view that the
  // operand is has to see both axes so, in every index and guard.
  std::optional<WindowPlan> window_of(int out, int in) const {
    const Node* view = g_.def(x_);
    const Shape& extents = loops_.extents;
    if (loops_.classes[out] != 0 || loops_.classes[in] != 1 || always_le(extents[out], 1) ||
        always_le(extents[in], 1))
      return std::nullopt;
    if (k_.schedule.storage[x_].valid()) return std::nullopt;
    if (k_.target.lanes_are_invocations() || is_arg_ || !view || !has_index_map(*view)) return std::nullopt;
    if (!extents[in].is_const() || extents[in].value() > kRowPositions / 4) return std::nullopt;
    std::optional<int64_t> step;
    auto slides = [&](const IndexExpr& map) {
      IndexExpr e = simplify(substitute(map, loops_.indices[0]), extents);
      std::optional<Dim> by_out = stride_along(e, out, count()), by_in = stride_along(e, in, count());
      if (!by_out || !by_in || !by_out->is_const() || !by_in->is_const()) return false;
      int64_t o = by_out->value(), i = by_in->value();
      if (o == 0 && i == 0) return true;
      if (i <= 0 || o <= 0 || o % i != 0 || (step && *step != o / i)) return false;
      step = o / i;
      return true;
    };
    IndexMap map = index_map_of(g_, *view);
    for (const IndexExpr& e : map.indices)
      if (!slides(e)) return std::nullopt;
    for (const IndexGuard& guard : map.guards)
      if (!slides(guard.expr)) return std::nullopt;
    if (!step || *step > std::min(kLongestStep, extents[in].value())) return std::nullopt;
    WindowPlan window{.out = out, .in = in, .step = *step, .size = extents[in].value()};
    if (!std::all_of(accesses_.begin(), accesses_.end(),
                     [&](const IndexExpr& e) { return is_contiguous(e, in, count()); }))
      return std::nullopt;
    if (extents[out].is_const()) find_guards(map, window);
    return window;
  }

  // Where the positions that need no guards begin and end.
  void find_guards(const IndexMap& map, WindowPlan& window) const {
    const int64_t whole = window.positions(loops_.extents[window.out].value());
    window.end = whole;
    for (const IndexGuard& guard : map.guards) {
      std::optional<AffineForm> f =
          as_affine(simplify(substitute(guard.expr, loops_.indices[0]), loops_.extents), count());
      if (!f || f->coefficients[window.in] == Dim(0)) continue;
      bool alone = f->coefficients[window.in] == Dim(1) && f->offset.is_const() && guard.lo.is_const() &&
                   guard.hi.is_const();
      for (int i = 0; i < count(); ++i)
        alone &= i == window.in || i == window.out || f->coefficients[i] == Dim(0);
      if (!alone) continue;
      window.begin = std::max(window.begin, guard.lo.value() - f->offset.value());
      window.end = std::min(window.end, guard.hi.value() - f->offset.value());
    }
    window.begin = std::min(window.begin, whole);  // windows may all lie beside the operand
    window.end = std::max(window.end, window.begin);
  }

  // Short rows are taken several at a time, because a load that spans recent narrower stores waits for them;
  // not where stacks are short. `lanes` may become fewer.
  WindowPlan sized(WindowPlan window, int& lanes) const {
    const Dim& results = loops_.extents[window.out];
    // Tails without masks are scalar: rows shorter than a vector take shorter ones.
    while (!k_.target.has_masks && lanes > 2 && always_lt(results, lanes)) lanes /= 2;
    window.results = std::max<int64_t>(1, (kRowPositions - window.size) / (window.step * lanes)) * lanes;
    if (results.is_const())
      window.results = std::min(window.results, (results.value() + lanes - 1) / lanes * lanes);
    const int64_t rows = rows_of(window);
    const int64_t together = std::max<int64_t>(1, kPositionsTogether / window.positions(window.results));
    const int64_t blocks = (rows - 1) / together + 1;
    window.rows = (rows - 1) / blocks + 1;
    return window;
  }
  // The rows that could go through each step together; 1 if none should.
  int64_t rows_of(const WindowPlan& window) const {
    const Dim* last = nullptr;  // of the other axes of results
    for (int i = 0; i < count(); ++i)
      if (loops_.classes[i] == 0 && i != window.out) last = &loops_.extents[i];
    if (k_.target.memory_is_dear() || !last || !last->is_const() ||
        !always_le(loops_.extents[window.out], window.results))
      return 1;
    return std::max<int64_t>(last->value(), 1);
  }
  int64_t most_rows(const WindowPlan& window) const {
    return std::min(rows_of(window),
                    std::max(window.rows, kMostPositions / window.positions(window.results)));
  }

  // A GPU has more workgroups than a CPU has threads: they share the vectors along results, too. On a CPU they
  // share those of an index of an extreme, each a part that makes up for its call.
  void share_results(int64_t group_work) {
    const int lanes = loops_.lanes;
    if (k_.target.lanes_are_invocations()) {
      loops_.part = lanes;
    } else if (is_arg_) {
      Dim reduced = 1;
      for (int i = 0; i < count(); ++i)
        if (loops_.classes[i] == 1) reduced = reduced * loops_.extents[i];
      int64_t wanted = group_work / std::max<int64_t>(reduced.estimate(), 1);
      int64_t part = std::max<int64_t>(wanted / lanes, 1) * lanes;
      if (share_axis(loops_.extents[loops_.vector_axis], part, k_.target)) loops_.part = part;
    }
  }

  const KernelPlace& k_;
  const Graph& g_;
  const Node& node_;
  ValueId x_;
  bool is_arg_;
  ReducePlan plan_;
  LoopPlan& loops_ = plan_.loops;
  std::vector<IndexExpr> accesses_;  // loads, at the chosen axes
};

}  // namespace

DType accumulator_dtype(const Graph& graph, const Node& node) {
  bool accumulates = node.op == OpKind::k_reduce_sum || node.op == OpKind::k_reduce_prod ||
                     node.op == OpKind::k_scan_sum || node.op == OpKind::k_scan_prod;
  return accumulates ? node.attributes.accumulator : graph.dtype(node.inputs[0]);
}

ReducePlan plan_reduce(const KernelPlace& kernel, const PickLoops& pick) {
  return ReducePlanner(kernel).plan(pick);
}

LoopPlan plan_scan(const KernelPlace& kernel, const PickLoops& pick) {
  const Graph& g = kernel.schedule.graph;
  const Node& node = g.nodes[kernel.group.anchor];
  const ValueId x = node.inputs[0];
  const Shape& dims = g.shape(x);
  const auto axis = static_cast<size_t>(node.attributes.ints[0]);
  LoopPlan loops;
  loops.lanes = static_cast<int>(lanes_of(kernel.target, accumulator_dtype(g, node)));
  // Every dim but the scanned one, then that one.
  Shape extents;
  std::vector<int> classes;
  loops.indices.assign(1, std::vector<IndexExpr>(dims.size(), IndexExpr(0)));
  for (int cls : {0, 1})
    for (size_t d = 0; d < dims.size(); ++d) {
      if ((d == axis) != (cls == 1)) continue;
      loops.indices[0][d] = IndexExpr::axis(static_cast<int>(extents.size()));
      extents.push_back(dims[d]);
      classes.push_back(cls);
    }
  std::vector<IndexExpr> accesses;
  auto probe = [&](const std::vector<std::vector<IndexExpr>>& at, const Shape& sizes) {
    AccessWalk walk(kernel.schedule, kernel.group, sizes);
    walk.read(x, at[0]);
    walk.write(node.output, at[0]);
    accesses = walk.accesses;
    std::vector<IndexExpr> all = walk.accesses;
    all.insert(all.end(), walk.guards.begin(), walk.guards.end());
    all.push_back(at[0][axis]);  // walked on its own
    return all;
  };
  loops.extents = merge_axes(extents, classes, loops.indices, loops.classes, probe);
  probe(loops.indices, loops.extents);
  LoopChoice best;
  best.along = LoopChoice::kNone;
  best.group_work = kernel.group.work.group_work;
  const LoopChoice none = best;
  double best_speed = kSlowestVector;
  std::vector<std::pair<double, LoopChoice>> candidates{{0, none}};
  for (int i = 0; i < static_cast<int>(loops.extents.size()); ++i) {
    if (loops.classes[i] == 1 || always_le(loops.extents[i], 1) || loops.extents[i].estimate() < 1) continue;
    LoopChoice choice = none;
    choice.along = i;
    const double speed =
        candidates.emplace_back(vector_speed(accesses, loops.extents, i, loops.lanes), choice).first;
    if (speed > best_speed) best_speed = speed, best = choice;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  LoopOptions options;
  AccessWalk walk(kernel.schedule, kernel.group, loops.extents);
  walk.read(x, loops.indices[0]);
  walk.write(node.output, loops.indices[0]);
  options.key = loop_key(kernel.schedule, kernel.group, loops, walk,
                         "acc " + std::string(to_string(accumulator_dtype(g, node))), "scan");
  options.legal = {best};
  for (const auto& [speed, choice] : candidates)
    if (!(choice == best)) options.legal.push_back(choice);
  const LoopChoice choice = pick(options);
  loops.vector_axis = choice.along;
  if (loops.vector_axis < 0) {
    loops.lanes = 1;
    return loops;
  }
  // Workgroups share long vectors of lines, each a part that makes up for its call.
  int64_t wanted = choice.group_work / std::max<int64_t>(dims[axis].estimate(), 1);
  int64_t part = std::max<int64_t>((wanted + loops.lanes - 1) / loops.lanes * loops.lanes, loops.lanes);
  if (share_axis(loops.extents[loops.vector_axis], part, kernel.target)) loops.part = part;
  return loops;
}

}  // namespace quernel::schedule
