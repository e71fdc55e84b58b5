// Softmax and normalisations as one kernel: a row is read from memory once and stays in the nearest cache
// while all stages go over it, where kernels of their own would walk the whole tensor each.
#include <algorithm>
#include <set>

#include "graph/rewrite.h"
#include "schedule/schedule.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kShortestRow = 16, kLongestRow = 1 << 16;

struct Rows {
  Shape dims;
  int64_t width = 0;
};

class RowFormer {
 public:
  explicit RowFormer(Schedule& schedule)
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

  void run() {
    std::vector<Group> groups;
    for (size_t first = 0; first < s_.groups.size();) {
      size_t end = chain_from(first);
      if (end > first + 1)
        groups.push_back(merge(first, end));
      else
        groups.push_back(std::move(s_.groups[first]));
      first = end;
    }
    s_.groups = std::move(groups);
  }

 private:
  static constexpr int kOutside = -1;

  // The rows that a group works on; nullopt where it is no stage.
  std::optional<Rows> rows_of(const Group& group) const {
    const Node& anchor = g_.nodes[group.anchor];
    bool reduces = group.kind == GroupKind::kReduce;
    bool positions = anchor.op == OpKind::k_reduce_argmax || anchor.op == OpKind::k_reduce_argmin;
    if ((!reduces && group.kind != GroupKind::kMap) || positions || anchor.op == OpKind::k_contiguous)
      return std::nullopt;
    for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
      for (int n : *nodes)
        if (is_packed(g_.dtype(g_.nodes[n].output))) return std::nullopt;
    Shape dims = g_.shape(reduces ? anchor.inputs[0] : anchor.output);
    if (dims.empty() || !dims.back().is_const()) return std::nullopt;
    if (reduces && anchor.attributes.ints != std::vector<int64_t>{static_cast<int64_t>(dims.size()) - 1})
      return std::nullopt;
    Rows rows{dims, dims.back().value()};
    rows.dims.pop_back();
    return rows;
  }

  // A run-time symbol is read between kernels.
  bool gives_symbol(const Group& group) const {
    return std::any_of(
        g_.symbol_sources.begin(), g_.symbol_sources.end(), [&](const Graph::SymbolSource& source) {
          return std::find(group.outputs.begin(), group.outputs.end(), source.value) != group.outputs.end();
        });
  }

  bool reads_within(size_t group, size_t first) const {
    for (size_t i = first; i < group; ++i)
      for (ValueId v : s_.groups[i].outputs)
        if (readers_[v].count(static_cast<int>(group))) return true;
    return false;
  }

  // The end of the longest chain of stages from `first` on; first + 1 where there is none.
  size_t chain_from(size_t first) const {
    std::optional<Rows> rows = rows_of(s_.groups[first]);
    if (!rows || rows->width < kShortestRow || rows->width > kLongestRow) return first + 1;
    size_t end = first + 1;
    for (; end < s_.groups.size(); ++end) {
      std::optional<Rows> next = rows_of(s_.groups[end]);
      bool same =
          next && ((next->dims == rows->dims && next->width == rows->width) ||
                   // one element for each row
                   (s_.groups[end].kind == GroupKind::kMap && next->dims == rows->dims && next->width == 1));
      if (!same || gives_symbol(s_.groups[end - 1]) || !reads_within(end, first) ||
          !reads_own_rows(end, first, *rows))
        break;
    }
    // What is read inside must not be read outside, too.
    for (bool shrunk = true; shrunk;) {
      shrunk = false;
      for (size_t i = first; i < end; ++i)
        for (ValueId v : s_.groups[i].outputs) {
          int inside = -1;
          bool outside = false;
          for (int reader : readers_[v]) {
            bool in = reader > static_cast<int>(i) && reader < static_cast<int>(end);
            outside |= !in;
            if (in && (inside < 0 || reader < inside)) inside = reader;
          }
          if (outside && inside >= 0) end = static_cast<size_t>(inside), shrunk = true;
        }
    }
    bool reduces = std::any_of(s_.groups.begin() + static_cast<std::ptrdiff_t>(first),
                               s_.groups.begin() + static_cast<std::ptrdiff_t>(end),
                               [](const Group& group) { return group.kind == GroupKind::kReduce; });
    return reduces ? end : first + 1;
  }

  // Whether the group reads what earlier stages compute at its own row only, each value at its own column.
  bool reads_own_rows(size_t group, size_t first, const Rows& rows) const {
    const Group& stage = s_.groups[group];
    for (int n : stage.nodes) {
      const Node& node = g_.nodes[n];
      bool reduces = stage.kind == GroupKind::kReduce && n == stage.anchor;
      const Shape& domain = g_.shape(reduces ? node.inputs[0] : node.output);
      std::vector<IndexExpr> identity;
      for (size_t d = 0; d < domain.size(); ++d) identity.push_back(IndexExpr::axis(static_cast<int>(d)));
      bool own = reduces ? reads_own_row(node.inputs[0], identity, domain, group, first, rows)
                         : operands_read_own_row(node, identity, domain, group, first, rows);
      if (!own) return false;
    }
    return true;
  }

  // The same for what `node` reads at `indices` of its result.
  bool operands_read_own_row(const Node& node, const std::vector<IndexExpr>& indices, const Shape& domain,
                             size_t group, size_t first, const Rows& rows) const {
    std::vector<IndexExpr> inner = indices;
    bool follows = is_elementwise(node.op);
    if (has_index_map(node)) {
      IndexMap map = index_map_of(g_, node);
      inner.clear();
      for (const IndexExpr& e : map.indices) inner.push_back(simplify(substitute(e, indices), domain));
      follows = map.guards.empty();
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return follows ? reads_own_row(v, inner, domain, group, first, rows) : !depends_on(v, first, group);
    });
  }

  bool reads_own_row(ValueId v, const std::vector<IndexExpr>& indices, const Shape& domain, size_t group,
                     size_t first, const Rows& rows) const {
    int from = group_of_[v];
    if (from == static_cast<int>(group)) return true;
    if (from >= static_cast<int>(first) && from < static_cast<int>(group)) {
      // Row dims first, in order; then nothing, or one index.
      size_t r = rows.dims.size();
      if (indices.size() < r || indices.size() > r + 1) return false;
      for (size_t d = 0; d < r; ++d)
        if (!(rows.dims[d] == Dim(1)) && !(indices[d] == IndexExpr::axis(static_cast<int>(d)))) return false;
      return indices.size() == r || g_.shape(v)[r] == Dim(1) ||
             indices[r] == IndexExpr::axis(static_cast<int>(r));
    }
    const Node* node = g_.def(v);
    return !node || from >= 0 || operands_read_own_row(*node, indices, domain, group, first, rows);
  }

  bool depends_on(ValueId v, size_t first, size_t group) const {
    int from = group_of_[v];
    if (from >= 0) return from >= static_cast<int>(first) && from < static_cast<int>(group);
    const Node* node = g_.def(v);
    return node && std::any_of(node->inputs.begin(), node->inputs.end(),
                               [&](ValueId x) { return depends_on(x, first, group); });
  }

  Group merge(size_t first, size_t end) {
    Group rows;
    rows.kind = GroupKind::kRows;
    for (size_t i = first; i < end; ++i) {
      Group& group = s_.groups[i];
      if (rows.anchor < 0 && group.kind == GroupKind::kReduce) rows.anchor = group.anchor;
      RowStage stage{group.kind, group.anchor, {}, {}};
      for (ValueId v : group.outputs) {
        bool local = std::all_of(readers_[v].begin(), readers_[v].end(), [&](int reader) {
          return reader >= static_cast<int>(first) && reader < static_cast<int>(end);
        });
        (local ? stage.locals : stage.outputs).push_back(v);
        if (!local) rows.outputs.push_back(v);
      }
      rows.stages.push_back(std::move(stage));
      rows.nodes.insert(rows.nodes.end(), group.nodes.begin(), group.nodes.end());
      rows.inlined.insert(rows.inlined.end(), group.inlined.begin(), group.inlined.end());
    }
    return rows;
  }

  Schedule& s_;
  const Graph& g_;
  std::vector<int> group_of_;           // per value: the group that computes it at its own indices
  std::vector<std::set<int>> readers_;  // per value: groups
};

}  // namespace

void form_rows(Schedule& schedule) { RowFormer(schedule).run(); }

}  // namespace quernel::schedule
