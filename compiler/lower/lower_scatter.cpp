// Scatters: each workgroup copies its part of the template, unless it is written over that, and then applies,
// in order, the updates that fall into it. The plan says what parts are: slices that updates do not leave (dims
// that the indices do not address), ranges of the first dim that they do address (updates outside of the range
// are skipped), or shares of the updates.
#include <algorithm>

#include "lower/loop_nest.h"
#include "schedule/storage.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

Expr both(Expr a, Expr b) { return a ? loop::binary(BinaryOp::k_and, std::move(a), std::move(b)) : b; }

class ScatterLowering {
 public:
  explicit ScatterLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        node_(g_.nodes[context.group.anchor]),
        template_(node_.inputs[0]),
        indices_(node_.inputs[1]),
        updates_(node_.inputs[2]),
        dims_(g_.shape(template_)),
        index_dims_(g_.shape(indices_)),
        update_dims_(g_.shape(updates_)),
        in_place_(schedule::same_place(context.schedule, template_, node_.output)),
        plan_(context.group.scatter),
        first_(plan_.first),
        addressed_(plan_.addressed),
        numbers_(plan_.numbers),
        vector_dim_(plan_.vector_dim) {}

  void run() {
    make_readable();
    size_t rank = dims_.size();
    Shape outer;
    std::vector<size_t> sliced;
    Dim addressed = 1;
    for (size_t d = 0; d < rank; ++d) {
      if (d >= first_ && d < first_ + addressed_) {
        addressed = addressed * dims_[d];
      } else if (d != vector_dim_) {
        outer.push_back(dims_[d]), sliced.push_back(d);
      }
    }
    number_ = 1;
    for (size_t i = 0; i < numbers_; ++i) number_ *= update_dims_[first_ + i];
    int64_t number = number_.estimate();
    const bool gpu = c_.target.lanes_are_invocations(), split = plan_.shares_columns;
    columns_ = vector_dim_ == rank ? Dim(1) : split ? Dim(lanes()) : dims_[rank - 1];
    if (split) outer.push_back(ceildiv(dims_[rank - 1], lanes()));
    if (plan_.shared_updates != 0) return share_updates(outer, sliced, split);
    int64_t work = ((in_place_ ? Dim(number) : addressed) * columns_).estimate();
    const Dim size = addressed_ == 0 ? Dim(0) : dims_[first_];
    const int64_t ranges = plan_.ranges;
    range_ = ranges > 1 ? ceildiv(size, ranges) : size;
    outer.insert(outer.begin(), Dim(ranges));
    // Each range reads all updates.
    work = std::max(work / ranges, (Dim(number) * columns_).estimate());
    c_.kernel.body = outer_loops(c_, outer, work, c_.group.work.group_work, [&](const std::vector<Expr>& at) {
      enter_slice(sliced, {at.begin() + 1, at.end()}, split);
      begin_ = at[0] * c_.symbols(range_);
      bool even = ranges == 1 || floormod(size, range_) == Dim(0);
      size_ = even ? c_.symbols(range_)
                   : loop::binary(BinaryOp::k_min, c_.symbols(range_), c_.symbols(size) - begin_);
      Stmt updates = gpu ? update_in_copies() : update(0, {});
      if (in_place_) return updates;
      return loop::block({gpu ? copy_at_once() : copy(first_, {}), updates});
    });
  }

 private:
  // `at`: positions of the slice's dims, then the number of the chunk of columns where these are split.
  void enter_slice(const std::vector<size_t>& sliced, const std::vector<Expr>& at, bool split) {
    slice_.assign(dims_.size(), nullptr);
    for (size_t i = 0; i < sliced.size(); ++i) slice_[sliced[i]] = at[i];
    if (!c_.target.lanes_are_invocations()) return;
    first_column_ = split ? at[sliced.size()] * index(lanes()) : index(0);
    column_count_ = c_.symbols(columns_);
    if (split && !(floormod(dims_.back(), lanes()) == Dim(0)))
      column_count_ = loop::binary(BinaryOp::k_min, column_count_, c_.symbols(dims_.back()) - first_column_);
  }

  // Workgroups share the updates, too, none of which has another's place.
  void share_updates(Shape outer, const std::vector<size_t>& sliced, bool split) {
    bool vectors = vector_dim_ == dims_.size() && c_.target.lanes_are_invocations();  // of updates
    int64_t work = c_.group.work.group_work;
    const int64_t chunk = plan_.shared_updates;
    outer.push_back(ceildiv(number_, chunk));
    c_.kernel.body = outer_loops(c_, outer, work, work, [&](const std::vector<Expr>& at) {
      enter_slice(sliced, at, split);
      size_ = c_.symbols(range_ = addressed_ == 0 ? Dim(0) : dims_[first_]);
      std::vector<Stmt> body;
      Expr first = named(body, "first", at.back() * index(chunk));
      Expr count =
          named(body, "count", loop::binary(BinaryOp::k_min, index(chunk), c_.symbols(number_) - first));
      body.push_back(vector_loop("u", count, vectors ? lanes() : 1, c_.target,
                                 [&](const Expr& u) { return update_columns(numbers_at(first + u)); }));
      return loop::block(std::move(body));
    });
  }

  // The updates' numbers of update `flat`.
  std::vector<Expr> numbers_at(Expr flat) const {
    std::vector<Expr> numbers(numbers_);
    for (size_t i = numbers_; i-- > 0;) {
      const Expr size = c_.symbols(update_dims_[first_ + i]);
      numbers[i] = i == 0 ? flat : loop::binary(BinaryOp::k_fmod, flat, size);
      if (i > 0) flat = loop::binary(BinaryOp::k_idiv, flat, size);
    }
    return numbers;
  }

  // All updates in order, with few turns of one loop: some drivers end an invocation's loops after 65,535.
  Stmt update_in_copies() {
    const int64_t copies = plan_.updates_per_turn;
    if (numbers_ == 0) return update_columns({});
    bool even = floormod(number_, copies) == Dim(0);
    return serial_loop("u", c_.symbols(ceildiv(number_, copies)), [&](const Expr& u) {
      loop::Var copy = index_var("copy");
      std::vector<Stmt> body;
      Expr flat = copies == 1 ? u : named(body, "flat", u * index(copies) + loop::var_ref(copy));
      Stmt one = update_columns(numbers_at(flat));
      if (copies == 1) return one;
      body.push_back(even ? one
                          : loop::if_then(loop::binary(BinaryOp::k_lt, flat, c_.symbols(number_)), one));
      return loop::for_loop(copy, index(copies), AxisKind::kUnrolled, loop::block(std::move(body)));
    });
  }

  // The slice's part of the template in vectors along all that is addressed and the columns.
  Stmt copy_at_once() {
    Expr count = addressed_ == 0 ? index(1) : size_;
    for (size_t k = 1; k < addressed_; ++k) count = count * c_.symbols(dims_[first_ + k]);
    return vector_loop("c", count * column_count_, lanes(), c_.target, [&](const Expr& c) {
      Expr flat = loop::binary(BinaryOp::k_idiv, c, column_count_);
      Expr along = first_column_ + loop::binary(BinaryOp::k_fmod, c, column_count_);
      std::vector<Expr> addressed(addressed_);
      for (size_t k = addressed_; k-- > 0;) {
        Expr size = c_.symbols(dims_[first_ + k]);
        addressed[k] = k == 0 ? begin_ + flat : loop::binary(BinaryOp::k_fmod, flat, size);
        if (k > 0) flat = loop::binary(BinaryOp::k_idiv, flat, size);
      }
      return copy_element(addressed, vector_dim_ == dims_.size() ? nullptr : along);
    });
  }

  // Modes that combine read what they have written.
  void make_readable() {
    auto buffer = std::make_shared<loop::BufferNode>(*c_.buffers.writes.at(node_.output));
    buffer->access = loop::Access::kReadWrite;
    out_ = buffer;
    c_.buffers.writes[node_.output] = out_;
    c_.kernel.buffers[static_cast<size_t>(buffer->binding)] = out_;
    c_.buffers.buffers = c_.kernel.buffers;
  }

  int lanes() const { return plan_.lanes; }
  Stmt serial(const char* what, Expr extent, const std::function<Stmt(Expr)>& body) {
    int64_t fixed = 0;
    if (loop::as_const_int(extent, &fixed) && fixed == 1) return body(index(0));
    loop::Var var = index_var(what);
    return loop::for_loop(var, std::move(extent), AxisKind::kSerial, body(loop::var_ref(var)));
  }

  // The slice's part of the template: loops over the addressed dims from `d` on, vectors along the last dim.
  Stmt copy(size_t d, std::vector<Expr> addressed) {
    bool last = d + 1 == dims_.size();
    auto next = [&](Expr position) {
      std::vector<Expr> inner = addressed;
      inner.push_back(std::move(position));
      return copy(d + 1, std::move(inner));
    };
    if (d < first_ + addressed_) {
      bool in_ranges = d == first_ && plan_.ranges > 1;
      if (in_ranges && !last) return serial("c", size_, [&](Expr p) { return next(begin_ + p); });
      if (in_ranges)
        return vector_loop("c", c_.symbols(range_), lanes(), c_.target, [&](Expr p) {
          return loop::if_then(loop::binary(BinaryOp::k_lt, p, size_), next(begin_ + p));
        });
      if (!last) return serial("c", c_.symbols(dims_[d]), next);
      return vector_loop("c", c_.symbols(dims_[d]), lanes(), c_.target, next);
    }
    if (vector_dim_ == dims_.size()) return copy_element(addressed, nullptr);
    return vector_loop("v", c_.symbols(dims_[vector_dim_]), lanes(), c_.target,
                       [&](Expr v) { return copy_element(addressed, v); });
  }

  Stmt copy_element(const std::vector<Expr>& addressed, Expr along) {
    Evaluator e = c_.evaluator();
    std::vector<IndexExpr> at = place(e, addressed, along);
    e.store(node_.output, at, e.evaluate(template_, at));
    return loop::block(std::move(e.statements));
  }

  // Indices of the template: the slice's, with the addressed dims given. An axis of the evaluator for each.
  std::vector<IndexExpr> place(Evaluator& e, const std::vector<Expr>& addressed, const Expr& along) const {
    std::vector<IndexExpr> at;
    for (size_t d = 0; d < dims_.size(); ++d) {
      bool is_addressed = d >= first_ && d < first_ + addressed_;
      Expr position = is_addressed ? addressed[d - first_] : d == vector_dim_ ? along : slice_[d];
      e.axes.push_back({std::move(position), dims_[d]});
      at.push_back(IndexExpr::axis(static_cast<int>(e.axes.size()) - 1));
    }
    return at;
  }

  // Loops over the updates' numbers, in order.
  Stmt update(size_t number, std::vector<Expr> numbers) {
    if (number < numbers_)
      return serial("u", c_.symbols(update_dims_[first_ + number]), [&](Expr p) {
        std::vector<Expr> inner = numbers;
        inner.push_back(std::move(p));
        return update(number + 1, std::move(inner));
      });
    return update_columns(numbers);
  }

  Stmt update_columns(const std::vector<Expr>& numbers) {
    if (vector_dim_ == dims_.size()) return update_element(numbers, nullptr);
    if (!(columns_ == dims_.back()))  // one vector without a loop, whose turn a driver may count
      return vector_loop("v", index(lanes()), lanes(), c_.target, [&](const Expr& v) {
        return loop::if_then(loop::binary(BinaryOp::k_lt, v, column_count_),
                             update_element(numbers, first_column_ + v));
      });
    return vector_loop("v", c_.symbols(update_dims_.back()), lanes(), c_.target,
                       [&](Expr v) { return update_element(numbers, v); });
  }

  Stmt update_element(const std::vector<Expr>& numbers, const Expr& along) {
    Evaluator e = c_.evaluator();
    // Indices of the updates: the slice's dims before, the numbers, the slice's dims behind.
    std::vector<IndexExpr> at;
    Expr inside;
    for (size_t d = 0; d < update_dims_.size(); ++d) {
      bool is_number = d >= first_ && d < first_ + numbers_;
      size_t of_template = d < first_ ? d : d - numbers_ + addressed_;
      Expr position = is_number                    ? numbers[d - first_]
                      : of_template == vector_dim_ ? along
                                                   : slice_[of_template];
      // Elements may have updates for a part of the slices only.
      bool all_columns = of_template == vector_dim_ && columns_ == dims_.back();
      if (!is_number && !all_columns && !always_le(dims_[of_template], update_dims_[d]))
        inside = both(inside, loop::binary(BinaryOp::k_lt, position, c_.symbols(update_dims_[d])));
      e.axes.push_back({std::move(position), update_dims_[d]});
      at.push_back(IndexExpr::axis(static_cast<int>(d)));
    }
    std::vector<Expr> addressed;
    Expr valid;
    for (size_t k = 0; k < addressed_; ++k) {
      Expr i = e.name_value("i", loop::cast(DType::kI64, e.evaluate(indices_, index_at(at, k))));
      Expr size = c_.symbols(dims_[first_ + k]);
      i = e.name_value("i", loop::select(loop::binary(BinaryOp::k_lt, i, index(0)), i + size, i));
      bool in_range = k == 0 && plan_.ranges > 1;
      Expr low = in_range ? begin_ : index(0), high = in_range ? begin_ + size_ : size;
      valid = both(valid, both(loop::binary(BinaryOp::k_ge, i, low), loop::binary(BinaryOp::k_lt, i, high)));
      addressed.push_back(i);
    }
    std::vector<Stmt> before = std::move(e.statements);
    e.statements.clear();
    Expr value = e.evaluate(updates_, at);
    std::vector<IndexExpr> to = place(e, addressed, along);
    if (node_.attributes.scatter != ScatterMode::kSet) {
      Expr old = e.name_value("old", loop::load(out_, e.expression(e.offset_of(node_.output, to))));
      value = e.name_value("new", loop::binary(combination(), old, value));
    }
    e.store(node_.output, to, value);
    Stmt write = loop::block(std::move(e.statements));
    before.push_back(valid ? loop::if_then(valid, write) : write);
    Stmt all = loop::block(std::move(before));
    return inside ? loop::if_then(inside, all) : all;
  }

  // Where the indices hold part k of the update's place.
  std::vector<IndexExpr> index_at(const std::vector<IndexExpr>& at, size_t k) const {
    if (node_.op == OpKind::k_scatter_elements) return at;
    auto from = at.begin() + static_cast<std::ptrdiff_t>(node_.op == OpKind::k_scatter_rows ? first_ : 0);
    std::vector<IndexExpr> result(from, at.begin() + static_cast<std::ptrdiff_t>(first_ + numbers_));
    if (node_.op == OpKind::k_scatter_nd) result.push_back(IndexExpr(static_cast<int64_t>(k)));
    return result;
  }

  BinaryOp combination() const {
    switch (node_.attributes.scatter) {
      case ScatterMode::kAdd:
        return BinaryOp::k_add;
      case ScatterMode::kMul:
        return BinaryOp::k_mul;
      case ScatterMode::kMax:
        return BinaryOp::k_max;
      default:
        return BinaryOp::k_min;
    }
  }

  Context& c_;
  const Graph& g_;
  const Node& node_;
  ValueId template_, indices_, updates_;
  Shape dims_, index_dims_, update_dims_;
  bool in_place_;
  const schedule::ScatterPlan& plan_;
  const size_t first_, addressed_;  // the template's dims that indices address
  const size_t numbers_;            // the updates' dims, from first_ on, that number them
  const size_t vector_dim_;         // the template's dim along which vectors run, or its rank
  Dim range_ = 0;                   // elements of a range of the first addressed dim
  loop::Buffer out_;
  std::vector<Expr> slice_;  // per dim of the template, where it is part of the slice
  Expr begin_, size_;        // this workgroup's range of the first addressed dim
  Dim number_ = 1;           // of updates, of a slice
  Dim columns_ = 1;          // of a workgroup: elements along the vector dim
  Expr first_column_, column_count_;
};

}  // namespace

void lower_scatter(Context& context) { ScatterLowering(context).run(); }

}  // namespace quernel::lower
