// The first elements of a line in sorted order, without sorting the rest: a binary heap, whose root is the
// one that goes last of those kept so far. Its loops have fixed trip counts and no branches.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// The key of an element: an integer by which elements stand in sorted order, an i64 for dtypes of 64 bits,
// else an i32. NaN is above everything, zeros are equal; `descending` turns the order round. For dtypes that
// the schedule selects from (`selects_first`).
loop::Expr sort_key(const loop::Expr& x, bool descending);

// In a buffer of i64, from `begin`: `capacity` elements, of equal keys the one with the smaller position
// first; behind them, to the end of the tree's last level, elements that go before all others
// (`schedule::selection_slots` in all). An element is its key above its position along the line, or, of two
// words, its key and then its position.
class SelectionHeap {
 public:
  struct Element {
    loop::Expr key, position;  // as they are in the buffer; without a position where the key is above it
  };

  // `words`: of an element (`schedule::selection_words`). `unrolled`: sifts from the root have no loop, whose
  // turns a GPU's driver may count.
  SelectionHeap(loop::Buffer buffer, loop::Expr begin, int64_t capacity, int words, bool unrolled = false);

  Element element(const loop::Expr& key, const loop::Expr& position) const;
  Element last_of_all() const;  // goes behind all others
  loop::Expr position(const Element& element) const;
  loop::Expr last_key(DType dtype) const;  // of the elements that are kept

  loop::Stmt put(const loop::Expr& place, const Element& element) const;
  loop::Stmt make() const;  // of `capacity` elements that were put, in any order
  loop::Stmt replace_last(const Element& element) const;
  // Takes the elements out, the last one first: `taken(place in sorted order, element)`.
  loop::Stmt take(const std::function<loop::Stmt(loop::Expr, Element)>& taken) const;

 private:
  Element at(const loop::Expr& place) const;
  Element named_at(std::vector<loop::Stmt>& body, const char* name, const loop::Expr& place) const;
  Element same(int64_t word) const;
  loop::Expr is_greater(const Element& a, const Element& b) const;
  Element greater(const Element& a, const Element& b) const;
  Element smaller(const Element& a, const Element& b) const;
  // Puts an element where `place` is, both of whose children are heaps, or below it: `levels` are below it.
  loop::Stmt sift(const loop::Expr& place, const loop::Expr& levels, const Element& element,
                  bool unrolled = false) const;

  loop::Buffer buffer_;
  loop::Expr begin_;
  int64_t capacity_;
  int words_;
  bool unrolled_;
};

}  // namespace quernel::lower
