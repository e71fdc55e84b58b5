#include "schedule/group_reads.h"

#include <algorithm>

namespace quernel::schedule {

GroupReads::GroupReads(const Schedule& schedule)
    : s_(schedule), g_(schedule.graph), group_of_(g_.values.size(), -1), readers_(g_.values.size()) {
  for (size_t i = 0; i < s_.groups.size(); ++i)
    for (int n : s_.groups[i].nodes) group_of_[g_.nodes[n].output] = static_cast<int>(i);
  for (const Graph::Output& output : g_.outputs) readers_[output.value].insert(kOutside);
  for (const Graph::SymbolSource& source : g_.symbol_sources) readers_[source.value].insert(kOutside);
  // Values computed where they are read pass their readers on.
  for (size_t i = g_.nodes.size(); i-- > 0;) {
    const Node& node = g_.nodes[i];
    int group = group_of_[node.output];
    for (ValueId v : node.inputs)
      if (group < 0)
        readers_[v].insert(readers_[node.output].begin(), readers_[node.output].end());
      else if (group != group_of_[v])
        readers_[v].insert(group);
  }
}

bool GroupReads::own_rows_only(size_t group, size_t first, const Shape& row_dims) const {
  Range range{first, group, row_dims};
  for (int n : s_.groups[group].nodes) {
    const Node& node = g_.nodes[n];
    const Shape& domain = g_.shape(is_reduce(node.op) ? node.inputs[0] : node.output);
    std::vector<IndexExpr> identity;
    for (size_t d = 0; d < domain.size(); ++d) identity.push_back(IndexExpr::axis(static_cast<int>(d)));
    bool own = is_reduce(node.op) ? in_row(node.inputs[0], identity, domain, range)
                                  : operands_in_row(node, identity, domain, range);
    if (!own) return false;
  }
  return true;
}

// The same for what `node` reads at `indices` of its result.
bool GroupReads::operands_in_row(const Node& node, const std::vector<IndexExpr>& indices, const Shape& domain,
                                 const Range& range) const {
  std::vector<IndexExpr> inner = indices;
  bool follows = is_elementwise(node.op);
  if (has_index_map(node)) {
    IndexMap map = index_map_of(g_, node);
    inner.clear();
    for (const IndexExpr& e : map.indices) inner.push_back(simplify(substitute(e, indices), domain));
    follows = map.guards.empty();
  }
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
    return follows ? in_row(v, inner, domain, range) : !depends_on(v, range);
  });
}

bool GroupReads::in_row(ValueId v, const std::vector<IndexExpr>& indices, const Shape& domain,
                        const Range& range) const {
  int from = group_of_[v];
  if (from == static_cast<int>(range.group)) return true;
  if (from >= static_cast<int>(range.first) && from < static_cast<int>(range.group)) {
    // Row dims first, in order; then nothing, or one index.
    size_t r = range.row_dims.size();
    if (indices.size() < r || indices.size() > r + 1) return false;
    for (size_t d = 0; d < r; ++d)
      if (!(range.row_dims[d] == Dim(1)) && !(indices[d] == IndexExpr::axis(static_cast<int>(d))))
        return false;
    return indices.size() == r || g_.shape(v)[r] == Dim(1) ||
           indices[r] == IndexExpr::axis(static_cast<int>(r));
  }
  const Node* node = g_.def(v);
  return !node || from >= 0 || operands_in_row(*node, indices, domain, range);
}

bool GroupReads::depends_on(ValueId v, const Range& range) const {
  int from = group_of_[v];
  if (from >= 0) return from >= static_cast<int>(range.first) && from < static_cast<int>(range.group);
  const Node* node = g_.def(v);
  return node && std::any_of(node->inputs.begin(), node->inputs.end(),
                             [&](ValueId x) { return depends_on(x, range); });
}

}  // namespace quernel::schedule
