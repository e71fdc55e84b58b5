// Movement ops: shape rules, and their index maps. None of them copies; a consumer reads through the map.
#include <algorithm>
#include <numeric>

#include "ops/families.h"

namespace quernel {
namespace ops {
namespace {

Diagnostic rank_mismatch(const char* what, size_t found, const TensorType& x) {
  return invalid_input(std::string("expected ") + what + " for each dim of " + to_string(x) + ", found " +
                       std::to_string(found));
}

Expected<TensorType> infer_reshape(const TensorType& x, const Attributes& a) {
  Dim from = element_count(x.shape), to = element_count(a.shape);
  if (from.is_const() && to.is_const() && from.value() != to.value())
    return invalid_input("expected a shape of " + to_string(from) + " elements, found " + to_string(a.shape) +
                         " for " + to_string(x));
  return TensorType{x.dtype, a.shape};
}

Expected<TensorType> infer_permute(const TensorType& x, const Attributes& a) {
  size_t rank = x.shape.size();
  std::vector<char> seen(rank, 0);
  TensorType result{x.dtype, {}};
  if (a.ints.size() != rank) return rank_mismatch("one source dim", a.ints.size(), x);
  for (int64_t d : a.ints) {
    if (d < 0 || d >= static_cast<int64_t>(rank) || seen[d]++)
      return invalid_input("expected a permutation of the dims of " + to_string(x));
    result.shape.push_back(x.shape[d]);
  }
  return result;
}

Expected<TensorType> infer_expand(const TensorType& x, const Attributes& a) {
  if (a.shape.size() != x.shape.size()) return rank_mismatch("one size", a.shape.size(), x);
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (!(x.shape[i] == a.shape[i]) && !(x.shape[i] == Dim(1)))
      return invalid_input("expected only dims of 1 to grow, found " + to_string(x) + " to " +
                           to_string(a.shape));
  return TensorType{x.dtype, a.shape};
}

Expected<TensorType> infer_slice(const TensorType& x, const Attributes& a) {
  size_t rank = x.shape.size();
  if (a.starts.size() != rank || a.stops.size() != rank || a.steps.size() != rank)
    return rank_mismatch("start, stop and step", a.starts.size(), x);
  TensorType result{x.dtype, {}};
  for (size_t i = 0; i < rank; ++i) {
    if (a.steps[i] < 1)
      return invalid_input("expected steps of at least 1, found " + std::to_string(a.steps[i]));
    const Dim &start = a.starts[i], &stop = a.stops[i];
    if (always_lt(start, 0) || always_lt(stop, start) || always_lt(x.shape[i], stop))
      return invalid_input("expected 0 <= start <= stop <= " + to_string(x.shape[i]) + " on dim " +
                           std::to_string(i) + ", found " + to_string(start) + " and " + to_string(stop));
    result.shape.push_back(ceildiv(stop - start, a.steps[i]));
  }
  return result;
}

Expected<TensorType> infer_flip(const TensorType& x, const Attributes& a) {
  for (int64_t axis : a.ints)
    if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size()))
      return invalid_input("expected axes of " + to_string(x) + ", found " + std::to_string(axis));
  return x;
}

Expected<TensorType> infer_pad(const TensorType& x, const Attributes& a) {
  size_t rank = x.shape.size();
  if (a.starts.size() != rank || a.stops.size() != rank)
    return rank_mismatch("padding before and after", a.starts.size(), x);
  TensorType result{x.dtype, {}};
  for (size_t i = 0; i < rank; ++i) {
    for (const Dim& amount : {a.starts[i], a.stops[i]}) {
      if (!amount.is_const() || !x.shape[i].is_const()) continue;
      int64_t size = x.shape[i].value(), n = amount.value();
      if (n < 0)
        return invalid_input("expected padding of at least 0, found " + std::to_string(n) + " on dim " +
                             std::to_string(i));
      if (n > 0 && a.mode == PadMode::kReflect && n >= size)
        return invalid_input("expected reflect padding below the dim's size " + std::to_string(size) +
                             ", found " + std::to_string(n));
      if (n > 0 && a.mode != PadMode::kConstant && size == 0)
        return invalid_input("expected a non-empty dim to pad from, found dim " + std::to_string(i) + " of " +
                             to_string(x));
    }
    result.shape.push_back(x.shape[i] + a.starts[i] + a.stops[i]);
  }
  return result;
}

Expected<TensorType> infer_view(const TensorType& x, const Attributes& a) {
  if (a.map.indices.size() != x.shape.size())
    return rank_mismatch("one index expression", a.map.indices.size(), x);
  const Shape& extents = a.shape;
  int rank = static_cast<int>(extents.size());
  auto check_axes = [&](const IndexExpr& e) {
    struct Walk {
      static bool ok(const IndexExpr& e, int rank) {
        switch (e.kind()) {
          case IndexExpr::Kind::kConst:
            return true;
          case IndexExpr::Kind::kAxis:
            return e.axis_index() < rank;
          case IndexExpr::Kind::kAdd:
            return ok(e.lhs(), rank) && ok(e.rhs(), rank);
          default:
            return ok(e.lhs(), rank);
        }
      }
    };
    return Walk::ok(e, rank);
  };
  for (const IndexExpr& e : a.map.indices)
    if (!check_axes(e))
      return invalid_input("expected axes below " + std::to_string(rank) + ", found " + to_string(e));
  for (const IndexGuard& g : a.map.guards)
    if (!check_axes(g.expr))
      return invalid_input("expected axes below " + std::to_string(rank) + ", found " + to_string(g.expr));
  bool empty = std::find(extents.begin(), extents.end(), Dim(0)) != extents.end();
  if (a.map.guards.empty() && !empty)
    for (size_t i = 0; i < a.map.indices.size(); ++i) {
      IndexRange r = range_of(a.map.indices[i], extents);
      if (always_lt(r.lo, 0) || always_le(x.shape[i], r.hi))
        return invalid_input("expected indices within dim " + std::to_string(i) + " of " + to_string(x) +
                             ", found " + to_string(a.map.indices[i]) + " in " + to_string(r.lo) + ".." +
                             to_string(r.hi));
    }
  return TensorType{x.dtype, a.shape};
}

}  // namespace

Expected<TensorType> infer_movement(OpKind op, const Types& inputs, const Attributes& a) {
  const TensorType& x = inputs[0];
  switch (op) {
    case OpKind::k_reshape:
      return infer_reshape(x, a);
    case OpKind::k_permute:
      return infer_permute(x, a);
    case OpKind::k_expand:
      return infer_expand(x, a);
    case OpKind::k_slice:
      return infer_slice(x, a);
    case OpKind::k_flip:
      return infer_flip(x, a);
    case OpKind::k_pad:
      return infer_pad(x, a);
    case OpKind::k_view:
      return infer_view(x, a);
    default:
      return x;
  }
}

}  // namespace ops

namespace {

using Exprs = std::vector<IndexExpr>;

Exprs axes_of(size_t rank) {
  Exprs axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(IndexExpr::axis(static_cast<int>(i)));
  return axes;
}

// Row-major linear index split into the input's dims. Runs of dims with equal products on both sides are
// handled on their own, so that only dims which really merge or split get a floordiv or mod.
Exprs reshape_indices(const Shape& in, const Shape& out) {
  Exprs indices(in.size(), IndexExpr(0));
  size_t i = 0, o = 0;
  while (i < in.size() || o < out.size()) {
    Dim pi = i < in.size() ? in[i] : Dim(1), po = o < out.size() ? out[o] : Dim(1);
    size_t i_end = i < in.size() ? i + 1 : i, o_end = o < out.size() ? o + 1 : o;
    while (!(pi == po) && (i_end < in.size() || o_end < out.size())) {
      // The side that is a factor of the other grows; where neither is, the one that looks smaller.
      bool grow_in = o_end == out.size() ||
                     (i_end < in.size() &&
                      (divide_exactly(po, pi) || (!divide_exactly(pi, po) && pi.estimate() < po.estimate())));
      if (grow_in)
        pi = pi * in[i_end++];
      else
        po = po * out[o_end++];
    }
    IndexExpr linear = 0;
    for (size_t k = o; k < o_end; ++k) linear = linear * out[k] + IndexExpr::axis(static_cast<int>(k));
    Dim stride = 1;
    for (size_t k = i_end; k-- > i;) {
      IndexExpr e = floordiv(linear, stride);
      indices[k] = k == i ? e : floormod(e, in[k]);
      stride = stride * in[k];
    }
    i = i_end;
    o = o_end;
  }
  return indices;
}

// Source index of a padded dim at position p = axis - before.
IndexExpr pad_index(PadMode mode, const IndexExpr& p, const Dim& size) {
  if (mode == PadMode::kConstant) return p;
  if (mode == PadMode::kWrap) return floormod(p, size);
  QUERNEL_UNREACHABLE("edge and reflect padding have no index map");
}

}  // namespace

bool has_index_map(const Node& node) {
  if (!is_movement(node.op)) return false;
  return node.op != OpKind::k_pad || node.attributes.mode == PadMode::kConstant ||
         node.attributes.mode == PadMode::kWrap;
}

IndexMap index_map_of(const Graph& graph, const Node& node) {
  QUERNEL_ASSERT(has_index_map(node));
  const Attributes& a = node.attributes;
  const Shape &in = graph.shape(node.inputs[0]), &out = graph.shape(node.output);
  IndexMap map;
  map.indices = axes_of(in.size());
  auto empty = [](const Shape& dims) { return std::find(dims.begin(), dims.end(), Dim(0)) != dims.end(); };
  switch (node.op) {
    case OpKind::k_reshape:
      map.indices = empty(in) ? Exprs(in.size(), IndexExpr(0)) : reshape_indices(in, out);
      for (IndexExpr& e : map.indices)
        if (!empty(out)) e = simplify(e, out);
      break;
    case OpKind::k_permute:
      for (size_t i = 0; i < in.size(); ++i) map.indices[a.ints[i]] = IndexExpr::axis(static_cast<int>(i));
      break;
    case OpKind::k_expand:
      for (size_t i = 0; i < in.size(); ++i)
        if (in[i] == Dim(1)) map.indices[i] = 0;
      break;
    case OpKind::k_slice:
      for (size_t i = 0; i < in.size(); ++i) map.indices[i] = map.indices[i] * a.steps[i] + a.starts[i];
      break;
    case OpKind::k_flip:
      for (int64_t axis : a.ints) map.indices[axis] = map.indices[axis] * -1 + (in[axis] - 1);
      break;
    case OpKind::k_pad:
      for (size_t i = 0; i < in.size(); ++i) {
        const Dim &before = a.starts[i], &after = a.stops[i];
        if (before == Dim(0) && after == Dim(0)) continue;
        IndexExpr p = map.indices[i] + (Dim(0) - before);
        map.indices[i] = pad_index(a.mode, p, in[i]);
        if (a.mode == PadMode::kConstant) map.guards.push_back({p, 0, in[i]});
      }
      break;
    case OpKind::k_view:
      map = a.map;
      break;
    default:
      break;
  }
  return map;
}

IndexMap compose(const IndexMap& inner, const IndexMap& outer, const Shape& extents) {
  IndexMap result;
  bool simple = std::find(extents.begin(), extents.end(), Dim(0)) == extents.end();
  auto through = [&](const IndexExpr& e) {
    IndexExpr r = substitute(e, outer.indices);
    return simple ? simplify(r, extents) : r;
  };
  for (const IndexExpr& e : inner.indices) result.indices.push_back(through(e));
  result.guards = outer.guards;
  for (const IndexGuard& g : inner.guards) {
    IndexGuard guard{through(g.expr), g.lo, g.hi};
    if (simple) {
      IndexRange r = range_of(guard.expr, extents);
      if (always_le(guard.lo, r.lo) && always_lt(r.hi, guard.hi)) continue;  // always holds
    }
    result.guards.push_back(guard);
  }
  return result;
}

}  // namespace quernel
