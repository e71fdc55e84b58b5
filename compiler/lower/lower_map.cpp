// Elementwise groups and cat copies: every element of the iteration space once.
#include <algorithm>
#include <utility>

#include "lower/loop_nest.h"
#include "lower/transpose_tiles.h"
#include "schedule/plans/plan_loops.h"

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;

// One loop nest that stores, for every point of the plan's dims, what `emit` emits.
Stmt map_nest(Context& context, const schedule::MapPlan& plan,
              const std::function<void(Evaluator&, const std::vector<IndexExpr>&)>& emit) {
  const Shape& extents = plan.loops.extents;
  const std::vector<IndexExpr>& indices = plan.loops.indices[0];
  const int vector_axis = plan.loops.vector_axis, lanes = plan.loops.lanes;
  const int64_t target_work = plan.workgroups ? context.group.work.group_work : Target::kAllWork;
  if (plan.tile_axis >= 0)
    return transposed_nest(context, plan, target_work, [&](Evaluator& e) { emit(e, indices); });
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
    for (const IndexExpr& index : indices) at.push_back(substitute(index, shifted));
    emit(e, at);
    return loop::block(std::move(e.statements));
  };
  auto point = [&](const std::vector<Expr>& positions, Expr v) {
    return point_from(positions, 0, extents[vector_axis], v);
  };
  if (const int64_t begin = plan.inner_begin, end = plan.inner_end; begin < end)
    return outer_loops(context, outer, inner.value(), target_work, [&](const std::vector<Expr>& positions) {
      std::vector<Stmt> parts;
      for (auto [from, to] : {std::pair{int64_t{0}, begin}, {begin, end}, {end, inner.value()}})
        if (from < to)
          parts.push_back(vector_loop("v", index(to - from), lanes, context.target,
                                      [&](Expr v) { return point_from(positions, from, to - from, v); }));
      return loop::block(std::move(parts));
    });
  if (plan.loops.part == 0)
    return outer_loops(context, outer, std::max<int64_t>(inner.estimate(), 1), target_work,
                       [&](const std::vector<Expr>& positions) {
                         return vector_loop("v", context.symbols(inner), lanes, context.target,
                                            [&](Expr v) { return point(positions, v); });
                       });
  const int64_t chunk = plan.loops.part;
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

// A value of packed dtype is written byte by byte, so that no two steps write the same one; the half byte
// that may be left over comes last.
void lower_packed_map(Context& context) {
  ValueId v = context.group.outputs[0];
  const Shape& dims = context.graph().shape(v);
  Dim count = element_count(dims), pairs = floordiv(count, 2);
  loop::Buffer out = context.buffers.writes.at(v);
  std::vector<Stmt> parts;
  if (!(pairs == Dim(0)))
    parts.push_back(
        map_nest(context, context.group.maps[0], [&](Evaluator& e, const std::vector<IndexExpr>& at) {
          IndexExpr first = at[0] * 2;
          Expr pair = e.packed_pair(v, schedule::unflatten(first, dims, e.extents()),
                                    schedule::unflatten(first + 1, dims, e.extents()));
          e.statements.push_back(loop::store(out, e.expression(at[0]), pair));
        }));
  if (Dim odd = floormod(count, 2); !(odd == Dim(0))) {
    Evaluator e = context.evaluator();
    Expr last = e.packed_element(v, schedule::unflatten(IndexExpr(count - 1), dims, {}));
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
  context.kernel.body =
      map_nest(context, context.group.maps[0], [&](Evaluator& e, const std::vector<IndexExpr>& at) {
        std::vector<Expr> values;
        for (ValueId v : context.group.outputs) values.push_back(e.evaluate(v, at));
        for (size_t i = 0; i < values.size(); ++i) e.store(context.group.outputs[i], at, values[i]);
      });
}

void lower_cat(Context& context) {
  const Graph& g = context.graph();
  const Node& cat = g.nodes[context.group.anchor];
  size_t axis = static_cast<size_t>(cat.attributes.ints[0]);
  std::vector<GridPart> parts;
  for (size_t n = 0; n < context.group.copied.size(); ++n) {
    const int i = context.group.copied[n];
    ValueId x = cat.inputs[i];
    Dim start = 0;
    for (int k = 0; k < i; ++k) start += g.shape(cat.inputs[k])[axis];
    if (element_count(g.shape(x)) == Dim(0)) continue;
    parts.push_back(take_grid(context, map_nest(context, context.group.maps[n],
                                                [&](Evaluator& e, const std::vector<IndexExpr>& at) {
                                                  Expr value = e.evaluate(x, at);
                                                  std::vector<IndexExpr> shifted = at;
                                                  shifted[axis] = shifted[axis] + start;
                                                  e.store(cat.output, shifted, value);
                                                })));
  }
  context.kernel.body = join_grids(context, std::move(parts));
}

}  // namespace quernel::lower
