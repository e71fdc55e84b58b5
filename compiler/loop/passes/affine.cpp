#include "loop/passes/affine.h"

#include <algorithm>

#include "loop/interval.h"

namespace quernel::loop {
namespace {
// Index arithmetic wraps, as the kernels' own does.
int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
}  // namespace

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum;
  sum.lanes = std::max(a.lanes, b.lanes);
  sum.constant = wrapping_add(a.constant, b.constant);
  sum.stride = wrapping_add(a.stride, b.stride);
  sum.terms.reserve(a.terms.size() + b.terms.size());
  auto x = a.terms.begin(), y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->order < y->order)) {
      sum.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->order < x->order) {
      sum.terms.push_back(*y++);
    } else {
      int64_t factor = wrapping_add(x->factor, y->factor);
      if (factor != 0) sum.terms.push_back({x->atom, x->order, factor});
      ++x, ++y;
    }
  }
  return sum;
}

Affine operator*(const Affine& a, int64_t factor) {
  Affine product;
  product.lanes = a.lanes;
  product.constant = wrapping_multiply(a.constant, factor);
  product.stride = wrapping_multiply(a.stride, factor);
  for (const Affine::Term& term : a.terms)
    if (int64_t f = wrapping_multiply(term.factor, factor); f != 0)
      product.terms.push_back({term.atom, term.order, f});
  return product;
}

Affine take_multiples(const Affine& a, int64_t unit, Affine* rest) {
  Affine multiples = Affine::of_constant(floor_divide(a.constant, unit), a.lanes);
  *rest = Affine::of_constant(floor_remainder(a.constant, unit), a.lanes);
  (a.stride % unit == 0 ? multiples.stride : rest->stride) =
      a.stride % unit == 0 ? a.stride / unit : a.stride;
  for (const Affine::Term& term : a.terms) {
    if (term.factor % unit == 0)
      multiples.terms.push_back({term.atom, term.order, term.factor / unit});
    else
      rest->terms.push_back(term);
  }
  return multiples;
}

std::vector<int64_t> factor_magnitudes(const Affine& a) {
  std::vector<int64_t> magnitudes;
  auto add = [&](int64_t factor) {
    if (factor > 1 || (factor < -1 && factor != INT64_MIN))
      magnitudes.push_back(factor < 0 ? -factor : factor);
  };
  add(a.stride);
  for (const Affine::Term& term : a.terms) add(term.factor);
  std::sort(magnitudes.begin(), magnitudes.end(), std::greater<>());
  magnitudes.erase(std::unique(magnitudes.begin(), magnitudes.end()), magnitudes.end());
  return magnitudes;
}

}  // namespace quernel::loop
