// The first elements of a line in sorted order, without sorting the rest: a binary heap, whose root is the
// one that goes last of those kept so far. Its loops have fixed trip counts and no branches.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// The key of an element: an i32 by which elements stand in sorted order. NaN is above everything, zeros are
// equal; `descending` turns the order round. For dtypes that the schedule selects from (`selects_first`).
loop::Expr sort_key(const loop::Expr& x, bool descending);

// In a buffer of i64, from `begin`: `capacity` elements, each its key above its position along the line, so
// that of equal keys the smaller position goes first; behind them, to the end of the tree's last level,
// elements that go before all others (`schedule::selection_slots` in all).
class SelectionHeap {
 public:
  // `unrolled`: sifts from the root have no loop, whose turns a GPU's driver may count.
  SelectionHeap(loop::Buffer buffer, loop::Expr begin, int64_t capacity, bool unrolled = false);

  static loop::Expr element(const loop::Expr& key, const loop::Expr& position);
  static loop::Expr position(const loop::Expr& element);
  loop::Expr last_key() const;  // of the elements that are kept

  loop::Stmt put(const loop::Expr& place, const loop::Expr& element) const;
  loop::Stmt make() const;  // of `capacity` elements that were put, in any order
  loop::Stmt replace_last(const loop::Expr& element) const;
  // Takes the elements out, the last one first: `taken(place in sorted order, element)`.
  loop::Stmt take(const std::function<loop::Stmt(loop::Expr, loop::Expr)>& taken) const;

 private:
  loop::Expr at(const loop::Expr& place) const;
  // Puts an element where `place` is, both of whose children are heaps, or below it: `levels` are below it.
  loop::Stmt sift(const loop::Expr& place, const loop::Expr& levels, const loop::Expr& element,
                  bool unrolled = false) const;

  loop::Buffer buffer_;
  loop::Expr begin_;
  int64_t capacity_;
  bool unrolled_;
};

}  // namespace quernel::lower
