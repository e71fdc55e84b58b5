// Tools for passes that rewrite trees: rebuilding a node over new operands, substituting variables and
// buffers with one memo entry per shared node, and fresh names.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "loop/ir.h"

namespace quernel::loop {

// Returns `e` over other operands, built through the builders, so that folds apply; `e` itself if nothing
// changed.
Expr with_args(const Expr& e, std::vector<Expr> args);

// Returns a kMultiplyMatrices or kStoreMatrix with other places, and accumulators in `sums`.
Stmt with_places(const StmtNode& s, const Buffer& sums,
                 const std::function<MatrixPlace(const MatrixPlace&)>& place);

// Replaces variables by expressions and buffers by buffers. The memo is kept between calls: add replacements
// before rewriting expressions that use them.
class Substitution {
 public:
  // Applies the replacements of `outer`, too, which must outlive this object.
  explicit Substitution(const Substitution* outer = nullptr) : outer_(outer) {}
  void replace(const Var& var, Expr value) { vars_[var.get()] = std::move(value); }
  void replace(const Buffer& buffer, Buffer with) { buffers_[buffer.get()] = std::move(with); }
  Expr operator()(const Expr& e);
  Buffer operator()(const Buffer& buffer) const;
  MatrixPlace operator()(const MatrixPlace& place) {
    return {(*this)(place.buffer), (*this)(place.index), place.row_stride, place.column_stride};
  }

 private:
  const Substitution* outer_;
  std::unordered_map<const VarNode*, Expr> vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
  std::unordered_map<const ExprNode*, Expr> memo_;
  std::vector<Expr> kept_;  // keeps memo keys alive
};

// Names that no variable or buffer of the kernel has.
class FreshNames {
 public:
  explicit FreshNames(const Kernel& kernel);
  std::string like(const std::string& name);  // NAME_1, NAME_2, ...: the first free one
  Var var(const std::string& name, Type type);
  Buffer buffer(const BufferNode& model);  // a copy with a fresh name

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_;
};

Var make_var(std::string name, Type type = kIndexType);

}  // namespace quernel::loop
