#include "schedule/plans/access_walk.h"

#include <utility>

#include "schedule/plans/operand_indices.h"

namespace quernel::schedule {

AccessWalk::AccessWalk(const Schedule& schedule, const Group& group, Shape extents)
    : s_(schedule), g_(schedule.graph), extents_(std::move(extents)), computed_(g_.values.size(), 0) {
  for (int n : group.nodes) computed_[g_.nodes[n].output] = 1;
}

IndexExpr AccessWalk::offset_of(ValueId v, const std::vector<IndexExpr>& indices) const {
  return element_offset(s_, v, indices, extents_);
}

void AccessWalk::read(ValueId v, const std::vector<IndexExpr>& indices) {
  constexpr int kWidestScalar = 8;  // bytes of a constant that is part of the code
  if (const Tensor* constant = g_.constant(v);
      constant && constant->count() == 1 && element_size(constant->dtype) <= kWidestScalar)
    return;
  for (const Known& known : known_[v])
    if (known.predicate == predicate_ && known.indices == indices) return;
  if (locals.count(v)) {
    locals_read.push_back(v);
    known_[v].push_back({indices, predicate_});
    return;
  }
  const Node* node = g_.def(v);
  bool stored = !computed_[v] && s_.storage[v].valid();
  if (node && !stored && node->op != OpKind::k_constant) {
    read_node(*node, indices);
  } else {
    IndexExpr offset = offset_of(v, indices);
    access(v, offset);
    if (!is_packed(g_.dtype(v))) {
      loads.push_back({v, offset});
      if (predicate_ == kNoGuard) unguarded.push_back({v, offset});
    }
  }
  known_[v].push_back({indices, predicate_});
}

void AccessWalk::read_node(const Node& node, const std::vector<IndexExpr>& indices) {
  const ValueId x = node.inputs.empty() ? kNoValue : node.inputs[0];
  if (node.op == OpKind::k_contiguous) return read(x, indices);
  if (has_index_map(node)) return read_mapped(node, indices);
  switch (node.op) {
    case OpKind::k_pad:
      return read(x, padded_read(g_, node, indices, extents_, [&](const IndexExpr& position, size_t d) {
                    unpadded.push_back({position, 0, g_.shape(x)[d]});
                    return new_axis(max(g_.shape(x)[d], 1));
                  }));
    case OpKind::k_take:
    case OpKind::k_gather_elements:
    case OpKind::k_gather_nd:
      return read(x, gathered_read(g_, node, indices, [&](ValueId v, const auto& at, const Dim& extent) {
                    return gathered_index(v, at, extent);
                  }));
    case OpKind::k_bitcast:
      for (const std::vector<IndexExpr>& part : bitcast_reads(g_, node, indices, extents_)) read(x, part);
      return;
    case OpKind::k_dims:
      return;
    default:  // elementwise
      for (ValueId v : node.inputs) read(v, indices);
  }
}

void AccessWalk::read_mapped(const Node& node, const std::vector<IndexExpr>& indices) {
  MappedRead inner = mapped_read(g_, node, indices, extents_);
  for (const IndexGuard& guard : inner.guards) guards.push_back(guard.expr);
  const int outside = predicate_;
  if (!inner.guards.empty()) predicate_ = ++predicates_;
  read(node.inputs[0], inner.indices);
  predicate_ = outside;
}

IndexExpr AccessWalk::gathered_index(ValueId v, const std::vector<IndexExpr>& at, const Dim& extent) {
  if (std::optional<IndexExpr> known = index_of_table(g_, v, at, extent, extents_)) return *known;
  read(v, at);
  return new_axis(max(extent, 1));
}

IndexExpr AccessWalk::new_axis(Dim extent) {
  extents_.push_back(std::move(extent));
  return IndexExpr::axis(static_cast<int>(extents_.size()) - 1);
}

}  // namespace quernel::schedule
