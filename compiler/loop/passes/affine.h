// Affine forms of i64 expressions: constant + lane * stride + a sum of coefficient * atom. Atoms are interned
// expressions that are not sums themselves. They are sorted in the order of interning, so that equal values
// get equal forms.
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
    int interned = 0;  // distinguishes the others
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
  std::vector<Term> terms;  // in order; no factor is 0

  static Affine of_constant(int64_t value, int lanes = 1) { return {lanes, value, 0, {}}; }
  bool is_constant() const { return terms.empty() && stride == 0; }
};

Affine operator+(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, int64_t factor);
inline Affine operator-(const Affine& a, const Affine& b) { return a + b * -1; }
// Returns the parts of `a` whose factor `unit` divides, divided by it. The others go to `rest`, whose
// constant is in [0, unit).
Affine take_multiples(const Affine& a, int64_t unit, Affine* rest);
// Returns the magnitudes above 1 of the factors and the stride: each once, largest first.
std::vector<int64_t> factor_magnitudes(const Affine& a);

}  // namespace quernel::loop
