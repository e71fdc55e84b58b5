// Scans: one line after the other in order along the axis, the running value in a register; vectors along
// another axis where accesses are contiguous there.
#include <algorithm>
#include <cmath>

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
        axis_(static_cast<size_t>(node_.attributes.ints[0])) {}

  void run() {
    DType dtype = g_.dtype(x_);
    bool accumulates = node_.op == OpKind::k_scan_sum || node_.op == OpKind::k_scan_prod;
    accumulator_ = accumulates ? node_.attributes.accumulator : dtype;
    choose_axes();
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
    // Workgroups share long vectors of lines: of each a chunk that makes up for its call.
    const Dim& across = extents_[static_cast<size_t>(vector_axis_)];
    int64_t wanted = work_per_group() / std::max<int64_t>(dims_[axis_].estimate(), 1);
    int64_t chunk = std::max<int64_t>(ceil_to_lanes(wanted), lanes());
    bool split = !always_le(across, chunk);
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
  int64_t ceil_to_lanes(int64_t n) const { return (n + lanes() - 1) / lanes() * lanes(); }
  int lanes() const { return c_.target.lanes(std::max(4, element_size(accumulator_))); }

  Evaluator evaluator() {
    Evaluator e = c_.evaluator();
    for (size_t i = 0; i < extents_.size(); ++i) e.axes.push_back({positions_[i], extents_[i]});
    return e;
  }

  // Axes: every dim but the scanned one, then that one, of class 1. indices_[0] addresses operand and result.
  void choose_axes() {
    Shape extents;
    std::vector<int> classes;
    indices_.assign(1, std::vector<IndexExpr>(dims_.size(), IndexExpr(0)));
    for (int cls : {0, 1})
      for (size_t d = 0; d < dims_.size(); ++d) {
        if ((d == axis_) != (cls == 1)) continue;
        indices_[0][d] = IndexExpr::axis(static_cast<int>(extents.size()));
        extents.push_back(dims_[d]);
        classes.push_back(cls);
      }
    std::vector<IndexExpr> accesses;
    auto probe = [&](const std::vector<std::vector<IndexExpr>>& at, const Shape& sizes) {
      DryNames names;
      Evaluator dry = c_.dry_evaluator();
      for (size_t i = 0; i < sizes.size(); ++i)
        dry.axes.push_back({loop::var_ref(index_var("a" + std::to_string(i))), sizes[i]});
      dry.evaluate(x_, at[0]);
      dry.accesses.push_back(dry.offset_of(node_.output, at[0]));
      accesses = dry.accesses;
      std::vector<IndexExpr> all = dry.accesses;
      all.insert(all.end(), dry.guards.begin(), dry.guards.end());
      all.push_back(at[0][axis_]);  // walked on its own
      return all;
    };
    extents_ = merge_axes(extents, classes, indices_, classes_, probe);
    probe(indices_, extents_);
    double best = 0.5;  // below that, scalar code is as good
    for (size_t i = 0; i < extents_.size(); ++i) {
      if (classes_[i] == 1) scanned_ = static_cast<int>(i);
      if (classes_[i] == 1 || always_le(extents_[i], 1)) continue;
      double n = static_cast<double>(extents_[i].estimate()), filled = n / (std::ceil(n / lanes()) * lanes()),
             sum = 0;
      for (const IndexExpr& access : accesses) {
        std::optional<Dim> stride =
            stride_along(access, static_cast<int>(i), static_cast<int>(extents_.size()));
        sum += stride && (*stride == Dim(0) || *stride == Dim(1)) ? 1.0 : 0.12;
      }
      double score = filled * sum / static_cast<double>(accesses.size());
      if (score > best) best = score, vector_axis_ = static_cast<int>(i);
    }
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
  Shape extents_;
  std::vector<int> classes_;
  std::vector<std::vector<IndexExpr>> indices_;
  std::vector<Expr> positions_;
  int scanned_ = -1;  // the scanned axis among extents_; of one element, it may be gone
  int vector_axis_ = -1;
};

}  // namespace

void lower_scan(Context& context) { ScanLowering(context).run(); }

}  // namespace quernel::lower
