// Ranges of index arithmetic, for code generators: on a target with 32-bit registers most of it does not need
// 64 bits.
#pragma once

#include <optional>
#include <unordered_map>

#include "loop/interval.h"
#include "loop/ir.h"

namespace quernel::loop {

// Returns the range of integers and bool of at most 32 bits; unknown for others.
Interval dtype_range(DType dtype);
// Returns the range of the i64 binary expression `e` for operands within `a` and `b`.
Interval binary_range(const ExprNode& e, Interval a, Interval b);

// Ranges of i64 expressions in the form they are written in, operand by operand.
class IndexRanges {
 public:
  // States a range that holds everywhere the variable is in scope. Call before asking about expressions that
  // use it.
  void bound(const Var& var, Interval range) { bounds_[var.get()] = range; }
  // The same for a loop's variable, inside the loop.
  void bound_loop(const Var& var, const Expr& extent);
  // Finds the possible values of the elements of i64 buffers that the kernel allocates, such as row offsets.
  // State the ranges of the grid's variables before.
  void bound_elements(const StmtNode& body);
  // Returns the range of an element of such a buffer; unknown for others.
  Interval element(const BufferNode& b) const;
  // Returns the range of `e`; unknown if it is not an i64. `e` must outlive this object.
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
