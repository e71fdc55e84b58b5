#include "graph/strips.h"

#include <algorithm>
#include <compare>
#include <map>
#include <utility>
#include <vector>

#include "graph/rewrite.h"

namespace quernel {
namespace {

// Which values depend on `first` and are needed for `last`, both aside and not.
std::vector<char> between(const Graph& graph, const Strips& strips) {
  std::vector<char> depends(graph.values.size(), 0), needed(graph.values.size(), 0);
  depends[strips.first] = needed[strips.last] = 1;
  for (const Node& node : graph.nodes)
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return depends[v] != 0; }))
      depends[node.output] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;)
    if (needed[graph.nodes[i].output])
      for (ValueId v : graph.nodes[i].inputs) needed[v] = 1;
  for (size_t v = 0; v < depends.size(); ++v) depends[v] &= needed[v];
  return depends;
}

// Which values depend on inputs.
std::vector<char> varying(const Graph& graph) {
  std::vector<char> varies(graph.values.size(), 0);
  for (ValueId v : graph.inputs) varies[v] = 1;
  for (const Node& node : graph.nodes)
    for (ValueId v : node.inputs) varies[node.output] |= varies[v];
  return varies;
}

// Whether nothing else uses what is inside.
bool is_closed(const Graph& graph, const Strips& strips, const std::vector<char>& inside) {
  auto is_inner = [&](ValueId v) { return inside[v] && v != strips.first && v != strips.last; };
  for (const Node& node : graph.nodes)
    if (!inside[node.output] && std::any_of(node.inputs.begin(), node.inputs.end(), is_inner)) return false;
  return std::none_of(graph.outputs.begin(), graph.outputs.end(),
                      [&](const Graph::Output& o) { return is_inner(o.value); }) &&
         graph.symbol_sources.empty();
}

// The rows [begin, end) of a value: those positions on a dim.
struct Rows {
  size_t dim = 0;
  int64_t begin = 0, end = 0;
  auto operator<=>(const Rows&) const = default;
  int64_t count() const { return end - begin; }
};

// Builds rows of values of the old graph in the new one.
class StripBuilder {
 public:
  StripBuilder(Rewriter& rewriter, const Strips& strips, const std::vector<char>& inside)
      : r_(rewriter), old_(rewriter.old), strips_(strips), inside_(inside), varies_(varying(rewriter.old)) {}

  // kNoValue: it has no such rows.
  ValueId rows(ValueId v, const Rows& wanted) {
    auto it = known_.find({v, wanted});
    if (it != known_.end()) return it->second;
    const bool is_computed = inside_[v] && v != strips_.first;
    const ValueId built = !has_rows(v, wanted.dim) ? kNoValue
                          : is_computed            ? computed(*old_.def(v), wanted)
                                                   : taken(v, wanted);
    known_[{v, wanted}] = built;
    return built;
  }

 private:
  bool has_rows(ValueId v, size_t dim) const {
    return dim < old_.shape(v).size() && is_static(old_.shape(v));
  }
  int64_t count(ValueId v, size_t dim) const { return old_.shape(v)[dim].value(); }

  // Rows of a value that exists as a whole.
  ValueId taken(ValueId v, const Rows& wanted) {
    if (wanted.begin == 0 && wanted.end == count(v, wanted.dim)) return r_(v);
    const Node* node = old_.def(v);
    if (node && node->op == OpKind::k_expand && old_.shape(node->inputs[0])[wanted.dim] == Dim(1))
      return expanded(*node, r_(node->inputs[0]), wanted);
    if (node && is_elementwise(node->op) && !varies_[v]) return row_by_row(*node, wanted);
    Shape starts(old_.shape(v).size(), 0), stops = old_.shape(v);
    starts[wanted.dim] = wanted.begin, stops[wanted.dim] = wanted.end;
    return r_.build.slice(r_(v), starts, stops);
  }

  ValueId expanded(const Node& node, ValueId source, const Rows& wanted) {
    Attributes attributes = node.attributes;
    attributes.shape[wanted.dim] = wanted.count();
    return add(node, {source}, std::move(attributes));
  }

  ValueId add(const Node& node, std::vector<ValueId> inputs, Attributes attributes) {
    if (std::count(inputs.begin(), inputs.end(), kNoValue) > 0) return kNoValue;
    r_.build.set_location(node.location);
    return r_.build.add(node.op, std::move(inputs), std::move(attributes));
  }

  // The same rows of all operands, which have as many as the result.
  ValueId row_by_row(const Node& node, const Rows& wanted) {
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) {
      if (!has_rows(v, wanted.dim) || count(v, wanted.dim) != count(node.output, wanted.dim)) return kNoValue;
      inputs.push_back(rows(v, wanted));
    }
    return add(node, std::move(inputs), node.attributes);
  }

  ValueId computed(const Node& node, const Rows& wanted) {
    if (is_elementwise(node.op) || node.op == OpKind::k_contiguous) return row_by_row(node, wanted);
    if (is_reduce(node.op)) return reduced(node, wanted);
    const ValueId x = node.inputs[0];
    switch (node.op) {
      case OpKind::k_expand:
        if (count(x, wanted.dim) == 1) return expanded(node, rows(x, {wanted.dim, 0, 1}), wanted);
        return expanded(node, rows(x, wanted), wanted);
      case OpKind::k_permute:
        return add(
            node,
            {rows(x, {static_cast<size_t>(node.attributes.ints[wanted.dim]), wanted.begin, wanted.end})},
            node.attributes);
      case OpKind::k_cat:
        return concatenated(node, wanted);
      case OpKind::k_pad:
        return padded(node, wanted);
      case OpKind::k_take:
        return looked_up(node, wanted);
      case OpKind::k_contract:
        return contracted(node, wanted);
      case OpKind::k_view:
        return viewed(node, wanted);
      default:
        return kNoValue;
    }
  }

  ValueId reduced(const Node& node, const Rows& wanted) {
    Rows operand = wanted;
    for (int64_t axis : node.attributes.ints) {  // ascending
      if (static_cast<size_t>(axis) > operand.dim) break;
      if (node.attributes.keepdims && static_cast<size_t>(axis) == operand.dim) return kNoValue;
      if (!node.attributes.keepdims) ++operand.dim;
    }
    return add(node, {rows(node.inputs[0], operand)}, node.attributes);
  }

  ValueId concatenated(const Node& node, const Rows& wanted) {
    if (node.attributes.ints[0] != static_cast<int64_t>(wanted.dim)) return row_by_row(node, wanted);
    std::vector<ValueId> parts;
    int64_t before = 0;
    for (ValueId v : node.inputs) {
      const int64_t begin = std::max(wanted.begin - before, int64_t{0}),
                    end = std::min(wanted.end - before, count(v, wanted.dim));
      if (begin < end) parts.push_back(rows(v, {wanted.dim, begin, end}));
      before += count(v, wanted.dim);
    }
    return parts.size() == 1 ? parts[0] : add(node, std::move(parts), node.attributes);
  }

  ValueId padded(const Node& node, const Rows& wanted) {
    const ValueId x = node.inputs[0];
    if (node.attributes.mode != PadMode::kConstant || !node.attributes.starts[wanted.dim].is_const())
      return kNoValue;
    const int64_t before = node.attributes.starts[wanted.dim].value(), size = count(x, wanted.dim);
    const int64_t begin = std::clamp(wanted.begin - before, int64_t{0}, size),
                  end = std::clamp(wanted.end - before, int64_t{0}, size);
    if (begin == end) return kNoValue;  // nothing but padding
    Attributes attributes = node.attributes;
    attributes.starts[wanted.dim] = begin + before - wanted.begin;
    attributes.stops[wanted.dim] = wanted.end - before - end;
    return add(node, {rows(x, {wanted.dim, begin, end})}, std::move(attributes));
  }

  ValueId looked_up(const Node& node, const Rows& wanted) {
    const ValueId table = node.inputs[0], indices = node.inputs[1];
    if (inside_[table] || old_.rank(table) != 1) return kNoValue;
    return add(node, {r_(table), rows(indices, wanted)}, node.attributes);
  }

  ValueId contracted(const Node& node, const Rows& wanted) {
    Attributes attributes = node.attributes;
    Contraction& c = attributes.contraction;
    if (c.winograd != 0 || c.out[wanted.dim].kind() != IndexExpr::Kind::kAxis) return kNoValue;
    const int axis = c.out[wanted.dim].axis_index();
    c.axes[static_cast<size_t>(axis)].extent = wanted.count();
    Shape extents;
    for (const Contraction::Axis& a : c.axes) {
      if (!a.extent.is_const()) return kNoValue;
      extents.push_back(a.extent);
    }
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < 2; ++i)
      inputs.push_back(operand(node.inputs[i], i == 0 ? c.a : c.b, axis, wanted.begin, extents));
    return add(node, std::move(inputs), std::move(attributes));
  }

  // The one index that uses an axis; its count if there is none, nullopt if there are several.
  static std::optional<size_t> user_of(int axis, const std::vector<IndexExpr>& indices) {
    size_t user = indices.size();
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!uses_axis(indices[d], axis)) continue;
      if (user != indices.size()) return std::nullopt;
      user = d;
    }
    return user;
  }

  // What a contraction reads of an operand at positions of an axis from `begin` on. `indices` of the operand become
  // those of its rows. Weights are not cut: they would be no constants.
  ValueId operand(ValueId v, std::vector<IndexExpr>& indices, int axis, int64_t begin, const Shape& extents) {
    const std::optional<size_t> dim = user_of(axis, indices);
    if (!dim) return kNoValue;
    if (*dim == indices.size()) return inside_[v] ? rows(v, {0, 0, count(v, 0)}) : r_(v);
    if (!inside_[v]) return kNoValue;
    std::optional<AffineForm> form = as_affine(indices[*dim], static_cast<int>(extents.size()));
    if (!form) return kNoValue;
    form->offset += form->coefficients[static_cast<size_t>(axis)] * begin;
    const IndexRange range = range_of(from_affine(*form), extents);
    if (!range.lo.is_const() || !range.hi.is_const()) return kNoValue;
    form->offset = form->offset - range.lo;
    indices[*dim] = from_affine(*form);
    return rows(v, {*dim, range.lo.value(), range.hi.value() + 1});
  }

  // A view whose rows are rows of its operand, such as windows.
  ValueId viewed(const Node& node, const Rows& wanted) {
    const ValueId x = node.inputs[0];
    Attributes attributes = node.attributes;
    IndexMap& map = attributes.map;
    attributes.shape[wanted.dim] = wanted.count();
    const std::optional<size_t> dim = user_of(static_cast<int>(wanted.dim), map.indices);
    if (!dim || *dim == map.indices.size() || !has_rows(x, *dim)) return kNoValue;
    std::vector<IndexExpr> from_begin;
    for (size_t d = 0; d < attributes.shape.size(); ++d)
      from_begin.push_back(IndexExpr::axis(static_cast<int>(d)));
    from_begin[wanted.dim] = from_begin[wanted.dim] + IndexExpr(wanted.begin);
    IndexExpr& index = map.indices[*dim];
    index = substitute(index, from_begin);
    for (IndexGuard& guard : map.guards) guard.expr = substitute(guard.expr, from_begin);
    const IndexRange range = range_of(index, attributes.shape);
    if (!range.lo.is_const() || !range.hi.is_const()) return kNoValue;
    const int64_t begin = std::max(range.lo.value(), int64_t{0}),
                  end = std::min(range.hi.value() + 1, count(x, *dim));
    if (begin >= end) return kNoValue;
    index = index + IndexExpr(-begin);
    return add(node, {rows(x, {*dim, begin, end})}, std::move(attributes));
  }

  Rewriter& r_;
  const Graph& old_;
  const Strips& strips_;
  const std::vector<char>& inside_;
  std::vector<char> varies_;
  std::map<std::pair<ValueId, Rows>, ValueId> known_;
};

}  // namespace

std::optional<Graph> compute_in_strips(const Graph& graph, const Strips& strips) {
  const Shape& shape = graph.shape(strips.last);
  if (strips.dim >= shape.size() || !is_static(shape) || graph.def(strips.last) == nullptr)
    return std::nullopt;
  const int64_t count = shape[strips.dim].value();
  const std::vector<char> inside = between(graph, strips);
  if (strips.count < 2 || count < strips.count || !inside[strips.first] || !inside[strips.last] ||
      !is_closed(graph, strips, inside))
    return std::nullopt;
  bool whole = true;
  Expected<Graph> result = rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.output != strips.last) return kNoValue;
    const int64_t longest = (count + strips.count - 1) / strips.count;
    std::vector<ValueId> parts;
    for (int64_t begin = 0; begin < count; begin += longest) {
      StripBuilder strip(r, strips, inside);
      parts.push_back(strip.rows(node.output, {strips.dim, begin, std::min(begin + longest, count)}));
      whole &= parts.back() != kNoValue;
      if (!whole) return kNoValue;
    }
    return r.build.cat(std::move(parts), static_cast<int64_t>(strips.dim));
  });
  if (!result || !whole) return std::nullopt;
  return std::move(*result);
}

}  // namespace quernel
