// What passes rewrite trees with: rebuilding a node over new operands, substituting variables and buffers
// with one memo entry per shared node, and fresh names.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "loop/ir.h"

namespace quernel::loop {

// `e` over other operands, through the builders, so that folds apply; `e` itself when nothing changed.
Expr with_args(const Expr& e, std::vector<Expr> args);

// Replaces variables by expressions and buffers by buffers. The memo is kept between calls: add replacements
// before rewriting what uses them.
class Substitution {
 public:
  // Replaces what `outer` does, too; `outer` outlives this.
  explicit Substitution(const Substitution* outer = nullptr) : outer_(outer) {}
  void replace(const Var& var, Expr value) { vars_[var.get()] = std::move(value); }
  void replace(const Buffer& buffer, Buffer with) { buffers_[buffer.get()] = std::move(with); }
  Expr operator()(const Expr& e);
  Buffer operator()(const Buffer& buffer) const;

 private:
  const Substitution* outer_;
  std::unordered_map<const VarNode*, Expr> vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
  std::unordered_map<const ExprNode*, Expr> memo_;
  std::vector<Expr> kept_;  // memo keys stay alive
};

// Names no variable or buffer of the kernel has.
class FreshNames {
 public:
  explicit FreshNames(const Kernel& kernel);
  std::string like(const std::string& name);  // NAME_1, NAME_2, ... the first one that is free
  Var var(const std::string& name, Type type);
  Buffer buffer(const BufferNode& model);  // a copy under a fresh name

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_;
};

Var make_var(std::string name, Type type = kIndexType);

}  // namespace quernel::loop
