#include "schedule/plans/operand_indices.h"

namespace quernel::schedule {

IndexExpr element_offset(const Schedule& schedule, ValueId v, const std::vector<IndexExpr>& at,
                         const Shape& bounds) {
  const Storage& storage = schedule.storage[v];
  IndexExpr offset = storage.offset.is_bound() ? Dim(0) : storage.offset;
  for (size_t d = 0; d < at.size(); ++d) offset = offset + at[d] * storage.strides[d];
  return simplify(offset, bounds);
}

MappedRead mapped_read(const Graph& graph, const Node& node, const std::vector<IndexExpr>& at,
                       const Shape& bounds) {
  IndexMap map = index_map_of(graph, node);
  MappedRead read;
  for (const IndexExpr& e : map.indices) read.indices.push_back(simplify(substitute(e, at), bounds));
  for (const IndexGuard& guard : map.guards) {
    IndexExpr e = simplify(substitute(guard.expr, at), bounds);
    IndexRange range = range_of(e, bounds);
    if (always_le(guard.lo, range.lo) && always_lt(range.hi, guard.hi)) continue;
    read.guards.push_back({e, guard.lo, guard.hi});
  }
  return read;
}

std::vector<IndexExpr> padded_read(const Graph& graph, const Node& node, const std::vector<IndexExpr>& at,
                                   const Shape& bounds,
                                   const std::function<IndexExpr(const IndexExpr&, size_t dim)>& inside) {
  const Shape& dims = graph.shape(node.inputs[0]);
  std::vector<IndexExpr> inner;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim &before = node.attributes.starts[d], &after = node.attributes.stops[d];
    if (before == Dim(0) && after == Dim(0)) {
      inner.push_back(at[d]);
      continue;
    }
    IndexExpr position = simplify(at[d] + (Dim(0) - before), bounds);
    IndexRange range = range_of(position, bounds);
    bool fits = always_le(0, range.lo) && always_le(range.hi, dims[d] - 1);
    inner.push_back(fits ? position : inside(position, d));
  }
  return inner;
}

std::vector<IndexExpr> gathered_read(const Graph& graph, const Node& node, const std::vector<IndexExpr>& at,
                                     const GatheredIndex& element) {
  const Shape& dims = graph.shape(node.inputs[0]);
  const size_t index_rank = graph.shape(node.inputs[1]).size();
  const size_t axis = static_cast<size_t>(node.attributes.ints[0]);
  std::vector<IndexExpr> inner;
  if (node.op == OpKind::k_take) {
    inner.assign(at.begin(), at.begin() + axis);
    inner.push_back(element(node.inputs[1], {at.begin() + axis, at.begin() + axis + index_rank}, dims[axis]));
    inner.insert(inner.end(), at.begin() + axis + index_rank, at.end());
  } else if (node.op == OpKind::k_gather_elements) {
    inner = at;
    inner[axis] = element(node.inputs[1], at, dims[axis]);
  } else {
    int64_t tuple = graph.shape(node.inputs[1]).back().value();
    inner.assign(at.begin(), at.begin() + axis);
    for (int64_t t = 0; t < tuple; ++t) {
      std::vector<IndexExpr> of_tuple(at.begin(), at.begin() + index_rank - 1);
      of_tuple.push_back(IndexExpr(t));
      inner.push_back(element(node.inputs[1], of_tuple, dims[axis + t]));
    }
    inner.insert(inner.end(), at.begin() + index_rank - 1, at.end());
  }
  return inner;
}

std::optional<IndexExpr> index_of_table(const Graph& graph, ValueId value, const std::vector<IndexExpr>& at,
                                        const Dim& extent, const Shape& bounds) {
  const Tensor* table = graph.constant(value);
  if (!table || at.size() != 1 || table->count() <= 1 || !extent.is_const()) return std::nullopt;
  int64_t n = table->count(), first = element_as_i64(*table, 0), step = element_as_i64(*table, 1) - first;
  int64_t run = 1;
  while (run < n && element_as_i64(*table, run) == first) ++run;
  bool affine = true, runs = first == 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t t = element_as_i64(*table, i);
    affine = affine && t == first + i * step && t >= 0 && t < extent.value();
    runs = runs && t == i / run && t < extent.value();
  }
  if (affine) return at[0] * step + first;
  if (runs) return simplify(floordiv(at[0], run), bounds);
  return std::nullopt;
}

std::vector<std::vector<IndexExpr>> bitcast_reads(const Graph& graph, const Node& node,
                                                  const std::vector<IndexExpr>& at, const Shape& bounds) {
  const int from = bit_width(graph.dtype(node.inputs[0])), to = bit_width(node.attributes.dtype);
  if (from == to) return {at};
  std::vector<IndexExpr> inner = at;
  if (from > to) {
    inner.back() = simplify(floordiv(at.back(), int64_t{from / to}), bounds);
    return {inner};
  }
  std::vector<std::vector<IndexExpr>> parts;
  for (int64_t part = 0; part < to / from; ++part) {
    inner.back() = simplify(at.back() * (to / from) + part, bounds);
    parts.push_back(inner);
  }
  return parts;
}

}  // namespace quernel::schedule
