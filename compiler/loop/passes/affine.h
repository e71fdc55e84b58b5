// Affine forms of i64 expressions: constant + lane * stride + a sum of coefficient * atom. Atoms are interned
// expressions that are not sums themselves; their order is the order of interning, so that equal values get
// equal forms.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "loop/ir.h"

namespace quernel::loop {

struct Affine {
  struct Order {
    int innermost = 0;  // number of the last declared variable it depends on
    bool composite = false;
    int interned = 0;  // tells all others apart
    auto operator<=>(const Order&) const = default;
  };
  struct Term {
    Expr atom;  // a scalar, or a vector of `lanes`
    Order order;
    int64_t factor;
  };
  int lanes = 1;
  int64_t constant = 0;
  int64_t stride = 0;       // per lane
  std::vector<Term> terms;  // by order, no factor is 0

  static Affine of_constant(int64_t value, int lanes = 1) { return {lanes, value, 0, {}}; }
  bool is_constant() const { return terms.empty() && stride == 0; }
};

Affine operator+(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, int64_t factor);
inline Affine operator-(const Affine& a, const Affine& b) { return a + b * -1; }
// `a` without the parts whose factor `unit` does not divide, divided by it; the rest goes to `rest`, whose
// constant is in [0, unit).
Affine take_multiples(const Affine& a, int64_t unit, Affine* rest);
// Magnitudes of the factors and of the stride that exceed 1: each once, largest first.
std::vector<int64_t> factor_magnitudes(const Affine& a);

}  // namespace quernel::loop
