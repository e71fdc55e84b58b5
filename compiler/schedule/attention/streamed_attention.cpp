#include "schedule/attention/streamed_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "schedule/attention/defining_nodes.h"
#include "schedule/attention/row_softmax.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/kernel_limits.h"
#include "schedule/plans/operand_indices.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kMostRows = 16;              // more rows are better computed as tiles
constexpr int64_t kFewestKeysPerPosition = 4;  // where positions read the keys one after another
constexpr int64_t kFewestKeys = 32;            // of fewer, a kernel for each step takes no longer
constexpr int64_t kFewestLanes = 4;            // of a vector, where the target has vectors
constexpr int64_t kBlockKeys = 256;            // a block of keys is long enough for hardware prefetchers
constexpr int64_t kSmallBlock = 64;            // where stacks are short
constexpr int64_t kMostSums = 4;               // of keys that share what is loaded of rows
constexpr int64_t kKeysAtOnce = 16;
constexpr int64_t kMostRowsAtOnce = 4;
constexpr int64_t kWorkgroups = 16;      // that share the work of an attention, about
constexpr int64_t kFewestPartKeys = 64;  // of the most that a part may have

bool is_axis(const IndexExpr& e) { return e.kind() == IndexExpr::Kind::kAxis; }

bool hides(const Graph& graph, ValueId v) {
  const Tensor* c = graph.constant(without_expands(graph, v));
  return c && c->count() == 1 && is_float(c->dtype) && element_as_f64(*c, 0) == -INFINITY;
}

// The most lanes of vectors of which a whole number makes `extent`.
int whole_lanes(int64_t extent, int most) {
  int lanes = most;
  while (extent % lanes != 0) lanes /= 2;
  return lanes;
}

// The axes of the scores' contraction and of the result's that walk the same dims of the scores.
std::optional<std::vector<StreamPlan::Axis>> common_axes(const Contraction& scores, const Contraction& result,
                                                         const std::vector<IndexExpr>& weights) {
  std::vector<StreamPlan::Axis> axes;
  auto scores_axes = static_cast<int>(scores.axes.size()), result_axes = static_cast<int>(result.axes.size());
  for (size_t d = 0; d < scores.out.size(); ++d) {
    std::optional<AffineForm> a = as_affine(scores.out[d], scores_axes),
                              b = as_affine(weights[d], result_axes);
    if (!a || !b || !(a->offset == b->offset)) return std::nullopt;
    auto is_used = [](const Dim& coefficient) { return !(coefficient == Dim(0)); };
    if (std::count_if(a->coefficients.begin(), a->coefficients.end(), is_used) !=
        std::count_if(b->coefficients.begin(), b->coefficients.end(), is_used))
      return std::nullopt;
    for (int i = 0; i < scores_axes; ++i) {
      if (!is_used(a->coefficients[i])) continue;
      int same = -1;
      for (int k = 0; k < result_axes; ++k)
        if (b->coefficients[k] == a->coefficients[i] && result.axes[k].extent == scores.axes[i].extent)
          same = same == -1 ? k : -2;
      if (same < 0) return std::nullopt;
      axes.push_back({i, same, scores.axes[i].extent});
    }
  }
  std::set<int> seen[2];
  for (const StreamPlan::Axis& axis : axes)
    if (!seen[0].insert(axis.scores).second || !seen[1].insert(axis.result).second) return std::nullopt;
  return axes;
}

// The one contraction from which `x` is computed element by element, with the nodes on the way.
bool find_scores(const Graph& graph, ValueId x, std::set<int>& path, int& contraction) {
  std::vector<ValueId> stack{x};
  std::set<ValueId> seen;
  std::vector<int> nodes;
  constexpr size_t kMost = 64;
  while (!stack.empty() && seen.size() < kMost) {
    ValueId v = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second) continue;
    const Node* node = graph.def(v);
    if (!node || !(graph.shape(v) == graph.shape(x))) continue;
    auto index = static_cast<int>(node - graph.nodes.data());
    if (node->op == OpKind::k_contract) {
      if (contraction >= 0) return false;
      contraction = index;
      path.insert(index);
    } else if (is_elementwise(node->op)) {
      nodes.push_back(index);
      stack.insert(stack.end(), node->inputs.begin(), node->inputs.end());
    }
  }
  if (contraction < 0 || !stack.empty()) return false;
  // Nodes are in order: those that the contraction reaches.
  std::sort(nodes.begin(), nodes.end());
  std::set<ValueId> reached{graph.nodes[contraction].output};
  for (int n : nodes) {
    const Node& node = graph.nodes[n];
    if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return reached.contains(v); }))
      continue;
    reached.insert(node.output);
    path.insert(n);
  }
  return reached.contains(x);
}

// Whether conditions say which keys are hidden.
bool has_limits(const Graph& graph, StreamPlan plan) {
  find_key_limits(
      graph,
      [&](ValueId v) {
        const Node* node = graph.def(v);
        return !node || !is_elementwise(node->op);
      },
      plan);
  return !plan.limits.empty();
}

// Moves row axes to the grid until the rows are few, the longest first. Returns how many positions on them there are.
Dim move_positions(StreamPlan& plan) {
  Dim moved = 1;
  auto rows = [&] {
    Dim count = 1;
    for (const StreamPlan::Axis& axis : plan.rows) count *= axis.extent;
    return count;
  };
  while (!always_le(rows(), kMostRows) || !rows().is_const()) {
    auto longest = std::max_element(plan.rows.begin(), plan.rows.end(),
                                    [](const StreamPlan::Axis& a, const StreamPlan::Axis& b) {
                                      return std::pair(!a.extent.is_const(), a.extent.estimate()) <
                                             std::pair(!b.extent.is_const(), b.extent.estimate());
                                    });
    moved *= longest->extent;
    plan.grid.push_back(*longest);
    plan.rows.erase(longest);
  }
  plan.row_count = rows().value();
  return moved;
}

// Gives the plan the shape of its loops.
void choose_loops(StreamPlan& plan, const Target& target) {
  const int64_t registers = target.vector_registers, steps = plan.depth / plan.depth_lanes;
  auto even_parts = [](int64_t count, int64_t most) { return (count - 1) / ((count - 1) / most + 1) + 1; };
  const int64_t rows = plan.rows_at_once = even_parts(plan.row_count, kMostRowsAtOnce);
  plan.holds_rows = rows * (steps + 1) + 2 <= registers;
  plan.sums_at_once = 1;
  if (!plan.holds_rows)
    while (plan.sums_at_once < kMostSums && rows * (2 * plan.sums_at_once + 1) + 2 <= registers)
      plan.sums_at_once *= 2;
  plan.keys_at_once = std::max<int64_t>(plan.depth_lanes, kKeysAtOnce);
  // A step over values has registers for accumulators, the weights of their rows and one vector.
  const int64_t sums = std::max<int64_t>(4, registers * 3 / 4), vectors = plan.columns / plan.column_lanes;
  plan.value_rows = even_parts(plan.row_count, std::max<int64_t>(1, (registers - 1) / 2));
  plan.value_vectors =
      std::clamp<int64_t>(std::min(sums, registers - 1 - plan.value_rows) / plan.value_rows, 1, vectors);
  while (vectors % plan.value_vectors != 0) --plan.value_vectors;
  const int64_t unit = std::max<int64_t>(plan.keys_at_once, target.lanes(4));
  plan.block_keys =
      std::min((plan.keys + unit - 1) / unit * unit, target.memory_is_dear() ? kSmallBlock : kBlockKeys);
  plan.prefetch_bytes = target.asks_ahead() ? kPrefetchBytes : 0;
  if (!target.shares_work()) return;
  Dim cells = 1;
  for (const StreamPlan::Axis& axis : plan.grid) cells *= axis.extent;
  const int64_t wanted = kWorkgroups / std::max<int64_t>(1, cells.estimate());
  plan.parts = std::clamp<int64_t>(plan.keys / kFewestPartKeys, 1, std::max<int64_t>(1, wanted));
}

}  // namespace

StreamedAttentions::StreamedAttentions(const Graph& graph, const Target& target)
    : g_(graph), target_(target), readers_(graph.values.size()) {
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].inputs) readers_[v].push_back(static_cast<int>(n));
  for (const Graph::Output& output : graph.outputs) readers_[output.value].push_back(-1);
  for (const Graph::SymbolSource& source : graph.symbol_sources) readers_[source.value].push_back(-1);
}

bool StreamedAttentions::only_read_by(ValueId v, const std::vector<int>& readers) const {
  return std::all_of(readers_[v].begin(), readers_[v].end(), [&](int reader) {
    return std::find(readers.begin(), readers.end(), reader) != readers.end();
  });
}

std::optional<StreamPlan> StreamedAttentions::find(int node) const {
  if (target_.lanes_are_invocations()) return std::nullopt;
  const Node& last = g_.nodes[node];
  const Contraction& result = last.attributes.contraction;
  if (last.op != OpKind::k_contract || result.winograd != 0 || result.accumulator != DType::kF32)
    return std::nullopt;
  for (int operand = 0; operand < 2; ++operand) {
    ValueId weights = last.inputs[operand];
    if (weights == last.inputs[1 - operand] || !only_read_by(weights, {node})) continue;
    Group rows;
    rows.outputs = {weights};
    std::optional<RowSoftmax> softmax = row_softmax(g_, rows, weights);
    if (!softmax) continue;
    StreamPlan plan;
    plan.result = node;
    plan.value_operand = 1 - operand;
    plan.x = softmax->x;
    plan.hidden_is_zero = softmax->hidden_is_zero;
    std::set<int> path;
    if (!find_scores(g_, plan.x, path, plan.scores)) continue;
    const Node& first = g_.nodes[plan.scores];
    const Contraction& scores = first.attributes.contraction;
    if (scores.winograd != 0 || scores.accumulator != DType::kF32 || g_.dtype(first.output) != DType::kF32 ||
        g_.dtype(weights) != DType::kF32)
      continue;
    // What is read elsewhere has to be stored.
    bool is_private = true;
    for (int n : path) {
      std::vector<int> readers(path.begin(), path.end());
      if (g_.nodes[n].output == plan.x)
        for (int reader : readers_[plan.x])
          if (reader >= 0 &&
              (g_.nodes[reader].op == OpKind::k_reduce_max || g_.nodes[reader].op == OpKind::k_sub))
            readers.push_back(reader);
      is_private = is_private && only_read_by(g_.nodes[n].output, readers);
    }
    const Node* weight = g_.def(weights);
    ValueId e = weight->inputs[0];
    is_private =
        is_private && readers_[e].size() == 2 &&
        std::all_of(readers_[e].begin(), readers_[e].end(), [&](int reader) {
          return reader >= 0 && (&g_.nodes[reader] == weight || g_.nodes[reader].op == OpKind::k_reduce_sum);
        });
    if (!is_private) continue;
    auto axes = common_axes(scores, result, operand == 0 ? result.a : result.b);
    if (!axes) continue;
    // Keys are the last dim; which operand has them is found by what it depends on.
    const StreamPlan::Axis keys = axes->back();
    if (!is_axis(scores.out.back()) || keys.scores != scores.out.back().axis_index() ||
        !result.axes[keys.result].reduction || !keys.extent.is_const())
      continue;
    plan.key = keys;
    plan.keys = keys.extent.value();
    OperandStrides strides[2][2];  // of the scores' and the result's contraction
    bool reads = true;
    for (int c = 0; c < 2; ++c)
      for (int i = 0; i < 2; ++i) {
        const Node& contraction = c == 0 ? first : last;
        OperandAccess access = resolve_operand(g_, contraction, i);
        reads = reads && access.direct();
        if (reads)
          strides[c][i] = operand_strides(g_, access, contiguous_strides(g_.shape(access.base)), 0,
                                          contraction.attributes.contraction.axes.size());
      }
    if (!reads) continue;
    auto is_walked = [](const OperandStrides& s, int axis) { return !(s.axis[axis] == Dim(0)); };
    plan.key_operand = is_walked(strides[0][0], keys.scores) ? 0 : 1;
    const OperandStrides &key = strides[0][plan.key_operand], &query = strides[0][1 - plan.key_operand],
                         &value = strides[1][plan.value_operand];
    if (!is_walked(key, keys.scores) || is_walked(query, keys.scores) || !is_walked(value, keys.result) ||
        key.constant || value.constant)
      continue;
    bool fits = true;
    int depths = 0, columns = 0;
    for (const StreamPlan::Axis& axis : *axes) {
      if (axis.scores == keys.scores) continue;
      bool by_key = is_walked(key, axis.scores), by_value = is_walked(value, axis.result);
      fits = fits && by_key == by_value && !scores.axes[axis.scores].reduction &&
             !result.axes[axis.result].reduction;
      (by_key ? plan.grid : plan.rows).push_back(axis);
    }
    const Dim positions = move_positions(plan);
    for (size_t i = 0; i < scores.axes.size(); ++i)
      if (scores.axes[i].reduction) ++depths, plan.depth_axis = static_cast<int>(i);
    std::set<int> common;
    for (const StreamPlan::Axis& axis : *axes) common.insert(axis.result);
    for (size_t i = 0; i < result.axes.size(); ++i)
      if (!common.contains(static_cast<int>(i))) {
        ++columns, plan.column_axis = static_cast<int>(i);
        fits = fits && !result.axes[i].reduction;
      }
    if (!fits || depths != 1 || columns != 1 || scores.axes.size() != axes->size() + 1) continue;
    const Dim &depth = scores.axes[plan.depth_axis].extent, &width = result.axes[plan.column_axis].extent;
    if (!depth.is_const() || !width.is_const() || !(key.axis[plan.depth_axis] == Dim(1)) ||
        !(value.axis[plan.column_axis] == Dim(1)) || plan.row_count > kMostRows || plan.keys < kFewestKeys)
      continue;
    plan.depth = depth.value();
    plan.columns = width.value();
    const int lanes = target_.lanes(4);
    if (plan.depth < 1 || plan.columns < 1) continue;
    plan.depth_lanes = whole_lanes(plan.depth, lanes);
    plan.column_lanes = whole_lanes(plan.columns, lanes);
    if (std::min(plan.depth_lanes, plan.column_lanes) < std::min<int64_t>(kFewestLanes, lanes)) continue;
    if (!(positions == Dim(1)) &&
        !(always_le(positions * kFewestKeysPerPosition, plan.keys) && has_limits(g_, plan)))
      continue;
    choose_loops(plan, target_);
    return plan;
  }
  return std::nullopt;
}

namespace {

// Reads conditions on keys: from the softmax's operand through choices of -inf down to comparisons of the key's number
// with something.
class LimitFinder {
 public:
  LimitFinder(const Graph& graph, const std::function<bool(ValueId)>& is_stored, StreamPlan& plan)
      : g_(graph), is_stored_(is_stored), plan_(plan) {
    const Contraction& scores = graph.nodes[plan.scores].attributes.contraction;
    for (const Contraction::Axis& axis : scores.axes) bounds_.push_back(max(axis.extent, 1));
    at_ = scores.out;
  }

  void run() {
    ValueId scores = g_.nodes[plan_.scores].output;
    for (ValueId x = plan_.x; x != scores;) {
      const Node* node = node_of(g_, x, OpKind::k_where);
      if (!node) return;
      const bool hidden_first = hides(g_, node->inputs[1]), hidden_last = hides(g_, node->inputs[2]);
      if (hidden_first == hidden_last) return;
      ValueId condition = node->inputs[0];
      by_row_ = false;
      if (add(condition, at_, hidden_last) && !by_row_) plan_.shown.push_back({condition, hidden_last});
      x = node->inputs[hidden_first ? 2 : 1];
    }
  }

 private:
  using Indices = std::vector<IndexExpr>;

  // The value behind movement, and where it is read.
  bool follow(ValueId& v, Indices& at) const {
    while (const Node* node = g_.def(v)) {
      if (!has_index_map(*node)) break;
      MappedRead read = mapped_read(g_, *node, at, bounds_);
      if (!read.guards.empty()) return false;
      v = node->inputs[0];
      at = read.indices;
    }
    return true;
  }

  // Adds what a condition says that has to hold, or to fail; whether this is all it says.
  bool add(ValueId condition, Indices at, bool holds) {
    if (!follow(condition, at)) return false;
    const Node* node = g_.def(condition);
    if (!node || !is_elementwise(node->op)) return false;
    if (node->op == OpKind::k_not) return add(node->inputs[0], at, !holds);
    if (node->op == (holds ? OpKind::k_and : OpKind::k_or)) {
      bool first = add(node->inputs[0], at, holds), second = add(node->inputs[1], at, holds);
      return first && second;
    }
    return compare(*node, at, holds);
  }

  bool compare(const Node& node, const Indices& at, bool holds) {
    if (node.inputs.size() != 2) return false;
    for (int side = 0; side < 2; ++side) {
      std::optional<int64_t> first = first_number(node.inputs[side], at);
      if (!first) continue;
      ValueId other = node.inputs[1 - side];
      KeyLimit limit{other, at};
      const DType dtype = g_.dtype(other);
      if ((dtype != DType::kI32 && dtype != DType::kI64) || !may_evaluate(other, at)) return false;
      // key + first OP other, with the key on the left.
      OpKind op = node.op;
      auto swap = [&](OpKind a, OpKind b) { op = op == a ? b : op == b ? a : op; };
      if (side == 1) swap(OpKind::k_lt, OpKind::k_gt), swap(OpKind::k_le, OpKind::k_ge);
      if (!holds) swap(OpKind::k_lt, OpKind::k_ge), swap(OpKind::k_le, OpKind::k_gt);
      if (op == OpKind::k_lt || op == OpKind::k_le)
        limit.plus = (op == OpKind::k_le ? 1 : 0) - *first;
      else if (op == OpKind::k_gt || op == OpKind::k_ge)
        limit.is_first = true, limit.plus = (op == OpKind::k_gt ? 1 : 0) - *first;
      else
        return false;
      for (const StreamPlan::Axis& row : plan_.rows)
        limit.by_row = limit.by_row || depends(other, at, row.scores);
      by_row_ = by_row_ || limit.by_row;
      plan_.limits.push_back(std::move(limit));
      return true;
    }
    return false;
  }

  // The first of neighbouring integers that are read one per key.
  std::optional<int64_t> first_number(ValueId v, Indices at) const {
    if (!follow(v, at)) return std::nullopt;
    if (const Node* cast = node_of(g_, v, OpKind::k_cast); cast && is_integer(g_.dtype(cast->inputs[0])))
      return bit_width(g_.dtype(v)) >= 32 ? first_number(cast->inputs[0], at) : std::nullopt;
    const Tensor* numbers = g_.constant(v);
    if (!numbers || !is_integer(numbers->dtype) || is_packed(numbers->dtype) ||
        static_cast<int64_t>(numbers->count()) != plan_.keys)
      return std::nullopt;
    for (const IndexExpr& e : at) {
      if (e == IndexExpr::axis(plan_.key.scores) || (e.is_const() && e.value() == Dim(0))) continue;
      return std::nullopt;
    }
    if (std::count(at.begin(), at.end(), IndexExpr::axis(plan_.key.scores)) != 1) return std::nullopt;
    const int64_t first = element_as_i64(*numbers, 0);
    constexpr int64_t kMost = int64_t{1} << 40;
    if (first < -kMost || first > kMost) return std::nullopt;
    for (int64_t i = 0; i < plan_.keys; ++i)
      if (element_as_i64(*numbers, i) != first + i) return std::nullopt;
    return first;
  }

  // Whether a kernel can compute the value where it is, and it is the same for all keys.
  bool may_evaluate(ValueId v, Indices at) const {
    if (!follow(v, at)) return false;
    if (is_stored_(v) || g_.constant(v)) {
      return std::none_of(at.begin(), at.end(),
                          [&](const IndexExpr& e) { return uses_axis(e, plan_.key.scores); });
    }
    const Node* node = g_.def(v);
    return node && is_elementwise(node->op) &&
           std::all_of(node->inputs.begin(), node->inputs.end(),
                       [&](ValueId x) { return may_evaluate(x, at); });
  }

  bool depends(ValueId v, Indices at, int axis) const {
    if (!follow(v, at)) return true;
    const Node* node = g_.def(v);
    if (is_stored_(v) || g_.constant(v) || !node)
      return std::any_of(at.begin(), at.end(), [&](const IndexExpr& e) { return uses_axis(e, axis); });
    return std::any_of(node->inputs.begin(), node->inputs.end(),
                       [&](ValueId x) { return depends(x, at, axis); });
  }

  const Graph& g_;
  const std::function<bool(ValueId)>& is_stored_;
  StreamPlan& plan_;
  Shape bounds_;
  Indices at_;
  bool by_row_ = false;  // whether a limit of the present condition is
};

}  // namespace

void find_key_limits(const Graph& graph, const std::function<bool(ValueId)>& is_stored, StreamPlan& plan) {
  LimitFinder(graph, is_stored, plan).run();
}

}  // namespace quernel::schedule
