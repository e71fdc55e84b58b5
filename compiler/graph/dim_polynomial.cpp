#include "graph/dim_polynomial.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace quernel {
namespace {

// Saturating arithmetic on interval ends.
int64_t clamp128(__int128 v) {
  if (v > INT64_MAX) return INT64_MAX;
  if (v < INT64_MIN) return INT64_MIN;
  return static_cast<int64_t>(v);
}

// A sum's terms, which hang on each other to the left.
Polynomial sum_of_terms(const Dim& d) {
  Polynomial p;
  const Dim* rest = &d;
  for (; rest->kind() == Dim::Kind::kAdd || rest->kind() == Dim::Kind::kSub; rest = &rest->lhs())
    p.add(polynomial(rest->rhs()), rest->kind() == Dim::Kind::kAdd ? 1 : -1);
  p.add(polynomial(*rest), 1);
  return p;
}

// Sums are kept, as the same ones (places in an arena) are compared many times.
std::shared_ptr<const Polynomial> kept_sum(const Dim& d) {
  constexpr size_t kMaxKept = 4096, kMaxTerms = 1 << 16;
  using Kept = std::pair<Dim, std::shared_ptr<const Polynomial>>;
  thread_local std::unordered_map<const Dim*, Kept> kept;  // by the node's operand
  thread_local size_t terms = 0;                           // of them all
  const Dim* node = &d.lhs();
  if (auto it = kept.find(node); it != kept.end()) return it->second.second;
  auto p = std::make_shared<const Polynomial>(sum_of_terms(d));
  terms += p->terms.size();
  if (kept.size() >= kMaxKept || terms > kMaxTerms) kept.clear(), terms = p->terms.size();
  kept.try_emplace(node, d, p);
  return p;
}

Dim from_term(const Term& term, int64_t coefficient, const MakeNode& node) {
  if (term.factors.empty()) return coefficient;
  Dim d = term.factors[0];
  for (size_t i = 1; i < term.factors.size(); ++i) d = node(Dim::Kind::kMul, d, term.factors[i]);
  return coefficient == 1 ? d : node(Dim::Kind::kMul, d, coefficient);
}

// The symbol s of (s floordiv m), where s is a multiple of m.
const Dim* symbol_of_quotient(const Dim& d) {
  if (d.kind() != Dim::Kind::kFloorDiv || d.lhs().kind() != Dim::Kind::kSymbol || !d.rhs().is_const())
    return nullptr;
  int64_t m = d.lhs().facts().multiple_of;
  return m > 1 && d.rhs().value() == m ? &d.lhs() : nullptr;
}

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

int64_t add_ends(int64_t a, int64_t b) {
  if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
  if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
  return clamp128(static_cast<__int128>(a) + b);
}
int64_t negate_end(int64_t a) {
  if (a == INT64_MAX) return INT64_MIN;
  return a == INT64_MIN ? INT64_MAX : -a;
}

Interval span_of(const std::array<__int128, 4>& ends) {
  return {clamp128(*std::min_element(ends.begin(), ends.end())),
          clamp128(*std::max_element(ends.begin(), ends.end()))};
}
Interval multiply(const Interval& a, const Interval& b) {
  using Wide = __int128;
  return span_of({Wide(a.lo) * b.lo, Wide(a.lo) * b.hi, Wide(a.hi) * b.lo, Wide(a.hi) * b.hi});
}

void Polynomial::add(const std::vector<Dim>& factors, int64_t coefficient) {
  std::string key;
  for (const Dim& f : factors) key += to_string(f) + "\n";
  add(key, factors, coefficient);
}

void Polynomial::add(const std::string& key, const std::vector<Dim>& factors, int64_t coefficient) {
  Term& term = terms[key];
  if (term.factors.empty()) term.factors = factors;
  overflow |= __builtin_add_overflow(term.coefficient, coefficient, &term.coefficient);
  if (term.coefficient == 0) terms.erase(key);
}

void Polynomial::add(const Polynomial& other, int64_t factor) {
  overflow |= other.overflow;
  for (const auto& [key, term] : other.terms) {
    int64_t c = 0;
    overflow |= __builtin_mul_overflow(term.coefficient, factor, &c);
    add(key, term.factors, c);
  }
}

Interval Polynomial::bounds() const {
  Interval sum{0, 0};
  for (const auto& [key, term] : terms) {
    bool minus = term.coefficient < 0 && term.coefficient != INT64_MIN;
    int64_t coefficient = minus ? -term.coefficient : term.coefficient;
    Interval product{coefficient, coefficient};
    for (const Dim& f : term.factors) product = multiply(product, f.bounds());
    if (minus) product = {negate_end(product.hi), negate_end(product.lo)};
    sum = {add_ends(sum.lo, product.lo), add_ends(sum.hi, product.hi)};
  }
  return sum;
}

Polynomial product(const Polynomial& a, const Polynomial& b) {
  constexpr size_t kMaxProducts = 1024;  // of terms: powers of long sums stay products
  Polynomial result;
  result.overflow = a.overflow || b.overflow || a.terms.size() * b.terms.size() > kMaxProducts;
  if (result.overflow) return result;
  for (const auto& [ka, x] : a.terms)
    for (const auto& [kb, y] : b.terms) {
      std::vector<Dim> factors = x.factors;
      factors.insert(factors.end(), y.factors.begin(), y.factors.end());
      std::stable_sort(factors.begin(), factors.end(),
                       [](const Dim& p, const Dim& q) { return to_string(p) < to_string(q); });
      int64_t c = 0;
      result.overflow |= __builtin_mul_overflow(x.coefficient, y.coefficient, &c);
      result.add(factors, c);
    }
  return result;
}

Polynomial polynomial(const Dim& d) {
  Polynomial p;
  switch (d.kind()) {
    case Dim::Kind::kConst:
      if (d.value() != 0) p.add(std::vector<Dim>{}, d.value());
      break;
    case Dim::Kind::kAdd:
    case Dim::Kind::kSub:
      return *kept_sum(d);
    case Dim::Kind::kMul:
      return product(polynomial(d.lhs()), polynomial(d.rhs()));
    default:
      p.add({d}, 1);
      break;
  }
  return p;
}

std::optional<Term> divide(const Term& term, const Term& divisor) {
  if (divisor.coefficient == 0 || term.coefficient % divisor.coefficient != 0) return std::nullopt;
  Term result{term.factors, term.coefficient / divisor.coefficient};
  for (const Dim& f : divisor.factors) {
    auto it = std::find(result.factors.begin(), result.factors.end(), f);
    if (it == result.factors.end()) return std::nullopt;
    result.factors.erase(it);
  }
  return result;
}

void reduce_quotients(Polynomial& p) {
  for (bool changed = true; changed && !p.overflow;) {
    changed = false;
    for (const auto& [key, term] : p.terms) {
      auto quotient = std::find_if(term.factors.begin(), term.factors.end(),
                                   [](const Dim& f) { return symbol_of_quotient(f) != nullptr; });
      if (quotient == term.factors.end()) continue;
      int64_t m = quotient->rhs().value(), times = floor_div(term.coefficient, m);
      if (times == 0) continue;
      std::vector<Dim> factors = term.factors, whole = factors;
      whole[static_cast<size_t>(quotient - term.factors.begin())] = Dim(quotient->lhs());
      std::stable_sort(whole.begin(), whole.end(),
                       [](const Dim& x, const Dim& y) { return to_string(x) < to_string(y); });
      p.add(factors, -times * m);
      p.add(whole, times);
      changed = true;
      break;
    }
  }
}

Dim from_polynomial(Polynomial p, const MakeNode& node) {
  reduce_quotients(p);
  // Positive terms first, the constant last.
  std::vector<const Term*> order;
  for (const auto& [key, term] : p.terms)
    if (!term.factors.empty() && term.coefficient > 0) order.push_back(&term);
  for (const auto& [key, term] : p.terms)
    if (!term.factors.empty() && term.coefficient < 0) order.push_back(&term);
  if (auto it = p.terms.find(""); it != p.terms.end()) order.push_back(&it->second);
  if (order.empty()) return 0;
  Dim sum = from_term(*order[0], order[0]->coefficient, node);
  for (size_t i = 1; i < order.size(); ++i) {
    bool minus = order[i]->coefficient < 0 && order[i]->coefficient != INT64_MIN;
    Dim term = from_term(*order[i], minus ? -order[i]->coefficient : order[i]->coefficient, node);
    sum = node(minus ? Dim::Kind::kSub : Dim::Kind::kAdd, sum, term);
  }
  return sum;
}

// The terms of `a` that `divisor` divides because a symbol is a multiple of something: their quotient, and
// the rest.
DimSplit split_multiples(const Dim& a, int64_t divisor, const MakeNode& node) {
  Polynomial p = polynomial(a), quotient, rest;
  for (const auto& [key, term] : p.terms) {
    int64_t common = std::gcd(term.coefficient, divisor), needed = divisor / common;
    auto symbol = std::find_if(term.factors.begin(), term.factors.end(), [&](const Dim& f) {
      return f.kind() == Dim::Kind::kSymbol && f.facts().multiple_of % needed == 0 && needed > 1;
    });
    int64_t coefficient = 0;
    if (symbol == term.factors.end() ||
        __builtin_mul_overflow(term.coefficient / common, symbol->facts().multiple_of / needed,
                               &coefficient)) {
      rest.add(term.factors, term.coefficient);
      continue;
    }
    std::vector<Dim> factors = term.factors;
    Dim& factor = factors[static_cast<size_t>(symbol - term.factors.begin())];
    factor = node(Dim::Kind::kFloorDiv, factor, factor.facts().multiple_of);
    std::stable_sort(factors.begin(), factors.end(),
                     [](const Dim& x, const Dim& y) { return to_string(x) < to_string(y); });
    quotient.add(factors, coefficient);
  }
  if (p.overflow || quotient.terms.empty()) return {0, a};
  return {from_polynomial(quotient, node), from_polynomial(rest, node)};
}

}  // namespace quernel
