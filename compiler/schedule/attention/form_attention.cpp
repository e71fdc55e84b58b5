// Attention without its score matrix: a contraction whose result goes row by row through a softmax into
// another contraction becomes one kernel, which computes a block of rows of the scores at a time. The
// arithmetic is that of the three kernels it replaces.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "schedule/attention/attention_block.h"
#include "schedule/attention/streamed_attention.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/group_reads.h"
#include "schedule/steps.h"

namespace quernel::schedule {
namespace {

bool is_axis(const IndexExpr& e) { return e.kind() == IndexExpr::Kind::kAxis; }

// Whether the plan's tiles run over rows of the value that the contraction accesses at `indices`: row tiles along the last
// dim but one, a grid over some before it, vectors along something else.
bool follows_rows(const ContractionPlan& plan, const std::vector<IndexExpr>& indices) {
  if (plan.vector_axis < 0 || plan.elementwise || plan.packed || plan.row_axes.size() != 1) return false;
  auto only = [&](int axis, int member) { return plan.axes[axis].members == std::vector<int>{member}; };
  if (!only(plan.row_axes[0], indices[indices.size() - 2].axis_index())) return false;
  for (int grid : plan.grid_axes)
    for (int member : plan.axes[grid].members) {
      bool known = false;
      for (size_t d = 0; d + 2 < indices.size(); ++d)
        known |= is_axis(indices[d]) && indices[d].axis_index() == member;
      if (!known) return false;
    }
  // Of the vector axis, nothing that is walked outside.
  for (int member : plan.axes[plan.vector_axis].members)
    for (size_t d = 0; d + 1 < indices.size(); ++d)
      if (is_axis(indices[d]) && indices[d].axis_index() == member) return false;
  return true;
}

class AttentionFormer {
 public:
  AttentionFormer(Schedule& schedule, const Target& target)

      : s_(schedule), g_(schedule.graph), target_(target), reads_(schedule), streams_(g_, target) {}

  void run() {
    std::vector<char> merged(s_.groups.size(), 0);
    std::map<size_t, Group> combining;  // kernels that follow
    for (size_t i = 0; i < s_.groups.size(); ++i) {
      if (merged[i] || s_.groups[i].kind != GroupKind::kContract) continue;
      int rows = sole_reader(s_.groups[i]);
      if (rows < 0 || s_.groups[rows].kind != GroupKind::kRows) continue;
      int last = sole_reader(s_.groups[rows]);
      if (last < 0 || s_.groups[last].kind != GroupKind::kContract) continue;
      if (std::optional<StreamPlan> stream = stream_plan(s_.groups[i], s_.groups[rows], s_.groups[last])) {
        for (int cast : absorb_casts(*stream, static_cast<int>(i), last)) merged[cast] = 1;
        std::vector<Group> kernels =
            merge_stream(s_.groups[i], s_.groups[rows], s_.groups[last], std::move(*stream));
        s_.groups[last] = std::move(kernels[0]);
        if (kernels.size() > 1) combining[static_cast<size_t>(last)] = std::move(kernels[1]);
        merged[i] = merged[rows] = 1;
        continue;
      }
      if (!fits(i, static_cast<size_t>(rows), static_cast<size_t>(last))) continue;
      // Nothing but the last group waits for the other two.
      s_.groups[last] = merge(s_.groups[i], s_.groups[rows], s_.groups[last]);
      merged[i] = merged[rows] = 1;
    }
    std::vector<Group> groups;
    for (size_t i = 0; i < s_.groups.size(); ++i) {
      if (!merged[i]) groups.push_back(std::move(s_.groups[i]));
      if (auto next = combining.find(i); next != combining.end()) groups.push_back(std::move(next->second));
    }
    s_.groups = std::move(groups);
  }

 private:
  // The one group that reads the group's one output; -1: there are more, or other readers.
  int sole_reader(const Group& group) const {
    if (group.outputs.size() != 1) return -1;
    const std::set<int>& readers = reads_.readers(group.outputs[0]);
    return readers.size() == 1 ? *readers.begin() : -1;
  }

  bool fits(size_t first, size_t rows, size_t last) const {
    ValueId scores = s_.groups[first].outputs[0], weights = s_.groups[rows].outputs[0];
    const Shape& dims = g_.shape(scores);
    size_t rank = dims.size();
    if (rank < 2 || !(dims == g_.shape(weights)) ||
        !(dims.back().is_const() || target_.lanes_are_invocations()) ||
        !(g_.shape(g_.nodes[s_.groups[rows].anchor].inputs[0]) == dims))
      return false;
    if (dims[rank - 2] == Dim(1) || g_.dtype(scores) != DType::kF32 || g_.dtype(weights) != DType::kF32)
      return false;
    if (!reads_.own_rows_only(rows, first, Shape(dims.begin(), dims.end() - 1))) return false;
    std::optional<ContractionPlan> before = scores_plan(g_.nodes[s_.groups[first].anchor], rank);
    if (!before) return false;
    std::optional<ContractionPlan> after =
        result_plan(g_.nodes[s_.groups[last].anchor], s_.groups[last], weights);
    return after && attention_pays(*before, *after, score_rows(g_, s_.groups[rows], scores), target_);
  }

  std::optional<StreamPlan> stream_plan(const Group& scores, const Group& rows, const Group& result) const {
    std::optional<StreamPlan> plan = streams_.find(result.anchor);
    if (!plan || plan->scores != scores.anchor) return std::nullopt;
    if (g_.nodes[result.anchor].inputs[1 - plan->value_operand] != rows.outputs[0]) return std::nullopt;
    find_key_limits(
        g_,
        [&](ValueId v) {
          if (!g_.def(v)) return true;
          return std::any_of(s_.groups.begin(), s_.groups.end(), [&](const Group& group) {
            return std::find(group.outputs.begin(), group.outputs.end(), v) != group.outputs.end();
          });
        },
        *plan);
    return plan;
  }

  // Keys and values that a kernel of its own widens, for this attention alone, are widened where they are read. Returns
  // these kernels.
  std::vector<int> absorb_casts(const StreamPlan& plan, int scores, int result) {
    std::vector<int> absorbed;
    for (auto [node, operand, reader] :
         {std::tuple(plan.scores, plan.key_operand, scores), {plan.result, plan.value_operand, result}}) {
      ValueId base = resolve_operand(g_, g_.nodes[node], operand).base;
      int group = reads_.group_of(base);
      if (group < 0 || !g_.def(base) || g_.def(base)->op != OpKind::k_cast) continue;
      Group& widening = s_.groups[group];
      if (widening.kind != GroupKind::kMap || widening.nodes.size() != 1 || !widening.inlined.empty() ||
          reads_.readers(base) != std::set<int>{reader})
        continue;
      s_.groups[scores].inlined.push_back(widening.nodes[0]);
      absorbed.push_back(group);
    }
    return absorbed;
  }

  // One kernel, or one that stores what each part of the keys gives, and one that adds these.
  std::vector<Group> merge_stream(Group& scores, Group& rows, Group& result, StreamPlan plan) {
    Group last;
    const bool in_parts = plan.parts > 1;
    if (in_parts) {
      last.kind = GroupKind::kAttention;
      last.anchor = result.anchor;
      last.nodes = result.nodes;
      last.inlined = result.inlined;
      last.outputs = result.outputs;
      last.stream = plan;
      last.stream->combines = true;
    }
    std::vector<Group> kernels{merge(scores, rows, result)};
    Group& first = kernels[0];
    if (in_parts) {
      first.outputs.clear();
      for (std::vector<int>* nodes : {&first.nodes, &first.inlined})
        std::erase_if(*nodes, [&](int n) {
          const std::vector<int>& others = nodes == &first.nodes ? last.nodes : last.inlined;
          return std::find(others.begin(), others.end(), n) != others.end();
        });
    }
    first.stream = std::move(plan);
    if (in_parts) kernels.push_back(std::move(last));
    return kernels;
  }

  // Every dim of the scores but those of one element is an axis; the rows' one belongs to one operand, the
  // others before it to both.
  std::optional<ContractionPlan> scores_plan(const Node& node, size_t rank) const {
    const Contraction& c = node.attributes.contraction;
    if (c.winograd != 0 || c.out.size() != rank || c.accumulator != DType::kF32) return std::nullopt;
    return plan_along(node, c.out, g_.shape(node.output), kNoValue);
  }

  std::optional<ContractionPlan> result_plan(const Node& node, const Group& group, ValueId weights) const {
    const Contraction& c = node.attributes.contraction;
    if (c.winograd != 0 || c.accumulator != DType::kF32) return std::nullopt;
    for (int i = 0; i < 2; ++i)
      if (OperandAccess access = resolve_operand(g_, node, i); access.base == weights)
        return access.direct() && reads_once(node, group, weights)
                   ? plan_along(node, access.indices, g_.shape(weights), weights)
                   : std::nullopt;
    return std::nullopt;
  }

  // Whether the value lies as its shape says; what the schedule around a body lends it need not.
  bool is_dense(ValueId v) const {
    for (size_t i = 0; i < s_.inputs.size(); ++i)
      if (g_.inputs[i] == v && !(s_.inputs[i].strides == contiguous_strides(g_.shape(v)))) return false;
    return true;
  }

  // Whether the contraction reads the value as one of its operands and nothing else does.
  bool reads_once(const Node& node, const Group& group, ValueId weights) const {
    if (resolve_operand(g_, node, 0).base == resolve_operand(g_, node, 1).base) return false;
    std::vector<ValueId> stack;
    for (int n : group.nodes)
      if (n != group.anchor) stack.insert(stack.end(), g_.nodes[n].inputs.begin(), g_.nodes[n].inputs.end());
    while (!stack.empty()) {
      ValueId v = stack.back();
      stack.pop_back();
      if (v == weights) return false;
      if (const Node* inner = g_.def(v); inner && reads_.group_of(v) < 0)
        stack.insert(stack.end(), inner->inputs.begin(), inner->inputs.end());
    }
    return true;
  }

  // The plan of `node` where it runs over the rows that `indices` name (the dims of the scores or weights, as
  // expressions over its axes): rows of tiles along the last but one dim, a grid over those before it,
  // vectors along the one axis that is left.
  std::optional<ContractionPlan> plan_along(const Node& node, const std::vector<IndexExpr>& indices,
                                            const Shape& dims, ValueId weights) const {
    const Contraction& c = node.attributes.contraction;
    std::vector<int> axes;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!is_axis(indices[d])) {
        if (!(dims[d] == Dim(1))) return std::nullopt;
        continue;
      }
      const Contraction::Axis& axis = c.axes[indices[d].axis_index()];
      bool reduced = weights != kNoValue && d + 1 == dims.size();
      if (axis.reduction != reduced || !(axis.extent == dims[d])) return std::nullopt;
      axes.push_back(indices[d].axis_index());
    }
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return std::nullopt;
    if (!is_axis(indices[indices.size() - 2]) || !is_axis(indices.back())) return std::nullopt;
    OperandStrides strides[2];
    for (int i = 0; i < 2; ++i) {
      OperandAccess access = resolve_operand(g_, node, i);
      if (!access.direct() || g_.constant(access.base) || !is_dense(access.base)) return std::nullopt;
      strides[i] = operand_strides(g_, access, contiguous_strides(g_.shape(access.base)), 0, c.axes.size());
    }
    ContractionPlan plan = plan_contraction(c, strides[0], strides[1], target_);
    bool walks_weights =
        weights == kNoValue || resolve_operand(g_, node, plan.swapped ? 1 : 0).base == weights;
    return follows_rows(plan, indices) && walks_weights ? std::optional(plan) : std::nullopt;
  }

  Group merge(Group& scores, Group& rows, Group& result) {
    Group group;
    group.kind = GroupKind::kAttention;
    group.anchor = result.anchor;
    group.outputs = result.outputs;
    for (Group* part : {&scores, &rows, &result}) {
      group.nodes.insert(group.nodes.end(), part->nodes.begin(), part->nodes.end());
      group.inlined.insert(group.inlined.end(), part->inlined.begin(), part->inlined.end());
      part->parts.clear();
      group.parts.push_back(std::move(*part));
    }
    return group;
  }

  Schedule& s_;
  const Graph& g_;
  const Target& target_;
  GroupReads reads_;
  StreamedAttentions streams_;
};

}  // namespace

void form_attention(Schedule& schedule, const Target& target) { AttentionFormer(schedule, target).run(); }

}  // namespace quernel::schedule
