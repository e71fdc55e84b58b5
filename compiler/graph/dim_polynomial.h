// Dims as sums of products, in which they are compared and put into their canonical form. For dim.cpp.
#pragma once

#include <array>
#include <functional>

#include "graph/dim.h"

namespace quernel {

int64_t floor_div(int64_t a, int64_t b);
// Interval ends saturate, and stay so: infinity minus something is still infinity.
int64_t add_ends(int64_t a, int64_t b);
int64_t negate_end(int64_t a);
Interval span_of(const std::array<__int128, 4>& ends);
Interval multiply(const Interval& a, const Interval& b);

// A dim as a sum of products. Factors are sorted by their text; a term's key is their texts.
struct Term {
  std::vector<Dim> factors;
  int64_t coefficient = 0;
};
struct Polynomial {
  std::map<std::string, Term> terms;
  bool overflow = false;  // a coefficient, or too many terms: then `terms` mean nothing

  void add(const std::vector<Dim>& factors, int64_t coefficient);
  void add(const std::string& key, const std::vector<Dim>& factors, int64_t coefficient);
  void add(const Polynomial& other, int64_t factor);
  // As Dim::bounds gives it for the sum, without making one.
  Interval bounds() const;
};

using MakeNode = std::function<Dim(Dim::Kind, const Dim&, const Dim&)>;

Polynomial polynomial(const Dim& d);
Polynomial product(const Polynomial& a, const Polynomial& b);
Dim from_polynomial(Polynomial p, const MakeNode& node);
// As s = m * (s floordiv m) for a symbol s that is a multiple of m, the quotient's coefficient is brought
// into 0 … m-1.
void reduce_quotients(Polynomial& p);
// The term's factors without those of `divisor`; nullopt when one is missing or the coefficient does not
// divide.
std::optional<Term> divide(const Term& term, const Term& divisor);
// The terms of `a` that `divisor` divides because a symbol is a multiple of something: their quotient, and
// the rest.
DimSplit split_multiples(const Dim& a, int64_t divisor, const MakeNode& node);

}  // namespace quernel
