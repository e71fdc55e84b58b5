// Canonical forms of expressions: equal index arithmetic becomes one node, and divisions and comparisons are
// decided from the ranges of loop variables where possible. Used by the simplify pass, which walks the
// statements.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "loop/index_ranges.h"
#include "loop/passes/affine.h"

namespace quernel::loop {

class ExprSimplifier {
 public:
  // Facts about a variable hold everywhere it is in scope. State them before simplifying expressions that use
  // it.
  void bound(const Var& var, Interval range);
  void replace(const Var& var, Expr value);  // `value` is already simplified

  Expr operator()(const Expr& e);
  Interval range(const Expr& e);  // requires a simplified i64 expression; unknown for others
  bool reads_memory(const Expr& e) const { return facts(e).reads_memory; }
  int size(const Expr& e) const { return facts(e).size; }  // number of nodes as a tree, at most kMaxSize
  static constexpr int kMaxSize = 1 << 20;

 private:
  struct Facts {
    Affine::Order order;
    int innermost = 0;  // number of the last declared variable it depends on
    int size = 1;
    bool reads_memory = false;
  };
  struct Hash {
    size_t operator()(const Expr& e) const;
  };
  struct Equal {
    bool operator()(const Expr& a, const Expr& b) const;
  };
  struct Division {
    Affine quotient, remainder;
  };

  const Facts& facts(const Expr& e) const { return facts_.at(e.get()); }
  Expr intern(const Expr& e);
  Expr rebuild(const Expr& model, const std::vector<Expr>& args);
  Expr rebuild_index(BinaryOp op, const Expr& a, const Expr& b);
  Expr rebuild_load(const Expr& model, const std::vector<Expr>& args);
  Expr compare(BinaryOp op, const Expr& a, const Expr& b);
  Expr is_negative(const Affine& difference);
  Expr reduce_comparison(const Expr& model, const Expr& x);
  Expr min_max(BinaryOp op, const Expr& a, const Expr& b);

  Affine affine(const Expr& e);
  Affine atom(const Expr& e);
  Expr expr(Affine a);
  Expr sum(const Affine& a, bool vectors);
  Affine recombine(Affine a);
  Interval range(const Affine& a);
  Interval atom_range(const Expr& e);

  std::optional<Division> divide(const Expr& x, int64_t divisor, bool truncates);
  Division floor_division(const Affine& a, int64_t divisor);
  Division opaque_division(const Affine& a, int64_t divisor);
  std::optional<Affine> flatten_quotient(const Affine& a, int64_t divisor);
  Affine quotient_of_remainder(const Expr& remainder);

  std::unordered_map<const VarNode*, Interval> bounds_;
  std::unordered_map<const VarNode*, Expr> replaced_;
  std::unordered_set<Expr, Hash, Equal> interned_;
  std::unordered_map<const ExprNode*, Facts> facts_;  // of interned nodes
  std::unordered_map<const ExprNode*, Expr> memo_;
  std::vector<Expr> kept_;  // keeps memo keys alive
  int variables_ = 0;
  std::unordered_map<const ExprNode*, Affine> affine_memo_;
  std::unordered_map<const ExprNode*, Interval> range_memo_;
  std::unordered_map<const ExprNode*, Affine> quotient_memo_;
};

}  // namespace quernel::loop
