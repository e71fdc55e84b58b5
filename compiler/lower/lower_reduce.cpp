// Reductions: vectors along an output axis where the operand is contiguous there, else along the innermost
// reduced axis with several vector accumulators that are folded at the end. The epilogue runs on the result
// while it is in a register.
#include <algorithm>
#include <cmath>

#include "lower/lane_reduction.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

constexpr int64_t kWorkPerGroup = 16384;
class Lowering {
 public:
  explicit Lowering(Context& context)
      : c_(context),
        g_(context.graph()),
        node_(g_.nodes[context.group.anchor]),
        x_(node_.inputs[0]),
        reducer_(reducer_of(node_, g_.dtype(x_))),
        is_arg_(node_.op == OpKind::k_reduce_argmax || node_.op == OpKind::k_reduce_argmin) {}

  void run() {
    choose_axes();
    int lanes = c_.target.lanes(std::max(4, element_size(reducer_.accumulator)));
    if (vector_axis_ < 0) lanes = 1;
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
    bool along_output = vector_axis_ >= 0 && classes_[vector_axis_] == 0;
    int64_t inner = (reduced * (along_output ? extents_[vector_axis_] : Dim(1))).estimate();
    if (along_output && lanes > 1 && c_.target.is_gpu())
      return workgroups_of_vectors(std::move(outer), outer_axes, reduced, lanes);
    c_.kernel.body = outer_loops(
        c_, outer, inner, c_.target.work_per_group(kWorkPerGroup), [&](const std::vector<Expr>& at) {
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
  // A GPU has more workgroups than a processor has threads: the vectors along the output are shared out, too.
  void workgroups_of_vectors(Shape outer, const std::vector<int>& outer_axes, const Dim& reduced, int lanes) {
    const Dim& extent = extents_[vector_axis_];
    outer.push_back(ceildiv(extent, lanes));
    int64_t inner = (reduced * lanes).estimate();
    c_.kernel.body = outer_loops(
        c_, outer, inner, c_.target.work_per_group(kWorkPerGroup), [&](const std::vector<Expr>& at) {
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

  int count() const { return static_cast<int>(extents_.size()); }

  Evaluator evaluator() {
    Evaluator e = c_.evaluator();
    for (int i = 0; i < count(); ++i) e.axes.push_back({positions_[i], extents_[i]});
    return e;
  }

  // Axes: output dims, then reduced ones (class 1), merged; indices_[0] addresses the operand, indices_[1]
  // the result.
  void choose_axes() {
    const Shape& dims = g_.shape(x_);
    Shape extents;
    std::vector<int> classes;
    indices_.assign(2, {});
    indices_[0].assign(dims.size(), IndexExpr(0));
    for (int cls : {0, 1})
      for (size_t d = 0; d < dims.size(); ++d) {
        bool reduced = std::binary_search(node_.attributes.ints.begin(), node_.attributes.ints.end(),
                                          static_cast<int64_t>(d));
        if (reduced != (cls == 1)) continue;
        indices_[0][d] = IndexExpr::axis(static_cast<int>(extents.size()));
        extents.push_back(dims[d]);
        classes.push_back(cls);
      }
    for (size_t d = 0; d < dims.size(); ++d) {
      bool reduced = std::binary_search(node_.attributes.ints.begin(), node_.attributes.ints.end(),
                                        static_cast<int64_t>(d));
      if (!reduced)
        indices_[1].push_back(indices_[0][d]);
      else if (node_.attributes.keepdims)
        indices_[1].push_back(IndexExpr(0));
    }
    std::vector<IndexExpr> accesses;
    auto probe = [&](const std::vector<std::vector<IndexExpr>>& at, const Shape& sizes) {
      Evaluator dry = c_.dry_evaluator();
      for (size_t i = 0; i < sizes.size(); ++i)
        dry.axes.push_back({loop::var_ref(index_var("a" + std::to_string(i))), sizes[i]});
      dry.evaluate(x_, at[0]);
      accesses = dry.accesses;
      std::vector<IndexExpr> all = dry.accesses;
      all.insert(all.end(), dry.guards.begin(), dry.guards.end());
      for (ValueId v : c_.group.outputs) all.push_back(dry.offset_of(v, at[1]));
      if (is_arg_)  // the position along the axis is needed as it is
        for (size_t i = 0; i < at[0].size(); ++i)
          if (static_cast<int64_t>(i) == node_.attributes.ints[0]) all.push_back(at[0][i]);
      return all;
    };
    extents_ = merge_axes(extents, classes, indices_, classes_, probe);
    probe(indices_, extents_);
    int lanes = c_.target.lanes(std::max(4, element_size(reducer_.accumulator)));
    double best = 0;
    for (int i = 0; i < count(); ++i) {
      if (always_le(extents_[i], 1) || (is_arg_ && classes_[i] == 1)) continue;
      double n = static_cast<double>(extents_[i].estimate()), filled = n / (std::ceil(n / lanes) * lanes),
             sum = 0;
      for (const IndexExpr& access : accesses) {
        std::optional<Dim> stride = stride_along(access, i, count());
        sum += stride && (*stride == Dim(0) || *stride == Dim(1)) ? 1.0 : 0.12;
      }
      double s = filled * sum / std::max<double>(1, static_cast<double>(accesses.size())) *
                 (classes_[i] == 0 ? 1.2 : 1.0);
      if (s > best) best = s, vector_axis_ = i;
    }
  }

  // The loops over reduced axes other than `skip`, around `body`. Short ones are unrolled.
  Stmt reduction_loops(int skip, const std::function<Stmt()>& body) {
    std::vector<std::pair<loop::Var, Dim>> loops;
    for (int i = 0; i < count(); ++i) {
      if (classes_[i] != 1 || i == skip) continue;
      if (extents_[i] == Dim(1)) {
        positions_[i] = index(0);
        continue;
      }
      loops.emplace_back(index_var("r" + std::to_string(i)), extents_[i]);
      positions_[i] = loop::var_ref(loops.back().first);
    }
    Stmt stmt = body();
    Dim copies = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      copies = copies * loops[i].second;
      bool unroll = copies.is_const() && copies.value() <= 9;
      stmt = loop::for_loop(loops[i].first, c_.symbols(loops[i].second),
                            unroll ? AxisKind::kUnrolled : AxisKind::kReduction, stmt);
    }
    return stmt;
  }

  // One result per call (per lane when inside a vector loop).
  Stmt reduce_each() {
    loop::Buffer acc = local_buffer("acc", reducer_.accumulator, 1, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(acc)};
    if (is_arg_) return reduce_arg(acc, std::move(body));
    body.push_back(loop::store(acc, index(0), reducer_.identity));
    body.push_back(reduction_loops(-1, [&] {
      Evaluator e = evaluator();
      Expr value = loop::cast(reducer_.accumulator, e.evaluate(x_, indices_[0]));
      e.statements.push_back(
          loop::store(acc, index(0), loop::binary(reducer_.op, loop::load(acc, index(0)), value)));
      return loop::block(std::move(e.statements));
    }));
    finish(loop::load(acc, index(0)), body);
    return loop::block(std::move(body));
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
      if (is_float(g_.dtype(x_)))  // the first NaN wins, as numpy has it
        better = loop::binary(BinaryOp::k_or, better,
                              loop::binary(BinaryOp::k_and, loop::unary(UnaryOp::k_is_nan, value),
                                           loop::unary(UnaryOp::k_not, loop::unary(UnaryOp::k_is_nan, old))));
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
    LaneReduction lane_reduction(c_, reducer_, extents_[vector_axis_], lanes);
    std::vector<Stmt> body = lane_reduction.begin();
    body.push_back(reduction_loops(vector_axis_, [&] {
      return lane_reduction.fold([&](Expr position, std::vector<Stmt>& statements) {
        positions_[vector_axis_] = position;
        Evaluator e = evaluator();
        Expr value = e.evaluate(x_, indices_[0]);
        statements = std::move(e.statements);
        return value;
      });
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
  Shape extents_;
  std::vector<int> classes_;
  std::vector<std::vector<IndexExpr>> indices_;
  std::vector<Expr> positions_;
  int vector_axis_ = -1;
};

}  // namespace

void lower_reduce(Context& context) { Lowering(context).run(); }

}  // namespace quernel::lower
