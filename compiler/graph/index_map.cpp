#include "graph/index_map.h"

#include <algorithm>
#include <map>

#include "support/diagnostic.h"

namespace quernel {
namespace {

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b < 0) ? q - 1 : q;
}

// A sum as a canonical list of terms: (non-constant, non-sum atom) * coefficient, plus a constant.
struct Sum {
  std::vector<std::pair<IndexExpr, int64_t>> terms;
  int64_t constant = 0;

  void add(const IndexExpr& e, int64_t factor) {
    switch (e.kind()) {
      case IndexExpr::Kind::kConst:
        constant += e.value() * factor;
        return;
      case IndexExpr::Kind::kAdd:
        add(e.lhs(), factor), add(e.rhs(), factor);
        return;
      case IndexExpr::Kind::kMul:
        add(e.lhs(), factor * e.value());
        return;
      default:
        break;
    }
    for (auto& [atom, coefficient] : terms)
      if (atom == e) {
        coefficient += factor;
        return;
      }
    terms.emplace_back(e, factor);
  }
};

// k*c*(x floordiv c) + k*(x mod c) is k*x.
void rejoin_digits(Sum& sum) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < sum.terms.size() && !changed; ++i) {
      auto [mod, k] = sum.terms[i];
      if (mod.kind() != IndexExpr::Kind::kMod || k == 0) continue;
      for (size_t j = 0; j < sum.terms.size(); ++j) {
        auto [div, kc] = sum.terms[j];
        if (div.kind() != IndexExpr::Kind::kFloorDiv || div.value() != mod.value() || kc != k * mod.value() ||
            !(div.lhs() == mod.lhs()))
          continue;
        sum.terms[i].second = sum.terms[j].second = 0;
        sum.add(mod.lhs(), k);
        changed = true;
        break;
      }
    }
  }
}

// Stable order: axes by index first, then other atoms in order of appearance.
void sort_terms(Sum& sum) {
  rejoin_digits(sum);
  std::erase_if(sum.terms, [](const auto& t) { return t.second == 0; });
  std::stable_sort(sum.terms.begin(), sum.terms.end(), [](const auto& a, const auto& b) {
    auto key = [](const IndexExpr& e) { return e.kind() == IndexExpr::Kind::kAxis ? e.value() : INT64_MAX; };
    return key(a.first) < key(b.first);
  });
}

}  // namespace

IndexExpr::IndexExpr(int64_t value) : node_(std::make_shared<Node>(Node{Kind::kConst, value, {}})) {}
IndexExpr IndexExpr::axis(int index) {
  return IndexExpr(std::make_shared<Node>(Node{Kind::kAxis, index, {}}));
}

bool IndexExpr::operator==(const IndexExpr& other) const {
  if (node_ == other.node_) return true;
  return node_->kind == other.node_->kind && node_->value == other.node_->value &&
         node_->args == other.node_->args;
}

IndexExpr operator*(const IndexExpr& a, int64_t factor) {
  using K = IndexExpr::Kind;
  if (factor == 0) return 0;
  if (factor == 1) return a;
  if (a.is_const()) return a.value() * factor;
  if (a.kind() == K::kMul) return a.lhs() * (a.value() * factor);
  if (a.kind() == K::kAdd) return a.lhs() * factor + a.rhs() * factor;
  return IndexExpr(std::make_shared<IndexExpr::Node>(IndexExpr::Node{K::kMul, factor, {a}}));
}

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) {
  using K = IndexExpr::Kind;
  if (a.is_const() && a.value() == 0) return b;
  if (b.is_const() && b.value() == 0) return a;
  Sum sum;
  sum.add(a, 1);
  sum.add(b, 1);
  sort_terms(sum);
  IndexExpr result = 0;
  bool first = true;
  auto append = [&](const IndexExpr& term) {
    result = first
                 ? term
                 : IndexExpr(std::make_shared<IndexExpr::Node>(IndexExpr::Node{K::kAdd, 0, {result, term}}));
    first = false;
  };
  for (const auto& [atom, coefficient] : sum.terms) append(atom * coefficient);
  if (sum.constant != 0 || first) append(sum.constant);
  return result;
}

IndexExpr floordiv(const IndexExpr& a, int64_t divisor) {
  QUERNEL_ASSERT(divisor > 0);
  if (divisor == 1) return a;
  if (a.is_const()) return floor_div(a.value(), divisor);
  if (a.kind() == IndexExpr::Kind::kMul && a.value() % divisor == 0) return a.lhs() * (a.value() / divisor);
  if (a.kind() == IndexExpr::Kind::kFloorDiv) return floordiv(a.lhs(), a.value() * divisor);
  return IndexExpr(
      std::make_shared<IndexExpr::Node>(IndexExpr::Node{IndexExpr::Kind::kFloorDiv, divisor, {a}}));
}

IndexExpr floormod(const IndexExpr& a, int64_t divisor) {
  QUERNEL_ASSERT(divisor > 0);
  if (divisor == 1) return 0;
  if (a.is_const()) return a.value() - floor_div(a.value(), divisor) * divisor;
  if (a.kind() == IndexExpr::Kind::kMul && a.value() % divisor == 0) return 0;
  return IndexExpr(std::make_shared<IndexExpr::Node>(IndexExpr::Node{IndexExpr::Kind::kMod, divisor, {a}}));
}

std::optional<AffineForm> as_affine(const IndexExpr& e, int axes) {
  Sum sum;
  sum.add(e, 1);
  AffineForm form{std::vector<int64_t>(axes, 0), sum.constant};
  for (const auto& [atom, coefficient] : sum.terms) {
    if (coefficient == 0) continue;
    if (atom.kind() != IndexExpr::Kind::kAxis || atom.value() >= axes) return std::nullopt;
    form.coefficients[atom.value()] += coefficient;
  }
  return form;
}

IndexExpr from_affine(const AffineForm& form) {
  IndexExpr e = 0;
  for (size_t i = 0; i < form.coefficients.size(); ++i)
    e = e + IndexExpr::axis(static_cast<int>(i)) * form.coefficients[i];
  return e + form.offset;
}

bool uses_axis(const IndexExpr& e, int index) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return false;
    case IndexExpr::Kind::kAxis:
      return e.value() == index;
    case IndexExpr::Kind::kAdd:
      return uses_axis(e.lhs(), index) || uses_axis(e.rhs(), index);
    default:
      return uses_axis(e.lhs(), index);
  }
}

IndexExpr substitute(const IndexExpr& e, const std::vector<IndexExpr>& values) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return e;
    case IndexExpr::Kind::kAxis:
      return values[e.value()];
    case IndexExpr::Kind::kAdd:
      return substitute(e.lhs(), values) + substitute(e.rhs(), values);
    case IndexExpr::Kind::kMul:
      return substitute(e.lhs(), values) * e.value();
    case IndexExpr::Kind::kFloorDiv:
      return floordiv(substitute(e.lhs(), values), e.value());
    case IndexExpr::Kind::kMod:
      return floormod(substitute(e.lhs(), values), e.value());
  }
  return e;
}

IndexRange range_of(const IndexExpr& e, const std::vector<int64_t>& extents) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return {e.value(), e.value()};
    case IndexExpr::Kind::kAxis:
      return {0, std::max<int64_t>(extents[e.value()] - 1, 0)};
    case IndexExpr::Kind::kAdd: {
      IndexRange a = range_of(e.lhs(), extents), b = range_of(e.rhs(), extents);
      return {a.lo + b.lo, a.hi + b.hi};
    }
    case IndexExpr::Kind::kMul: {
      IndexRange a = range_of(e.lhs(), extents);
      int64_t x = a.lo * e.value(), y = a.hi * e.value();
      return {std::min(x, y), std::max(x, y)};
    }
    case IndexExpr::Kind::kFloorDiv: {
      IndexRange a = range_of(e.lhs(), extents);
      return {floor_div(a.lo, e.value()), floor_div(a.hi, e.value())};
    }
    case IndexExpr::Kind::kMod: {
      IndexRange a = range_of(e.lhs(), extents);
      if (floor_div(a.lo, e.value()) == floor_div(a.hi, e.value())) {
        int64_t base = floor_div(a.lo, e.value()) * e.value();
        return {a.lo - base, a.hi - base};
      }
      return {0, e.value() - 1};
    }
  }
  return {0, 0};
}

IndexExpr simplify(const IndexExpr& e, const std::vector<int64_t>& extents) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return e;
    case IndexExpr::Kind::kAxis:
      return extents[e.value()] == 1 ? IndexExpr(0) : e;
    case IndexExpr::Kind::kAdd:
      return simplify(e.lhs(), extents) + simplify(e.rhs(), extents);
    case IndexExpr::Kind::kMul:
      return simplify(e.lhs(), extents) * e.value();
    default:
      break;
  }
  bool is_div = e.kind() == IndexExpr::Kind::kFloorDiv;
  int64_t c = e.value();
  IndexExpr inner = simplify(e.lhs(), extents);
  // Split the sum into multiples of c and a rest: (c*q + r) div c = q + r div c, (c*q + r) mod c = r mod c.
  Sum sum;
  sum.add(inner, 1);
  IndexExpr quotient = 0, rest = 0;
  for (const auto& [atom, coefficient] : sum.terms) {
    if (coefficient % c == 0)
      quotient = quotient + atom * (coefficient / c);
    else
      rest = rest + atom * coefficient;
  }
  int64_t whole = floor_div(sum.constant, c);
  quotient = quotient + whole;
  rest = rest + (sum.constant - whole * c);
  IndexRange r = range_of(rest, extents);
  if (floor_div(r.lo, c) == floor_div(r.hi, c)) {
    int64_t k = floor_div(r.lo, c);
    return is_div ? quotient + k : rest + (-k * c);
  }
  // (g*a + r) div (g*b) with 0 <= r < g is a div b: lets nested reshapes cancel.
  int64_t g = c;
  IndexExpr small = 0;
  Sum rest_sum;
  rest_sum.add(rest, 1);
  for (const auto& [atom, coefficient] : rest_sum.terms) {
    int64_t common = std::__gcd(g, coefficient < 0 ? -coefficient : coefficient);
    if (common > 1) {
      // Try to treat atoms with coefficient divisible by `common` as the large part.
      IndexExpr large = 0;
      small = rest_sum.constant % common;
      IndexExpr kept = 0;
      for (const auto& [other, k] : rest_sum.terms) {
        if (k % common == 0)
          large = large + other * (k / common);
        else
          kept = kept + other * k;
      }
      large = large + floor_div(rest_sum.constant, common);
      IndexExpr low = kept + (rest_sum.constant - floor_div(rest_sum.constant, common) * common);
      IndexRange low_range = range_of(low, extents);
      if (low_range.lo >= 0 && low_range.hi < common && c % common == 0 && common < c) {
        if (is_div) return quotient + floordiv(large, c / common);
        return floormod(large, c / common) * common + low;
      }
    }
  }
  return is_div ? quotient + floordiv(rest, c) : floormod(rest, c);
}

int64_t evaluate(const IndexExpr& e, const int64_t* point) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return e.value();
    case IndexExpr::Kind::kAxis:
      return point[e.value()];
    case IndexExpr::Kind::kAdd:
      return evaluate(e.lhs(), point) + evaluate(e.rhs(), point);
    case IndexExpr::Kind::kMul:
      return evaluate(e.lhs(), point) * e.value();
    case IndexExpr::Kind::kFloorDiv:
      return floor_div(evaluate(e.lhs(), point), e.value());
    case IndexExpr::Kind::kMod: {
      int64_t a = evaluate(e.lhs(), point);
      return a - floor_div(a, e.value()) * e.value();
    }
  }
  return 0;
}

std::string to_string(const IndexExpr& e, const std::vector<std::string>* names) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return std::to_string(e.value());
    case IndexExpr::Kind::kAxis:
      return names ? (*names)[e.value()] : "d" + std::to_string(e.value());
    case IndexExpr::Kind::kAdd:
      return to_string(e.lhs(), names) + " + " + to_string(e.rhs(), names);
    case IndexExpr::Kind::kMul:
      return std::to_string(e.value()) + "*" + to_string(e.lhs(), names);
    case IndexExpr::Kind::kFloorDiv:
      return "((" + to_string(e.lhs(), names) + ") floordiv " + std::to_string(e.value()) + ")";
    case IndexExpr::Kind::kMod:
      return "((" + to_string(e.lhs(), names) + ") mod " + std::to_string(e.value()) + ")";
  }
  return {};
}

}  // namespace quernel
