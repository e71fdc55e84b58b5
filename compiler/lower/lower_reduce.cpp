// Reductions, along the axes of their plans: vectors along an axis of results, or along a reduced one with
// several vector accumulators that are folded at the end; or windows in two steps, by way of a row of positions
// that neighbouring windows share. The epilogue runs on the result while it is in a register.
#include <algorithm>
#include <optional>
#include <utility>

#include "lower/lane_reduction.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

class ReduceLowering {
 public:
  explicit ReduceLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        node_(g_.nodes[context.group.anchor]),
        x_(node_.inputs[0]),
        reducer_(reducer_of(node_, g_.dtype(x_))),
        is_arg_(node_.op == OpKind::k_reduce_argmax || node_.op == OpKind::k_reduce_argmin),
        plan_(context.group.reduce),
        extents_(plan_.loops.extents),
        classes_(plan_.loops.classes),
        indices_(plan_.loops.indices),
        vector_axis_(plan_.loops.vector_axis),
        window_(plan_.window) {}

  void run() {
    const int lanes = plan_.loops.lanes;
    Shape outer;
    std::vector<int> outer_axes;
    Dim reduced = 1;
    for (int i = 0; i < count(); ++i) {
      if (classes_[i] == 1)
        reduced = reduced * extents_[i];
      else if (i != vector_axis_)
        outer.push_back(extents_[i]), outer_axes.push_back(i);
    }
    positions_.assign(extents_.size(), index(0));
    if (window_) return windows_by_rows(std::move(outer), outer_axes, lanes);
    bool along_output = vector_axis_ >= 0 && classes_[vector_axis_] == 0;
    int64_t inner = (reduced * (along_output ? extents_[vector_axis_] : Dim(1))).estimate();
    if (plan_.loops.part != 0)
      return c_.target.lanes_are_invocations()
                 ? workgroups_of_vectors(std::move(outer), outer_axes, reduced, lanes)
                 : workgroups_of_parts(std::move(outer), outer_axes, reduced, lanes);
    c_.kernel.body =
        outer_loops(c_, outer, inner, c_.group.work.group_work, [&](const std::vector<Expr>& at) {
          for (size_t i = 0; i < at.size(); ++i) positions_[outer_axes[i]] = at[i];
          if (along_output)
            return vector_loop("v", c_.symbols(extents_[vector_axis_]), lanes, c_.target, [&](Expr v) {
              positions_[vector_axis_] = v;
              return reduce_each();
            });
          return vector_axis_ >= 0 ? reduce_lanes(lanes) : reduce_each();
        });
  }

 private:
  // Results in vectors along window_->out: each row of positions is reduced along the other axes, then the
  // results take theirs from it. Short rows are taken several at a time, for what was just stored in pieces
  // is not there yet for loads across them.
  void windows_by_rows(Shape outer, const std::vector<int>& outer_axes, int lanes) {
    const schedule::WindowPlan& w = *window_;
    const Dim results = extents_[w.out], whole = (results - 1) * w.step + w.size;
    const int64_t most = w.results, pitch = w.positions(most), at_once = w.rows;
    if (at_once > 1) outer.back() = ceildiv(outer.back(), at_once);
    outer.push_back(ceildiv(results, most));
    int64_t inner = at_once;
    for (int i = 0; i < count(); ++i)
      if (classes_[i] == 1) inner *= extents_[i].estimate();
    c_.kernel.body =
        outer_loops(c_, outer, inner * most, c_.group.work.group_work, [&](const std::vector<Expr>& at) {
          for (size_t i = 0; i < outer_axes.size(); ++i) positions_[outer_axes[i]] = at[i];
          const Expr begin = at.back() * index(most);
          Expr here = floormod(results, most) == Dim(0) ? index(most)
                      : always_le(results, most)
                          ? c_.symbols(results)
                          : loop::binary(BinaryOp::k_min, c_.symbols(results) - begin, index(most));
          loop::Buffer row = local_buffer("row", reducer_.accumulator, at_once * pitch, loop::Scope::kShared);
          auto fill = [&](const Expr& first) {
            std::vector<Stmt> body;
            if (whole.is_const() && always_le(results, most)) {
              for (auto [from, to] :
                   {std::pair{int64_t{0}, w.begin}, {w.begin, w.end}, {w.end, whole.value()}})
                fill_row(row, first, from, to, lanes, body);
            } else {
              body.push_back(vector_loop(
                  "p", (here - index(1)) * index(w.step) + index(w.size), lanes, c_.target, [&](Expr p) {
                    return reduce_position(row, first + p, 0, begin * index(w.step) + p, whole);
                  }));
            }
            return loop::block(std::move(body));
          };
          if (at_once == 1)
            return loop::block(
                {loop::alloc(row), fill(index(0)), results_of(row, index(0), begin, here, lanes)});
          const int axis = outer_axes.back();
          const Expr first_row = positions_[axis] * index(at_once);
          auto each_row = [&](const std::function<Stmt(Expr)>& body) {
            const int64_t rows = extents_[axis].value();
            loop::Var r = index_var("r");
            positions_[axis] = first_row + loop::var_ref(r);
            Expr count = rows % at_once == 0
                             ? index(at_once)
                             : loop::binary(BinaryOp::k_min, index(at_once), index(rows) - first_row);
            return loop::for_loop(r, count, AxisKind::kSerial, body(loop::var_ref(r) * index(pitch)));
          };
          Stmt filled = each_row(fill);
          Stmt taken =
              each_row([&](const Expr& first) { return results_of(row, first, begin, here, lanes); });
          return loop::block({loop::alloc(row), filled, taken});
        });
  }

  // Positions [from, to) of the row that begins at `begin` of the buffer. Without masks, the last vector goes
  // over some positions again.
  void fill_row(const loop::Buffer& row, const Expr& begin, int64_t from, int64_t to, int lanes,
                std::vector<Stmt>& body) {
    auto stretch = [&](int64_t first, int64_t n) {
      if (n > 0)
        body.push_back(vector_loop("p", index(n), lanes, c_.target, [&](Expr p) {
          return reduce_position(row, begin + p + index(first), first, p, n);
        }));
    };
    int64_t n = to - from, rest = c_.target.has_masks || n < lanes ? 0 : n % lanes;
    stretch(from, n - rest);
    if (rest > 0) stretch(to - lanes, lanes);
  }

  // Element `slot` of the row: the position `at` of `extent` from `first` on along the window's axis, reduced
  // along all other axes.
  Stmt reduce_position(const loop::Buffer& row, const Expr& slot, int64_t first, const Expr& at,
                       const Dim& extent) {
    Shape extents = extents_;
    std::vector<IndexExpr> indices = indices_[0], shifted;
    for (int i = 0; i < count(); ++i) shifted.push_back(IndexExpr::axis(i));
    shifted[window_->in] = shifted[window_->in] + first;
    for (IndexExpr& e : indices_[0]) e = substitute(e, shifted);
    extents_[window_->out] = 1, extents_[window_->in] = extent;
    positions_[window_->out] = index(0), positions_[window_->in] = at;
    loop::Buffer acc = local_buffer("acc", reducer_.accumulator, 1, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(acc), loop::store(acc, index(0), reducer_.identity)};
    body.push_back(accumulate_all(window_->in, acc));
    body.push_back(loop::store(row, slot, loop::load(acc, index(0))));
    extents_ = std::move(extents);
    indices_[0] = std::move(indices);
    return loop::block(std::move(body));
  }

  // `here` results from `begin` on, of the row at `first_position` of the buffer. A vector reads the row
  // whole, as far as the last one would: only what is stored needs masks.
  Stmt results_of(const loop::Buffer& row, const Expr& first_position, const Expr& begin, const Expr& here,
                  int lanes) {
    const schedule::WindowPlan& w = *window_;
    auto result = [&](const Expr& position, bool all) {
      loop::Buffer acc = local_buffer("acc", reducer_.accumulator, 1, loop::Scope::kRegister);
      loop::Var k = index_var("k");
      Expr first = first_position + position * index(w.step);
      Stmt fold = loop::store(acc, index(0),
                              loop::binary(reducer_.op, loop::load(acc, index(0)),
                                           loop::load(row, first + index(1) + loop::var_ref(k))));
      std::vector<Stmt> body{loop::alloc(acc), loop::store(acc, index(0), loop::load(row, first))};
      if (w.size > 1)
        body.push_back(loop::for_loop(k, index(w.size - 1),
                                      w.size <= 9 ? AxisKind::kUnrolled : AxisKind::kReduction, fold));
      positions_[w.out] = begin + position;
      std::vector<Stmt> last;
      finish(loop::load(acc, index(0)), last);
      Stmt store = loop::block(std::move(last));
      body.push_back(all ? store : loop::if_then(loop::binary(BinaryOp::k_lt, position, here), store));
      return loop::block(std::move(body));
    };
    int64_t known = -1;
    bool even = loop::as_const_int(here, &known) && known % lanes == 0;
    if (even || !c_.target.has_masks)
      return vector_loop("v", here, lanes, c_.target, [&](Expr position) { return result(position, true); });
    loop::Var v = index_var("v"), l = index_var("v_lane");
    Expr vectors = loop::binary(BinaryOp::k_idiv, here + index(lanes - 1), index(lanes));
    int64_t count = -1;
    bool one = loop::as_const_int(vectors, &count) && count == 1;
    Expr position = (one ? index(0) : loop::var_ref(v) * index(lanes)) + loop::var_ref(l);
    Stmt vector = loop::for_loop(l, index(lanes), AxisKind::kVector, result(position, false));
    return one ? vector : loop::for_loop(v, vectors, AxisKind::kSerial, vector);
  }

  // A GPU has more workgroups than a processor has threads: the vectors along the output are shared out, too.
  void workgroups_of_vectors(Shape outer, const std::vector<int>& outer_axes, const Dim& reduced, int lanes) {
    const Dim& extent = extents_[vector_axis_];
    outer.push_back(ceildiv(extent, lanes));
    int64_t inner = (reduced * lanes).estimate();
    c_.kernel.body =
        outer_loops(c_, outer, inner, c_.group.work.group_work, [&](const std::vector<Expr>& at) {
          for (size_t i = 0; i < outer_axes.size(); ++i) positions_[outer_axes[i]] = at[i];
          loop::Var v = index_var("v");
          positions_[vector_axis_] = at.back() * index(lanes) + loop::var_ref(v);
          Stmt body = reduce_each();
          if (!(floormod(extent, lanes) == Dim(0)))
            body = loop::if_then(loop::binary(BinaryOp::k_lt, positions_[vector_axis_], c_.symbols(extent)),
                                 body);
          return loop::for_loop(v, index(lanes), loop::AxisKind::kVector, body);
        });
  }

  // Workgroups share long vectors of results.
  void workgroups_of_parts(Shape outer, const std::vector<int>& outer_axes, const Dim& reduced, int lanes) {
    const Dim& extent = extents_[vector_axis_];
    const int64_t part = plan_.loops.part;
    outer.push_back(ceildiv(extent, part));
    int64_t inner = (reduced * Dim(part)).estimate();
    c_.kernel.body =
        outer_loops(c_, outer, inner, c_.group.work.group_work, [&](const std::vector<Expr>& at) {
          for (size_t i = 0; i < outer_axes.size(); ++i) positions_[outer_axes[i]] = at[i];
          Expr first = at.back() * index(part);
          Expr here = floormod(extent, part) == Dim(0)
                          ? index(part)
                          : loop::binary(BinaryOp::k_min, index(part), c_.symbols(extent) - first);
          return vector_loop("v", here, lanes, c_.target, [&](Expr v) {
            positions_[vector_axis_] = first + v;
            return reduce_each();
          });
        });
  }

  int count() const { return static_cast<int>(extents_.size()); }

  Evaluator evaluator() {
    Evaluator e = c_.evaluator();
    for (int i = 0; i < count(); ++i) e.axes.push_back({positions_[i], extents_[i]});
    return e;
  }

  // The loops over reduced axes other than `skip`, the outermost first. Short ones are unrolled. Sets the
  // positions on these axes.
  std::vector<TermLoop> reduction_loops(int skip) {
    std::vector<TermLoop> loops;
    std::vector<Dim> extents;
    for (int i = 0; i < count(); ++i) {
      if (classes_[i] != 1 || i == skip) continue;
      if (extents_[i] == Dim(1)) {
        positions_[i] = index(0);
        continue;
      }
      loops.push_back({index_var("r" + std::to_string(i)), c_.symbols(extents_[i]), most(extents_[i])});
      extents.push_back(extents_[i]);
      positions_[i] = loop::var_ref(loops.back().var);
    }
    Dim copies = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      copies = copies * extents[i];
      if (copies.is_const() && copies.value() <= 9) loops[i].kind = AxisKind::kUnrolled;
    }
    return loops;
  }
  // Their turns.
  Dim turns(int skip) const {
    Dim product = 1;
    for (int i = 0; i < count(); ++i)
      if (classes_[i] == 1 && i != skip) product *= extents_[i];
    return product;
  }

  // All elements along reduced axes other than `skip`, one after another or in blocks, into `acc`.
  Stmt accumulate_all(int skip, const loop::Buffer& acc) {
    auto chain = [&] {
      std::vector<TermLoop> loops = reduction_loops(skip);
      Stmt stmt = accumulate(acc);
      for (size_t i = loops.size(); i-- > 0;)
        stmt = loop::for_loop(loops[i].var, loops[i].extent, loops[i].kind, stmt);
      return stmt;
    };
    const Dim terms = turns(skip);
    if (!rounds_sums(reducer_.op, reducer_.accumulator) || most(terms) <= kLongestChain) return chain();
    return chain_or_blocks(c_.symbols(terms), kLongestChain, chain, [&] {
      BlockSums sums(reducer_.accumulator, 1, kBlockTerms,
                     [](const std::function<Stmt(Expr)>& body) { return body(index(0)); });
      std::vector<TermLoop> loops = reduction_loops(skip);
      return sums.sum(loops, 1, acc, [&](const loop::Buffer& partial) { return accumulate(partial); });
    });
  }

  // One result per call (per lane when inside a vector loop).
  Stmt reduce_each() {
    loop::Buffer acc = local_buffer("acc", reducer_.accumulator, 1, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(acc)};
    if (is_arg_) return reduce_arg(acc, std::move(body));
    body.push_back(loop::store(acc, index(0), reducer_.identity));
    body.push_back(accumulate_all(-1, acc));
    finish(loop::load(acc, index(0)), body);
    return loop::block(std::move(body));
  }

  // The operand at the present positions into `acc`.
  Stmt accumulate(const loop::Buffer& acc) {
    Evaluator e = evaluator();
    Expr value = loop::cast(reducer_.accumulator, e.evaluate(x_, indices_[0]));
    e.statements.push_back(
        loop::store(acc, index(0), loop::binary(reducer_.op, loop::load(acc, index(0)), value)));
    return loop::block(std::move(e.statements));
  }

  Stmt reduce_arg(const loop::Buffer& best, std::vector<Stmt> body) {
    loop::Buffer where = local_buffer("where", DType::kI64, 1, loop::Scope::kRegister);
    body.push_back(loop::alloc(where));
    int axis = -1;
    for (int i = 0; i < count(); ++i)
      if (classes_[i] == 1) axis = i;
    auto step = [&](Expr position, bool first) {
      if (axis >= 0) positions_[axis] = position;
      Evaluator e = evaluator();
      Expr value = e.evaluate(x_, indices_[0]);
      if (first) {
        e.statements.push_back(loop::store(best, index(0), value));
        e.statements.push_back(loop::store(where, index(0), index(0)));
        return loop::block(std::move(e.statements));
      }
      bool is_max = node_.op == OpKind::k_reduce_argmax;
      BinaryOp compare = node_.attributes.select_last ? (is_max ? BinaryOp::k_ge : BinaryOp::k_le)
                                                      : (is_max ? BinaryOp::k_gt : BinaryOp::k_lt);
      Expr old = loop::load(best, index(0));
      Expr better = loop::binary(compare, value, old);
      if (is_float(g_.dtype(x_))) {  // the first NaN wins, as numpy has it, or the last one
        Expr is_nan = loop::unary(UnaryOp::k_is_nan, value);
        if (!node_.attributes.select_last)
          is_nan = loop::binary(BinaryOp::k_and, is_nan,
                                loop::unary(UnaryOp::k_not, loop::unary(UnaryOp::k_is_nan, old)));
        better = loop::binary(BinaryOp::k_or, better, is_nan);
      }
      better = e.name_value("better", better);
      Expr new_value = e.name_value("best", loop::select(better, value, old));
      Expr new_where = e.name_value("at", loop::select(better, position, loop::load(where, index(0))));
      e.statements.push_back(loop::store(best, index(0), new_value));
      e.statements.push_back(loop::store(where, index(0), new_where));
      return loop::block(std::move(e.statements));
    };
    body.push_back(step(index(0), true));
    if (axis >= 0 && !always_le(extents_[axis], 1)) {
      loop::Var r = index_var("r");
      body.push_back(loop::for_loop(r, c_.symbols(extents_[axis] - 1), AxisKind::kReduction,
                                    step(loop::var_ref(r) + index(1), false)));
    }
    finish(loop::load(where, index(0)), body);
    return loop::block(std::move(body));
  }

  // Vectors along the reduced axis `vector_axis_`.
  Stmt reduce_lanes(int lanes) {
    LaneReduction lane_reduction(c_, vector_reducer_of(g_, node_, c_.target), extents_[vector_axis_], lanes,
                                 AxisKind::kReduction, turns(vector_axis_));
    std::vector<Stmt> body = lane_reduction.begin();
    body.push_back(lane_reduction.fold([&] { return reduction_loops(vector_axis_); },
                                       [&](Expr position, std::vector<Stmt>& statements) {
                                         positions_[vector_axis_] = position;
                                         Evaluator e = evaluator();
                                         Expr value = e.evaluate(x_, indices_[0]);
                                         statements = std::move(e.statements);
                                         return value;
                                       }));
    positions_[vector_axis_] = index(0);
    finish(lane_reduction.result(), body);
    return loop::block(std::move(body));
  }

  void finish(Expr result, std::vector<Stmt>& body) {
    for (int i = 0; i < count(); ++i)
      if (classes_[i] == 1) positions_[i] = index(0);
    Evaluator e = evaluator();
    e.provide(node_.output, e.name_value("result", loop::cast(g_.dtype(node_.output), result)));
    std::vector<Expr> values;
    for (ValueId v : c_.group.outputs) values.push_back(e.evaluate(v, indices_[1]));
    for (size_t i = 0; i < values.size(); ++i) e.store(c_.group.outputs[i], indices_[1], values[i]);
    body.insert(body.end(), e.statements.begin(), e.statements.end());
  }

  Context& c_;
  const Graph& g_;
  const Node& node_;
  ValueId x_;
  Reducer reducer_;
  bool is_arg_;
  const schedule::ReducePlan& plan_;
  // The plan's axes: of results, then (class 1) reduced ones. While a row of positions is filled, the extents
  // and indices are those of a position.
  Shape extents_;
  const std::vector<int>& classes_;
  std::vector<std::vector<IndexExpr>> indices_;
  int vector_axis_;
  const std::optional<schedule::WindowPlan>& window_;
  std::vector<Expr> positions_;
};

}  // namespace

void lower_reduce(Context& context) { ReduceLowering(context).run(); }

}  // namespace quernel::lower
