#include "lower/transpose_tiles.h"

#include <unordered_set>

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

// Transposes the square in `tile`, lanes x lanes elements by rows.
void transpose(std::vector<Stmt>& body, const loop::Buffer& tile, int lanes) {
  auto row = [&](int i) { return loop::ramp(index(int64_t{i} * lanes), 1, lanes); };
  std::vector<Expr> rows;
  for (int i = 0; i < lanes; ++i) rows.push_back(loop::load(tile, row(i), lanes));
  rows = turned_round(body, rows);
  for (int i = 0; i < lanes; ++i) body.push_back(loop::store(tile, row(i), rows[i]));
}

// Instructions that computing it takes, roughly; index arithmetic aside.
int weight(const Expr& e, std::unordered_set<const loop::ExprNode*>& seen) {
  constexpr int kFunction = 20;
  if (!e || !seen.insert(e.get()).second) return 0;
  bool is_function =
      (e->kind == loop::ExprKind::kUnary && e->unary >= UnaryOp::k_exp && e->unary <= UnaryOp::k_erf) ||
      (e->kind == loop::ExprKind::kBinary && e->binary == BinaryOp::k_pow);
  int sum = is_function ? kFunction : e->type.dtype == DType::kI64 || e->args.empty() ? 0 : 1;
  for (const Expr& arg : e->args) sum += weight(arg, seen);
  return sum;
}

class Nest {
 public:
  Nest(Context& context, const schedule::MapPlan& plan, const EmitPoint& emit)
      : c_(context),
        extents_(plan.loops.extents),
        v_(plan.loops.vector_axis),
        u_(plan.tile_axis),
        lanes_(plan.loops.lanes),
        emit_(emit),
        turned_(plan.transposed),
        in_registers_(lanes_ * point_weight() <= kUnrolledInstructions) {}

  Stmt nest(int64_t target_work) {
    Shape outer;
    std::vector<int> outer_axes;
    for (size_t i = 0; i < extents_.size(); ++i)
      if (static_cast<int>(i) != u_ && static_cast<int>(i) != v_)
        outer.push_back(extents_[i]), outer_axes.push_back(static_cast<int>(i));
    // Tiles that overlap the one before stay in its workgroup.
    for (int axis : {v_, u_})
      if (whole(axis)) outer.push_back(tiles(axis)), outer_axes.push_back(axis);
    int64_t work = int64_t{lanes_} * lanes_;
    for (int axis : {v_, u_})
      if (!whole(axis)) work *= tiles(axis);
    return outer_loops(c_, outer, work, target_work, [&](const std::vector<Expr>& at) {
      std::vector<Expr> positions(extents_.size());
      for (size_t i = 0; i < outer_axes.size(); ++i) positions[outer_axes[i]] = at[i];
      return over_tiles(v_, positions,
                        [&] { return over_tiles(u_, positions, [&] { return tile(positions); }); });
    });
  }

 private:
  static constexpr int kUnrolledInstructions = 128;

  int point_weight() const {
    DryNames names;
    Evaluator e = c_.dry_evaluator();
    for (size_t i = 0; i < extents_.size(); ++i)
      e.axes.push_back({loop::var_ref(index_var("a" + std::to_string(i))), extents_[i]});
    emit_(e);
    std::unordered_set<const loop::ExprNode*> seen;
    int sum = 0;
    for (const Stmt& s : e.statements) sum += weight(s->value, seen);
    return sum;
  }
  int64_t tiles(int axis) const { return (extents_[axis].value() + lanes_ - 1) / lanes_; }
  bool whole(int axis) const { return extents_[axis].value() % lanes_ == 0; }

  // Turns the number of a tile at positions[axis] into its first element; loops over the tiles first where
  // outer loops have not. The last tile begins early where the extent is no multiple.
  Stmt over_tiles(int axis, std::vector<Expr>& positions, const std::function<Stmt()>& body) {
    if (whole(axis)) {
      positions[axis] = positions[axis] * index(lanes_);
      return body();
    }
    loop::Var t = index_var("tile"), first = index_var("first");
    positions[axis] = loop::var_ref(first);
    Expr begin = loop::binary(BinaryOp::k_min, loop::var_ref(t) * index(lanes_),
                              index(extents_[axis].value() - lanes_));
    Stmt inner = body();
    return loop::for_loop(t, index(tiles(axis)), AxisKind::kSerial,
                          loop::block({loop::let(first, begin), inner}));
  }

  // A loop over `serial_axis` around a vector loop over `lane_axis`, both within the tile at `positions`.
  Stmt within(const std::vector<Expr>& positions, int serial_axis, int lane_axis,
              const std::function<Stmt(Evaluator&, Expr slot)>& body) {
    loop::Var i = index_var("i"), l = index_var("l");
    Evaluator e = c_.evaluator();
    for (size_t axis = 0; axis < extents_.size(); ++axis) {
      Expr at = positions[axis];
      if (static_cast<int>(axis) == serial_axis) at = at + loop::var_ref(i);
      if (static_cast<int>(axis) == lane_axis) at = at + loop::var_ref(l);
      e.axes.push_back({at, extents_[axis]});
    }
    Stmt point = body(e, loop::var_ref(i) * index(lanes_) + loop::var_ref(l));
    return loop::for_loop(i, index(lanes_), in_registers_ ? AxisKind::kUnrolled : AxisKind::kSerial,
                          loop::for_loop(l, index(lanes_), AxisKind::kVector, point));
  }

  Stmt tile(const std::vector<Expr>& positions) {
    std::vector<Stmt> body;
    std::vector<loop::Buffer> squares;
    for (const schedule::ElementLoad& load : turned_) {
      loop::Buffer square = local_buffer("square", c_.graph().dtype(load.value), int64_t{lanes_} * lanes_,
                                         in_registers_ ? loop::Scope::kRegister : loop::Scope::kShared);
      squares.push_back(square);
      body.push_back(loop::alloc(square));
      // The load alone, in vectors along the axis that suits it.
      body.push_back(within(positions, v_, u_, [&](Evaluator& e, Expr slot) {
        Expr wanted;
        e.on_load = [&](ValueId v, const IndexExpr& offset, Expr loaded) {
          if (v == load.value && offset == load.offset) wanted = loaded;
          return loaded;
        };
        emit_(e);
        std::erase_if(e.statements, [](const Stmt& s) { return s->kind == loop::StmtKind::kStore; });
        e.statements.push_back(loop::store(square, slot, wanted));
        return loop::block(std::move(e.statements));
      }));
      transpose(body, square, lanes_);
    }
    body.push_back(within(positions, u_, v_, [&](Evaluator& e, Expr slot) {
      e.on_load = [&](ValueId v, const IndexExpr& offset, Expr loaded) {
        for (size_t i = 0; i < turned_.size(); ++i)
          if (v == turned_[i].value && offset == turned_[i].offset) return loop::load(squares[i], slot);
        return loaded;
      };
      emit_(e);
      return loop::block(std::move(e.statements));
    }));
    return loop::block(std::move(body));
  }

  Context& c_;
  const Shape& extents_;
  int v_, u_, lanes_;
  const EmitPoint& emit_;
  const std::vector<schedule::ElementLoad>& turned_;
  // The tile, from its loads to its stores: what is computed in between is little.
  bool in_registers_;
};

}  // namespace

// log2(rows) times, row i and row i + rows / 2 are interleaved to rows 2 i and 2 i + 1. Each time moves the
// highest bit of the row number to the lowest place of the column number, and that one's highest to the row
// number.
std::vector<Expr> turned_round(std::vector<Stmt>& body, const std::vector<Expr>& rows) {
  auto name = [&](Expr value) {
    loop::Var var = fresh_var("row", value->type);
    body.push_back(loop::let(var, value));
    return loop::var_ref(var);
  };
  std::vector<Expr> result;
  for (const Expr& row : rows) result.push_back(name(row));
  size_t count = rows.size();
  for (size_t n = 1; n < count; n *= 2) {
    std::vector<Expr> next;
    for (size_t i = 0; i < count / 2; ++i)
      for (bool upper : {false, true})
        next.push_back(name(loop::interleave(upper, result[i], result[i + count / 2])));
    result = std::move(next);
  }
  return result;
}

Stmt transposed_nest(Context& context, const schedule::MapPlan& plan, int64_t target_work,
                     const EmitPoint& emit) {
  return Nest(context, plan, emit).nest(target_work);
}

}  // namespace quernel::lower
