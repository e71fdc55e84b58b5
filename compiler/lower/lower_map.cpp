// Elementwise groups and cat copies: every element of the iteration space once, vectors along the axis that
// most accesses walk contiguously.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lower/loop_nest.h"
#include "lower/transpose_tiles.h"

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;

// Share of full speed at which `accesses` run in vectors along `axis`.
double score(const std::vector<IndexExpr>& accesses, const Shape& extents, int axis, int lanes) {
  double n = static_cast<double>(std::max<int64_t>(extents[axis].estimate(), 1));
  double filled = n / (std::ceil(n / lanes) * lanes);
  double sum = 0;
  for (const IndexExpr& access : accesses) {
    std::optional<Dim> stride = stride_along(access, axis, static_cast<int>(extents.size()));
    sum += stride && (*stride == Dim(0) || *stride == Dim(1)) ? 1.0 : 0.12;
  }
  return filled * sum / std::max<double>(1, static_cast<double>(accesses.size()));
}

// Whether what is accessed but not loaded is contiguous along the axis.
bool stores_contiguously(const std::vector<IndexExpr>& accesses, const std::vector<Load>& loads,
                         const Shape& extents, int axis) {
  return std::all_of(accesses.begin(), accesses.end(), [&](const IndexExpr& access) {
    if (std::any_of(loads.begin(), loads.end(), [&](const Load& load) { return load.offset == access; }))
      return true;
    std::optional<Dim> stride = stride_along(access, axis, static_cast<int>(extents.size()));
    return stride && *stride == Dim(1);
  });
}

// The positions of an axis of known extent that all of `unpadded` that depend on it alone hold for; begin ==
// end where none depends on it, or none holds.
std::pair<int64_t, int64_t> inside(const std::vector<IndexGuard>& unpadded, const Shape& extents, int axis) {
  if (!extents[axis].is_const()) return {0, 0};
  int64_t begin = 0, end = extents[axis].value();
  for (const IndexGuard& guard : unpadded) {
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

// One loop nest that stores, for every point of `dims`, what `emit` emits.
Stmt map_nest(Context& context, const Shape& dims, bool workgroups,
              const std::function<void(Evaluator&, const std::vector<IndexExpr>&)>& emit, DType widest) {
  std::vector<std::vector<IndexExpr>> indices(1);
  for (size_t d = 0; d < dims.size(); ++d) indices[0].push_back(IndexExpr::axis(static_cast<int>(d)));
  std::vector<IndexExpr> accesses;
  std::vector<Load> loads;
  std::vector<IndexGuard> unpadded;
  auto probe = [&](const std::vector<std::vector<IndexExpr>>& at, const Shape& extents) {
    DryNames names;
    Evaluator dry = context.dry_evaluator();
    for (size_t i = 0; i < extents.size(); ++i)
      dry.axes.push_back({loop::var_ref(index_var("a" + std::to_string(i))), extents[i]});
    loads.clear();
    dry.on_load = [&](ValueId v, const IndexExpr& offset, Expr loaded) {
      loads.push_back({v, offset});
      return loaded;
    };
    emit(dry, at[0]);
    accesses = dry.accesses;
    unpadded = dry.unpadded;
    std::vector<IndexExpr> all = dry.accesses;
    all.insert(all.end(), dry.guards.begin(), dry.guards.end());
    for (const IndexGuard& guard : unpadded)
      if (!context.target.lanes_are_invocations()) all.push_back(guard.expr);
    return all;
  };
  std::vector<int> classes;
  int lanes = context.target.lanes(element_size(widest));
  Shape extents = merge_axes(dims, std::vector<int>(dims.size(), 0), indices, classes, probe);
  std::vector<IndexExpr> merged = probe(indices, extents);
  // Invocations of a GPU, one for each element, find their digits themselves.
  if (!context.target.lanes_are_invocations())
    extents = split_axes(extents, indices, std::max(lanes, 2), std::move(merged), probe);
  if (extents.empty()) {
    extents = {1};
  }
  const int64_t work = context.group.work.group_work;
  int vector_axis = static_cast<int>(extents.size()) - 1;
  double best = score(accesses, extents, vector_axis, lanes);
  for (int i = vector_axis - 1; i >= 0; --i)
    if (double s = score(accesses, extents, i, lanes); s > best * 1.3) best = s, vector_axis = i;

  // Results are stored along their last axis where tiles are turned round, also if that one is short.
  int stored_axis = static_cast<int>(extents.size()) - 1;
  if (stores_contiguously(accesses, loads, extents, vector_axis)) stored_axis = vector_axis;
  if (!context.target.lanes_are_invocations() && stores_contiguously(accesses, loads, extents, stored_axis)) {
    EmitPoint emit_point = [&](Evaluator& e) { emit(e, indices[0]); };
    Stmt tiles = transposed_nest(context, extents, stored_axis, lanes, loads,
                                 workgroups ? work : kNoWorkgroups, emit_point);
    if (tiles) return tiles;
  }
  Shape outer;
  for (int i = 0; i < static_cast<int>(extents.size()); ++i)
    if (i != vector_axis) outer.push_back(extents[i]);
  const Dim& inner = extents[vector_axis];
  auto point_from = [&](const std::vector<Expr>& positions, int64_t first, const Dim& extent, Expr v) {
    Evaluator e = context.evaluator();
    std::vector<IndexExpr> shifted, at;
    size_t next = 0;
    for (int i = 0; i < static_cast<int>(extents.size()); ++i) {
      bool along = i == vector_axis;
      e.axes.push_back({along ? v : positions[next++], along ? extent : extents[i]});
      shifted.push_back(IndexExpr::axis(i) + (along ? first : 0));
    }
    for (const IndexExpr& index : indices[0]) at.push_back(substitute(index, shifted));
    emit(e, at);
    return loop::block(std::move(e.statements));
  };
  auto point = [&](const std::vector<Expr>& positions, Expr v) {
    return point_from(positions, 0, extents[vector_axis], v);
  };
  // A long vector axis is split so that workgroups get a fair size.
  bool split = workgroups && !always_le(inner, 2 * work);
  // What padding mirrors or repeats are borders with loops of their own, so that the rest is contiguous.
  if (auto [begin, end] = inside(unpadded, extents, vector_axis);
      !split && begin < end && !context.target.lanes_are_invocations())
    return outer_loops(
        context, outer, inner.value(), workgroups ? work : kNoWorkgroups,
        [&, begin = begin, end = end](const std::vector<Expr>& positions) {
          std::vector<Stmt> parts;
          for (auto [from, to] : {std::pair{int64_t{0}, begin}, {begin, end}, {end, inner.value()}})
            if (from < to)
              parts.push_back(vector_loop("v", index(to - from), lanes, context.target,
                                          [&](Expr v) { return point_from(positions, from, to - from, v); }));
          return loop::block(std::move(parts));
        });
  if (!split)
    return outer_loops(context, outer, std::max<int64_t>(inner.estimate(), 1),
                       workgroups ? work : kNoWorkgroups, [&](const std::vector<Expr>& positions) {
                         return vector_loop("v", context.symbols(inner), lanes, context.target,
                                            [&](Expr v) { return point(positions, v); });
                       });
  const int64_t chunk = work;
  if (!inner.is_const()) {
    outer.push_back(ceildiv(inner, chunk));
    int64_t most = std::min(chunk, std::max<int64_t>(inner.estimate(), 1));
    return outer_loops(context, outer, most, chunk, [&](const std::vector<Expr>& positions) {
      Expr first = positions.back() * index(chunk);
      Expr count = loop::binary(BinaryOp::k_min, index(chunk), context.symbols(inner) - first);
      loop::Var n = index_var("n");
      Stmt loop = vector_loop("v", loop::var_ref(n), lanes, context.target,
                              [&](Expr v) { return point(positions, first + v); });
      return loop::block({loop::let(n, count), loop});
    });
  }
  outer.push_back(inner.value() / chunk);
  int64_t rest = inner.value() % chunk;
  return outer_loops(context, outer, chunk, chunk, [&](const std::vector<Expr>& positions) {
    Expr part = positions.back();
    Stmt body = vector_loop("v", index(chunk), lanes, context.target,
                            [&](Expr v) { return point(positions, part * index(chunk) + v); });
    if (rest == 0) return body;
    // The last workgroup of a row also takes what is left over.
    Stmt tail = vector_loop("r", index(rest), lanes, context.target,
                            [&](Expr v) { return point(positions, index(inner.value() - rest) + v); });
    Expr last = loop::binary(BinaryOp::k_eq, part, index(inner.value() / chunk - 1));
    return loop::block({body, loop::if_then(last, tail)});
  });
}

// The indices of element number `flat`.
std::vector<IndexExpr> unflatten(const IndexExpr& flat, const Shape& dims, const Shape& extents) {
  std::vector<IndexExpr> indices(dims.size(), IndexExpr(0));
  Dim stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    if (dims[d] == Dim(1)) continue;
    indices[d] = simplify(floormod(floordiv(flat, stride), dims[d]), extents);
  }
  return indices;
}

// A value of packed dtype is written byte by byte, so that no two steps write the same one; the half byte
// that may be left over comes last.
void lower_packed_map(Context& context) {
  ValueId v = context.group.outputs[0];
  const Shape& dims = context.graph().shape(v);
  Dim count = element_count(dims), pairs = floordiv(count, 2);
  loop::Buffer out = context.buffers.writes.at(v);
  std::vector<Stmt> parts;
  if (!(pairs == Dim(0)))
    parts.push_back(map_nest(
        context, {pairs}, true,
        [&](Evaluator& e, const std::vector<IndexExpr>& at) {
          IndexExpr first = at[0] * 2;
          Expr pair =
              e.packed_pair(v, unflatten(first, dims, e.extents()), unflatten(first + 1, dims, e.extents()));
          e.accesses.push_back(at[0]);
          e.statements.push_back(loop::store(out, e.expression(at[0]), pair));
        },
        widest_dtype(context)));
  if (Dim odd = floormod(count, 2); !(odd == Dim(0))) {
    Evaluator e = context.evaluator();
    Expr last = e.packed_element(v, unflatten(IndexExpr(count - 1), dims, {}));
    e.statements.push_back(loop::store(out, context.symbols(pairs), last));
    Stmt tail = loop::block(std::move(e.statements));
    if (!odd.is_const())
      tail = loop::if_then(loop::binary(BinaryOp::k_eq, context.symbols(odd), index(1)), tail);
    for (const loop::GridAxis& axis : context.kernel.grid)
      tail = loop::if_then(loop::binary(BinaryOp::k_eq, loop::var_ref(axis.var), index(0)), tail);
    parts.push_back(tail);
  }
  context.kernel.body = loop::block(std::move(parts));
}

}  // namespace

void lower_map(Context& context) {
  const Graph& g = context.graph();
  if (is_packed(g.dtype(context.group.outputs[0]))) return lower_packed_map(context);
  context.kernel.body = map_nest(
      context, g.shape(context.group.outputs[0]), true,
      [&](Evaluator& e, const std::vector<IndexExpr>& at) {
        std::vector<Expr> values;
        for (ValueId v : context.group.outputs) values.push_back(e.evaluate(v, at));
        for (size_t i = 0; i < values.size(); ++i) e.store(context.group.outputs[i], at, values[i]);
      },
      widest_dtype(context));
}

void lower_cat(Context& context) {
  const Graph& g = context.graph();
  const Node& cat = g.nodes[context.group.anchor];
  size_t axis = static_cast<size_t>(cat.attributes.ints[0]);
  Dim elements = 0;
  for (int i : context.group.copied) elements += element_count(g.shape(cat.inputs[i]));
  // One operand has the kernel's grid. The workgroups of several are numbered one operand after the other,
  // but few elements are copied by one workgroup, which a branch for each operand would not be worth.
  bool alone = context.group.copied.size() == 1;
  bool shared = !alone && !always_le(elements, 2 * context.group.work.group_work);
  std::vector<GridPart> parts;
  for (int i : context.group.copied) {
    ValueId x = cat.inputs[i];
    Dim start = 0;
    for (int k = 0; k < i; ++k) start += g.shape(cat.inputs[k])[axis];
    if (element_count(g.shape(x)) == Dim(0)) continue;
    parts.push_back(take_grid(context, map_nest(
                                           context, g.shape(x), alone || shared,
                                           [&](Evaluator& e, const std::vector<IndexExpr>& at) {
                                             Expr value = e.evaluate(x, at);
                                             std::vector<IndexExpr> shifted = at;
                                             shifted[axis] = shifted[axis] + start;
                                             e.store(cat.output, shifted, value);
                                           },
                                           widest_dtype(context))));
  }
  context.kernel.body = join_grids(context, std::move(parts));
}

}  // namespace quernel::lower
