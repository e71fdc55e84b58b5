// Scans: one line after the other in order along the axis, the running value in a register; vectors along
// another axis where the plan has one.
#include <algorithm>

#include "lower/loop_nest.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

class ScanLowering {
 public:
  explicit ScanLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        node_(g_.nodes[context.group.anchor]),
        x_(node_.inputs[0]),
        dims_(g_.shape(x_)),
        axis_(static_cast<size_t>(node_.attributes.ints[0])),
        extents_(context.group.scan.extents),
        classes_(context.group.scan.classes),
        indices_(context.group.scan.indices),
        vector_axis_(context.group.scan.vector_axis) {
    for (size_t i = 0; i < extents_.size(); ++i)
      if (classes_[i] == 1) scanned_ = static_cast<int>(i);
  }

  void run() {
    DType dtype = g_.dtype(x_);
    bool accumulates = node_.op == OpKind::k_scan_sum || node_.op == OpKind::k_scan_prod;
    accumulator_ = accumulates ? node_.attributes.accumulator : dtype;
    Shape outer;
    std::vector<size_t> outer_axes;
    for (size_t i = 0; i < extents_.size(); ++i)
      if (classes_[i] == 0 && static_cast<int>(i) != vector_axis_)
        outer.push_back(extents_[i]), outer_axes.push_back(i);
    positions_.assign(extents_.size(), index(0));
    if (vector_axis_ < 0) {
      c_.kernel.body =
          outer_loops(c_, outer, dims_[axis_].estimate(), work_per_group(), [&](const std::vector<Expr>& at) {
            for (size_t i = 0; i < at.size(); ++i) positions_[outer_axes[i]] = at[i];
            return scan_line();
          });
      return;
    }
    // Workgroups may share long vectors of lines.
    const Dim& across = extents_[static_cast<size_t>(vector_axis_)];
    const int64_t chunk = c_.group.scan.part;
    const bool split = chunk != 0;
    if (split) outer.push_back(ceildiv(across, chunk));
    int64_t work = (dims_[axis_] * (split ? Dim(chunk) : across)).estimate();
    c_.kernel.body = outer_loops(c_, outer, work, work_per_group(), [&](const std::vector<Expr>& at) {
      for (size_t i = 0; i < outer_axes.size(); ++i) positions_[outer_axes[i]] = at[i];
      Expr first = split ? at.back() * index(chunk) : index(0), count = c_.symbols(across);
      if (split)
        count = floormod(across, chunk) == Dim(0)
                    ? index(chunk)
                    : loop::binary(BinaryOp::k_min, index(chunk), count - first);
      return vector_loop("v", count, lanes(), c_.target, [&](Expr v) {
        positions_[static_cast<size_t>(vector_axis_)] = first + v;
        return scan_line();
      });
    });
  }

 private:
  int64_t work_per_group() const { return c_.group.work.group_work; }
  int lanes() const { return c_.group.scan.lanes; }

  Evaluator evaluator() {
    Evaluator e = c_.evaluator();
    for (size_t i = 0; i < extents_.size(); ++i) e.axes.push_back({positions_[i], extents_[i]});
    return e;
  }

  Expr identity() const {
    bool is_prod = node_.op == OpKind::k_scan_prod;
    if (node_.op == OpKind::k_scan_max || node_.op == OpKind::k_scan_min)
      return extreme_value(accumulator_, node_.op == OpKind::k_scan_max);
    if (!is_float(accumulator_)) return loop::const_int(accumulator_, is_prod);
    // -0 changes no sum, not even that of one -0.
    return loop::const_float(accumulator_, is_prod ? 1.0 : node_.attributes.exclusive ? 0.0 : -0.0);
  }

  BinaryOp combination() const {
    switch (node_.op) {
      case OpKind::k_scan_sum:
        return BinaryOp::k_add;
      case OpKind::k_scan_prod:
        return BinaryOp::k_mul;
      case OpKind::k_scan_max:
        return BinaryOp::k_max;
      default:
        return BinaryOp::k_min;
    }
  }

  Stmt scan_line() {
    loop::Buffer running = local_buffer("running", accumulator_, 1, loop::Scope::kRegister);
    const Dim& count = dims_[axis_];
    loop::Var step = index_var("s");
    Expr position = always_le(count, 1) ? index(0) : loop::var_ref(step);
    if (scanned_ >= 0)
      positions_[static_cast<size_t>(scanned_)] =
          node_.attributes.reverse ? c_.symbols(count - 1) - position : position;
    Evaluator e = evaluator();
    Expr value = loop::cast(accumulator_, e.evaluate(x_, indices_[0]));
    Expr before = e.name_value("before", loop::load(running, index(0)));
    Expr after = e.name_value("after", loop::binary(combination(), before, value));
    e.statements.push_back(loop::store(running, index(0), after));
    e.store(node_.output, indices_[0],
            loop::cast(g_.dtype(node_.output), node_.attributes.exclusive ? before : after));
    Stmt body = loop::block(std::move(e.statements));
    return loop::block({loop::alloc(running), loop::store(running, index(0), identity()),
                        loop::for_loop(step, c_.symbols(count), AxisKind::kSerial, body)});
  }

  Context& c_;
  const Graph& g_;
  const Node& node_;
  ValueId x_;
  Shape dims_;
  size_t axis_;
  DType accumulator_ = DType::kF32;
  const Shape& extents_;
  const std::vector<int>& classes_;
  const std::vector<std::vector<IndexExpr>>& indices_;
  int vector_axis_;
  int scanned_ = -1;  // the scanned axis among extents_; of one element, it may be gone
  std::vector<Expr> positions_;
};

}  // namespace

void lower_scan(Context& context) { ScanLowering(context).run(); }

}  // namespace quernel::lower
