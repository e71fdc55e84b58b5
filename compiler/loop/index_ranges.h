// Ranges of index arithmetic, for generators: on a target of 32-bit registers most of it needs no 64 bits.
#pragma once

#include <optional>
#include <unordered_map>

#include "loop/interval.h"
#include "loop/ir.h"

namespace quernel::loop {

// Of integers and bool of at most 32 bits; unknown for others.
Interval dtype_range(DType dtype);
// Of the i64 binary expression `e` whose operands are within `a` and `b`.
Interval binary_range(const ExprNode& e, Interval a, Interval b);

// Ranges of i64 expressions as they are written, operand by operand.
class IndexRanges {
 public:
  // Holds everywhere the variable is in scope; state it before asking about what uses it.
  void bound(const Var& var, Interval range) { bounds_[var.get()] = range; }
  // Of the loop's variable, inside the loop.
  void bound_loop(const Var& var, const Expr& extent);
  // Finds what elements of i64 buffers that the kernel allocates can hold: row offsets, for example. State
  // the ranges of the grid's variables before.
  void bound_elements(const StmtNode& body);
  // Of an element of such a buffer; unknown for others.
  Interval element(const BufferNode& b) const;
  // Unknown where `e` is no i64. `e` must outlive this object.
  Interval operator()(const Expr& e) { return of(*e); }
  Interval of(const ExprNode& e);

 private:
  Interval compute(const ExprNode& e);
  using Stored = std::unordered_map<const BufferNode*, Interval>;
  void read_stores(const StmtNode& s, Stored& stored);
  std::optional<Interval> stored_range(const Expr& e, const BufferNode& b);

  Stored elements_;
  std::unordered_map<const VarNode*, Interval> bounds_;
  std::unordered_map<const ExprNode*, Interval> memo_;
};

}  // namespace quernel::loop
