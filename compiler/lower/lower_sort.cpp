// argsort. The first k of a line, k known: a heap keeps the first k so far, and only elements that go before
// the last of those enter it, of elements in random order about k ln(n/k). Vectors of elements are compared
// with that one.
//
// Others: a stable merge sort of positions, bottom up. Runs of w positions become runs of 2w, from one half
// of a scratch buffer to the other; a run keeps no more positions than are asked for, so that the first k of
// n cost O(n log k). The loops have fixed trip counts: which run a position comes from is a selection.
#include <algorithm>

#include "lower/loop_nest.h"
#include "lower/selection_heap.h"
#include "schedule/selection.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

Expr smaller(Expr a, Expr b) { return loop::binary(BinaryOp::k_min, std::move(a), std::move(b)); }
Expr both(Expr a, Expr b) { return loop::binary(BinaryOp::k_and, std::move(a), std::move(b)); }
Expr either(Expr a, Expr b) { return loop::binary(BinaryOp::k_or, std::move(a), std::move(b)); }
Expr negated(Expr a) { return loop::unary(UnaryOp::k_not, std::move(a)); }

class SortLowering {
 public:
  explicit SortLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        node_(g_.nodes[context.group.anchor]),
        x_(node_.inputs[0]),
        dims_(g_.shape(x_)),
        axis_(static_cast<size_t>(node_.attributes.ints[0])),
        count_(dims_[axis_]),
        kept_(node_.attributes.shape[0]),
        scratch_(context.buffers.scratch) {}

  void run() {
    Shape outer;
    for (size_t d = 0; d < dims_.size(); ++d)
      if (d != axis_) outer.push_back(dims_[d]);
    int64_t estimate = count_.estimate(), pass_count = 0;
    for (int64_t width = 1; width < estimate; width *= 2) ++pass_count;
    bool selects = c_.group.work.selects;
    if (!selects && c_.target.lanes_are_invocations()) c_.iterations = iterations_of_sort();
    int64_t work = selects ? estimate + kept_.value() * pass_count : estimate * (pass_count + 1);
    c_.kernel.body = outer_loops(c_, outer, work, c_.group.work.group_work, [&](const std::vector<Expr>& at) {
      positions_ = at;
      Expr line = index(0);
      for (size_t i = 0; i < outer.size(); ++i) line = line * c_.symbols(outer[i]) + at[i];
      std::vector<Stmt> body;
      n_ = c_.symbols(count_), kept_n_ = c_.symbols(kept_);
      Dim slots = selects
                      ? Dim(schedule::selection_slots(kept_.value()) * schedule::selection_words(g_, node_))
                      : count_ * 2;
      line_ = named(body, "line", line * c_.symbols(slots));
      if (selects) {
        select(body);
      } else {
        Expr passes = count_.is_const() ? index(pass_count) : count_passes(body);
        body.push_back(number());
        body.push_back(sort(line_, n_, passes));
        body.push_back(finish(sorted(line_, passes)));
      }
      return loop::block(std::move(body));
    });
  }

 private:
  // Every pass moves each element once; the shorter the runs, the more of them it merges. One invocation sorts
  // a line.
  Dim iterations_of_sort() const {
    constexpr int kMostPasses = 18;  // beyond, there are more iterations than any driver ends loops after
    Dim passes = 0;
    for (int k = 0; k < kMostPasses; ++k) passes += min(1, floordiv(max(count_ - 1, 0), int64_t{1} << k));
    return passes * (count_ + 2) + count_ * 3 + 64;
  }
  // The smallest p with 2^p >= n.
  Expr count_passes(std::vector<Stmt>& body) {
    loop::Buffer passes = local_buffer("passes", DType::kI64, 1, loop::Scope::kRegister);
    body.insert(body.end(), {loop::alloc(passes), loop::store(passes, index(0), index(0))});
    body.push_back(serial_loop("p", index(62), [&](Expr p) {
      Expr needed = loop::binary(BinaryOp::k_lt, loop::binary(BinaryOp::k_shl, index(1), p), n_);
      return loop::if_then(needed, loop::store(passes, index(0), p + index(1)));
    }));
    return named(body, "pass_count", loop::load(passes, index(0)));
  }
  // An evaluator whose axes are the line's position and the given places along the sorted axis.
  Evaluator evaluator(const std::vector<Expr>& places) {
    Evaluator e = c_.evaluator();
    size_t next = 0;
    for (size_t d = 0; d < dims_.size(); ++d)
      if (d != axis_) e.axes.push_back({positions_[next++], dims_[d]});
    for (const Expr& place : places) e.axes.push_back({place, count_});
    return e;
  }
  // The indices of place number `which` of an evaluator.
  std::vector<IndexExpr> indices(int which) const {
    std::vector<IndexExpr> result;
    int next = 0, lines = static_cast<int>(dims_.size()) - 1;
    for (size_t d = 0; d < dims_.size(); ++d)
      result.push_back(IndexExpr::axis(d == axis_ ? lines + which : next++));
    return result;
  }

  Stmt number() {
    return serial_loop(
        "n", n_, [&](Expr i) { return loop::store(scratch_, line_ + i, loop::cast(scratch_->dtype, i)); });
  }

  // Where a line is sorted, its last pass has written it.
  Expr sorted(const Expr& line, const Expr& passes) const {
    return line + loop::binary(BinaryOp::k_fmod, passes, index(2)) * n_;
  }

  // Sorts the `count` positions at `line`; the other half is n_ further. Pass p merges pairs of runs of 2^p
  // from half p % 2 into the other.
  Stmt sort(const Expr& line, const Expr& count, const Expr& pass_count) {
    return serial_loop("pass", pass_count, [&](Expr p) {
      std::vector<Stmt> body;
      Expr width = named(body, "width", loop::binary(BinaryOp::k_shl, index(1), p));
      Expr half = named(body, "half", loop::binary(BinaryOp::k_fmod, p, index(2)) * n_);
      Expr from = named(body, "from", line + half), to = named(body, "to", line + n_ - half);
      Expr pair = named(body, "pair", width * index(2));
      Expr pairs = loop::binary(BinaryOp::k_idiv, count - index(1) + pair, pair);
      body.push_back(serial_loop("m", pairs, [&](Expr m) {
        std::vector<Stmt> runs;
        Expr first = named(runs, "first", m * pair);
        Expr middle = named(runs, "middle", smaller(first + width, count));
        Expr end = named(runs, "end", smaller(middle + width, count));
        runs.push_back(merge(from + first, middle - first, from + middle, end - middle, to + first));
        return loop::block(std::move(runs));
      }));
      return loop::block(std::move(body));
    });
  }

  // Two sorted runs into one, as much of it as is wanted; of equal elements those of the left run go first.
  Stmt merge(const Expr& left_run, Expr left_length, const Expr& right_run, Expr right_length,
             const Expr& to) {
    std::vector<Stmt> body;
    loop::Buffer left = local_buffer("left", DType::kI64, 1, loop::Scope::kRegister),
                 right = local_buffer("right", DType::kI64, 1, loop::Scope::kRegister);
    body.insert(body.end(), {loop::alloc(left), loop::alloc(right), loop::store(left, index(0), index(0)),
                             loop::store(right, index(0), index(0))});
    Expr left_size = named(body, "left_size", smaller(std::move(left_length), kept_n_));
    Expr right_size = named(body, "right_size", smaller(std::move(right_length), kept_n_));
    Expr size = smaller(left_size + right_size, kept_n_);
    body.push_back(serial_loop("t", size, [&](Expr t) {
      std::vector<Stmt> step;
      Expr i = named(step, "i", loop::load(left, index(0))),
           j = named(step, "j", loop::load(right, index(0)));
      Expr has_left = named(step, "has_left", loop::binary(BinaryOp::k_lt, i, left_size));
      Expr has_right = named(step, "has_right", loop::binary(BinaryOp::k_lt, j, right_size));
      Expr none = loop::const_int(scratch_->dtype, 0);
      Expr a = named(step, "a", loop::load_guarded(scratch_, left_run + i, has_left, none));
      Expr b = named(step, "b", loop::load_guarded(scratch_, right_run + j, has_right, none));
      Evaluator e = evaluator({loop::cast(DType::kI64, a), loop::cast(DType::kI64, b)});
      Expr x = e.evaluate(x_, indices(0)), y = e.evaluate(x_, indices(1));
      step.insert(step.end(), e.statements.begin(), e.statements.end());
      Expr take_right = named(step, "take_right", both(has_right, either(negated(has_left), before(y, x))));
      step.push_back(loop::store(scratch_, to + t, loop::select(take_right, b, a)));
      Expr moved = named(step, "moved", loop::cast(DType::kI64, take_right));
      step.push_back(loop::store(left, index(0), i + (index(1) - moved)));
      step.push_back(loop::store(right, index(0), j + moved));
      return loop::block(std::move(step));
    }));
    return loop::block(std::move(body));
  }

  void select(std::vector<Stmt>& body) {
    int64_t kept = kept_.value();
    SelectionHeap heap(scratch_, line_, kept, schedule::selection_words(g_, node_),
                       c_.target.lanes_are_invocations());
    DType key_dtype = element_size(g_.dtype(x_)) > 4 ? DType::kI64 : DType::kI32;
    auto key_at = [&](std::vector<Stmt>& step, const Expr& place) {
      Evaluator e = evaluator({place});
      Expr x = e.evaluate(x_, indices(0));
      step.insert(step.end(), e.statements.begin(), e.statements.end());
      return sort_key(x, node_.attributes.descending);
    };
    bool is_full = always_le(kept_, count_);
    if (!is_full)
      body.push_back(
          serial_loop("i", index(kept), [&](const Expr& i) { return heap.put(i, heap.last_of_all()); }));
    body.push_back(serial_loop("i", is_full ? index(kept) : smaller(index(kept), n_), [&](const Expr& i) {
      std::vector<Stmt> step;
      Expr key = key_at(step, i);
      step.push_back(heap.put(i, heap.element(key, i)));
      return loop::block(std::move(step));
    }));
    body.push_back(heap.make());
    // Behind equal elements that are kept, a later one stays out.
    auto goes_in = [&](const Expr& key) {
      return loop::binary(BinaryOp::k_lt, key, heap.last_key(key_dtype));
    };
    auto enter = [&](const Expr& place, const Expr& key) {
      return loop::if_then(goes_in(key), heap.replace_last(heap.element(key, place)));
    };
    int lanes = c_.target.lanes_are_invocations() ? 1 : c_.target.lanes(element_size(key_dtype));
    // Vectors, then the elements from `next` on.
    Expr vectors, next, rest;
    if (count_.is_const()) {
      int64_t whole = lanes == 1 ? 0 : (count_.value() - kept) / lanes, read = kept + whole * lanes;
      vectors = whole == 0 ? nullptr : index(whole), next = index(read), rest = index(count_.value() - read);
    } else {
      next = index(kept);
      rest = named(body, "others", loop::binary(BinaryOp::k_max, n_ - index(kept), index(0)));
      if (lanes > 1) {
        vectors = named(body, "vectors", loop::binary(BinaryOp::k_idiv, rest, index(lanes)));
        next = named(body, "next", next + vectors * index(lanes));
        rest = rest - vectors * index(lanes);
      }
    }
    if (vectors) {
      loop::Buffer keys = local_buffer("keys", key_dtype, lanes, loop::Scope::kShared);
      body.push_back(loop::alloc(keys));
      body.push_back(serial_loop("v", vectors, [&](const Expr& v) {
        std::vector<Stmt> whole, step;
        Expr first = named(whole, "first", index(kept) + v * index(lanes));
        loop::Var lane = index_var("l");
        Expr key = key_at(step, first + loop::var_ref(lane));
        step.push_back(loop::store(keys, loop::var_ref(lane), key));
        whole.push_back(loop::for_loop(lane, index(lanes), AxisKind::kVector, loop::block(std::move(step))));
        Expr all = loop::load(keys, loop::ramp(index(0), 1, lanes), lanes);
        Stmt each = serial_loop("i", index(lanes), [&](const Expr& i) {
          std::vector<Stmt> one;
          Expr own = named(one, "key", loop::load(keys, i));
          one.push_back(enter(first + i, own));
          return loop::block(std::move(one));
        });
        whole.push_back(loop::if_then(goes_in(loop::reduce_lanes(BinaryOp::k_min, all)), std::move(each)));
        return loop::block(std::move(whole));
      }));
    }
    body.push_back(serial_loop("i", rest, [&](const Expr& i) {
      std::vector<Stmt> step;
      Expr place = named(step, "place", next + i), key = named(step, "key", key_at(step, place));
      step.push_back(enter(place, key));
      return loop::block(std::move(step));
    }));
    body.push_back(heap.take([&](const Expr& k, const SelectionHeap::Element& element) {
      return give(k, heap.position(element));
    }));
  }

  // Whether x must stand before y. NaN is above everything.
  Expr before(Expr x, Expr y) const {
    bool descending = node_.attributes.descending;
    Expr result = loop::binary(descending ? BinaryOp::k_gt : BinaryOp::k_lt, x, y);
    if (!is_float(g_.dtype(x_))) return result;
    Expr low = loop::unary(UnaryOp::k_is_nan, descending ? y : x),
         high = loop::unary(UnaryOp::k_is_nan, descending ? x : y);
    return either(result, both(high, negated(low)));
  }

  Stmt finish(const Expr& from) {
    return serial_loop("k", kept_n_, [&](Expr k) {
      return give(k, loop::cast(DType::kI64, loop::load(scratch_, from + k)));
    });
  }
  // Result number k.
  Stmt give(const Expr& k, Expr position) {
    Evaluator e = evaluator({k});
    e.store(node_.output, indices(0), std::move(position));
    return loop::block(std::move(e.statements));
  }

  Context& c_;
  const Graph& g_;
  const Node& node_;
  ValueId x_;
  Shape dims_;
  size_t axis_;
  Dim count_, kept_;             // elements of a line, and positions that are wanted
  Expr n_, kept_n_;              // the same
  loop::Buffer scratch_;         // per line, two halves of count_ positions, or a heap
  std::vector<Expr> positions_;  // of the line, for each dim but the sorted one
  Expr line_;                    // where the line's part of the scratch buffer begins
};

}  // namespace

void lower_sort(Context& context) { SortLowering(context).run(); }

}  // namespace quernel::lower
