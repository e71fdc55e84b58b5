#include "graph/nonzero_dim.h"

#include <algorithm>

namespace quernel {

Dim nonzero(const Dim& dim) {
  if (dim.kind() == Dim::Kind::kMul) return nonzero(dim.lhs()) * nonzero(dim.rhs());
  if (dim.kind() == Dim::Kind::kMax && dim.rhs() == Dim(1)) return nonzero(dim.lhs());
  if (dim.kind() != Dim::Kind::kSymbol || dim.facts().min >= 1) return dim;
  Symbol facts = dim.facts();
  facts.min = facts.multiple_of;
  return Dim::symbol(std::move(facts));
}

Dim as_declared(const Dim& dim, const std::vector<Symbol>& symbols) {
  if (dim.is_const()) return dim;
  std::vector<Symbol> used;
  dim.collect_symbols(used);
  std::map<std::string, Dim> declared;
  for (const Symbol& s : symbols)
    if (std::any_of(used.begin(), used.end(), [&](const Symbol& u) { return u.name == s.name; }))
      declared.emplace(s.name, Dim::symbol(s));
  return dim.substitute(declared);
}

Dim as_divisor(const Dim& dim, const std::vector<Symbol>& symbols) {
  return dim.is_const() ? dim : max(as_declared(dim, symbols), 1);
}

}  // namespace quernel
