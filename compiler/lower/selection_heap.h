// The first elements of a line in sorted order, without sorting the rest. Uses a binary heap whose root is
// the last, in sorted order, of the elements kept so far. Its loops have fixed trip counts and no branches.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// Returns the key of an element: an integer in sorted order, i64 for 64-bit dtypes, else i32. NaN is above
// everything, and zeros are equal; `descending` reverses the order. Requires a dtype that the schedule
// selects from (`selects_first`).
loop::Expr sort_key(const loop::Expr& x, bool descending);

// A heap in a buffer of i64, from `begin`, of `capacity` elements. Equal keys are ordered by position, the
// smaller first. Behind them, to the end of the tree's last level, are elements that sort before all others
// (`schedule::selection_slots` in all). An element is one word, with its key above its position along the
// line, or two words, its key and its position.
class SelectionHeap {
 public:
  struct Element {
    loop::Expr key, position;  // as stored in the buffer; no position if the key is stored above it
  };

  // `words`: per element (`schedule::selection_words`). `unrolled`: sifts from the root have no loop, because
  // a GPU's driver may limit loop iterations.
  SelectionHeap(loop::Buffer buffer, loop::Expr begin, int64_t capacity, int words, bool unrolled = false);

  Element element(const loop::Expr& key, const loop::Expr& position) const;
  Element last_of_all() const;  // sorts behind all others
  loop::Expr position(const Element& element) const;
  loop::Expr last_key(DType dtype) const;  // among the elements kept

  loop::Stmt put(const loop::Expr& place, const Element& element) const;
  loop::Stmt make() const;  // turns `capacity` elements, put in any order, into a heap
  loop::Stmt replace_last(const Element& element) const;
  // Removes the elements, the last one first, and calls `taken(index in sorted order, element)`.
  loop::Stmt take(const std::function<loop::Stmt(loop::Expr, Element)>& taken) const;

 private:
  Element at(const loop::Expr& place) const;
  Element named_at(std::vector<loop::Stmt>& body, const char* name, const loop::Expr& place) const;
  Element same(int64_t word) const;
  loop::Expr is_greater(const Element& a, const Element& b) const;
  Element greater(const Element& a, const Element& b) const;
  Element smaller(const Element& a, const Element& b) const;
  // Puts an element at `place` or below it; both children of `place` must be heaps. `levels`: levels below
  // `place`.
  loop::Stmt sift(const loop::Expr& place, const loop::Expr& levels, const Element& element,
                  bool unrolled = false) const;

  loop::Buffer buffer_;
  loop::Expr begin_;
  int64_t capacity_;
  int words_;
  bool unrolled_;
};

}  // namespace quernel::lower
