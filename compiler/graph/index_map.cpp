#include "graph/index_map.h"

#include <algorithm>
#include <map>

#include "graph/nonzero_dim.h"
#include "support/diagnostic.h"

namespace quernel {
namespace {

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b < 0) ? q - 1 : q;
}

// A sum as a canonical list of terms: (non-constant, non-sum atom) * coefficient, plus a constant.
struct Sum {
  std::vector<std::pair<IndexExpr, Dim>> terms;
  Dim constant = 0;

  void add(const IndexExpr& e, const Dim& factor) {
    switch (e.kind()) {
      case IndexExpr::Kind::kConst:
        constant = constant + e.value() * factor;
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
        coefficient = coefficient + factor;
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
      if (mod.kind() != IndexExpr::Kind::kMod || k == Dim(0)) continue;
      for (size_t j = 0; j < sum.terms.size(); ++j) {
        auto [div, kc] = sum.terms[j];
        if (div.kind() != IndexExpr::Kind::kFloorDiv || !(div.value() == mod.value()) ||
            !(kc == k * mod.value()) || !(div.lhs() == mod.lhs()))
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
  std::erase_if(sum.terms, [](const auto& t) { return t.second == Dim(0); });
  std::stable_sort(sum.terms.begin(), sum.terms.end(), [](const auto& a, const auto& b) {
    auto key = [](const IndexExpr& e) {
      return e.kind() == IndexExpr::Kind::kAxis ? e.axis_index() : INT32_MAX;
    };
    return key(a.first) < key(b.first);
  });
}

bool is_zero(const Dim& d) { return d.is_const() && d.value() == 0; }
bool is_one(const Dim& d) { return d.is_const() && d.value() == 1; }

}  // namespace

IndexExpr::IndexExpr(Dim value)
    : node_(std::make_shared<Node>(Node{Kind::kConst, std::move(value), -1, {}})) {}
IndexExpr IndexExpr::axis(int index) {
  return IndexExpr(std::make_shared<Node>(Node{Kind::kAxis, 0, index, {}}));
}

bool IndexExpr::operator==(const IndexExpr& other) const {
  if (node_ == other.node_) return true;
  return node_->kind == other.node_->kind && node_->value == other.node_->value &&
         node_->axis == other.node_->axis && node_->args == other.node_->args;
}

IndexExpr operator*(const IndexExpr& a, const Dim& factor) {
  using K = IndexExpr::Kind;
  if (is_zero(factor)) return 0;
  if (is_one(factor)) return a;
  if (a.is_const()) return a.value() * factor;
  if (a.kind() == K::kMul) return a.lhs() * (a.value() * factor);
  if (a.kind() == K::kAdd) return a.lhs() * factor + a.rhs() * factor;
  return IndexExpr(std::make_shared<IndexExpr::Node>(IndexExpr::Node{K::kMul, factor, -1, {a}}));
}

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) {
  using K = IndexExpr::Kind;
  if (a.is_const() && is_zero(a.value())) return b;
  if (b.is_const() && is_zero(b.value())) return a;
  Sum sum;
  sum.add(a, 1);
  sum.add(b, 1);
  sort_terms(sum);
  IndexExpr result = 0;
  bool first = true;
  auto append = [&](const IndexExpr& term) {
    result =
        first ? term
              : IndexExpr(std::make_shared<IndexExpr::Node>(IndexExpr::Node{K::kAdd, 0, -1, {result, term}}));
    first = false;
  };
  for (const auto& [atom, coefficient] : sum.terms) append(atom * coefficient);
  if (!is_zero(sum.constant) || first) append(sum.constant);
  return result;
}

IndexExpr floordiv(const IndexExpr& a, const Dim& divisor) {
  QUERNEL_ASSERT(!divisor.is_const() || divisor.value() > 0);
  if (is_one(divisor)) return a;
  if (a.is_const()) return floordiv(a.value(), divisor);
  if (a.kind() == IndexExpr::Kind::kMul)
    if (std::optional<Dim> q = divide_exactly(a.value(), divisor)) return a.lhs() * *q;
  if (a.kind() == IndexExpr::Kind::kFloorDiv) return floordiv(a.lhs(), a.value() * divisor);
  return IndexExpr(
      std::make_shared<IndexExpr::Node>(IndexExpr::Node{IndexExpr::Kind::kFloorDiv, divisor, -1, {a}}));
}

IndexExpr floormod(const IndexExpr& a, const Dim& divisor) {
  QUERNEL_ASSERT(!divisor.is_const() || divisor.value() > 0);
  if (is_one(divisor)) return 0;
  if (a.is_const()) return floormod(a.value(), divisor);
  if (a.kind() == IndexExpr::Kind::kMul && divide_exactly(a.value(), divisor)) return 0;
  return IndexExpr(
      std::make_shared<IndexExpr::Node>(IndexExpr::Node{IndexExpr::Kind::kMod, divisor, -1, {a}}));
}

std::optional<AffineForm> as_affine(const IndexExpr& e, int axes) {
  Sum sum;
  sum.add(e, 1);
  AffineForm form{std::vector<Dim>(axes, 0), sum.constant};
  for (const auto& [atom, coefficient] : sum.terms) {
    if (is_zero(coefficient)) continue;
    if (atom.kind() != IndexExpr::Kind::kAxis || atom.axis_index() >= axes) return std::nullopt;
    form.coefficients[atom.axis_index()] += coefficient;
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
      return e.axis_index() == index;
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
      return values[e.axis_index()];
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

namespace {

// An index along a dim exists where the dim has elements.
IndexRange range_along(const Dim& extent) {
  return {0, extent.is_const() ? max(extent - 1, 0) : nonzero(extent) - 1};
}

// a floordiv b, where b is at least 1 although its symbols do not say so.
Dim floor_quotient(const Dim& a, const Dim& b) {
  if (b.bounds().lo > 0) return floordiv(a, b);
  DimSplit split = split_by(a, b);
  if (always_le(0, split.rest) && always_lt(split.rest, b)) return split.multiple;
  return floordiv(a, nonzero(b));
}

}  // namespace

IndexRange range_of(const IndexExpr& e, const Shape& extents) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return {e.value(), e.value()};
    case IndexExpr::Kind::kAxis:
      return range_along(extents[e.axis_index()]);
    case IndexExpr::Kind::kAdd: {
      IndexRange a = range_of(e.lhs(), extents), b = range_of(e.rhs(), extents);
      return {a.lo + b.lo, a.hi + b.hi};
    }
    case IndexExpr::Kind::kMul: {
      IndexRange a = range_of(e.lhs(), extents);
      Dim x = a.lo * e.value(), y = a.hi * e.value();
      if (always_le(0, e.value())) return {x, y};
      return always_le(e.value(), 0) ? IndexRange{y, x} : IndexRange{min(x, y), max(x, y)};
    }
    case IndexExpr::Kind::kFloorDiv: {
      IndexRange a = range_of(e.lhs(), extents);
      return {floor_quotient(a.lo, e.value()), floor_quotient(a.hi, e.value())};
    }
    case IndexExpr::Kind::kMod: {
      IndexRange a = range_of(e.lhs(), extents);
      Dim digit = floor_quotient(a.lo, e.value());
      if (digit == floor_quotient(a.hi, e.value())) {
        Dim base = digit * e.value();
        return {a.lo - base, a.hi - base};
      }
      return {0, e.value() - 1};
    }
  }
  return {0, 0};
}

namespace {

// The constant part of a sum's remainder by g, and atoms whose coefficients g does not divide; the rest
// divided by g.
struct Digits {
  IndexExpr large = 0, small = 0;
};
Digits split_digits(const Sum& sum, const Dim& g) {
  Digits d;
  for (const auto& [atom, coefficient] : sum.terms) {
    if (std::optional<Dim> q = divide_exactly(coefficient, g))
      d.large = d.large + atom * *q;
    else
      d.small = d.small + atom * coefficient;
  }
  DimSplit constant = split_by(sum.constant, g);
  d.large = d.large + constant.multiple;
  d.small = d.small + constant.rest;
  return d;
}

}  // namespace

IndexExpr simplify(const IndexExpr& e, const Shape& extents) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return e;
    case IndexExpr::Kind::kAxis:
      return is_one(extents[e.axis_index()]) ? IndexExpr(0) : e;
    case IndexExpr::Kind::kAdd:
      return simplify(e.lhs(), extents) + simplify(e.rhs(), extents);
    case IndexExpr::Kind::kMul:
      return simplify(e.lhs(), extents) * e.value();
    default:
      break;
  }
  bool is_div = e.kind() == IndexExpr::Kind::kFloorDiv;
  Dim c = e.value();
  IndexExpr inner = simplify(e.lhs(), extents);
  // Split the sum into multiples of c and a rest: (c*q + r) div c = q + r div c, (c*q + r) mod c = r mod c.
  Sum sum;
  sum.add(inner, 1);
  Digits parts = split_digits(sum, c);
  IndexExpr quotient = parts.large, rest = parts.small;
  IndexRange r = range_of(rest, extents);
  Dim k = floor_quotient(r.lo, c);
  if (k == floor_quotient(r.hi, c)) return is_div ? quotient + k : rest + (Dim(0) - k) * c;
  // (g*a + r) div (g*b) with 0 <= r < g is a div b: lets nested reshapes cancel.
  Sum rest_sum;
  rest_sum.add(rest, 1);
  for (const auto& [atom, coefficient] : rest_sum.terms) {
    Dim common = coefficient;
    if (coefficient.is_const() && c.is_const())
      common = std::__gcd(c.value(), coefficient.value() < 0 ? -coefficient.value() : coefficient.value());
    if (is_one(common) || is_zero(common) || common == c) continue;
    std::optional<Dim> outer = divide_exactly(c, common);
    if (!outer || always_le(common, 0)) continue;
    // Atoms whose coefficients `common` divides are the large part.
    Digits digits = split_digits(rest_sum, common);
    IndexRange low = range_of(digits.small, extents);
    if (!always_le(0, low.lo) || !always_lt(low.hi, common)) continue;
    if (is_div) return quotient + floordiv(digits.large, *outer);
    return floormod(digits.large, *outer) * common + digits.small;
  }
  return is_div ? quotient + floordiv(rest, c) : floormod(rest, c);
}

int64_t evaluate(const IndexExpr& e, const int64_t* point) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return e.value().value();
    case IndexExpr::Kind::kAxis:
      return point[e.axis_index()];
    case IndexExpr::Kind::kAdd:
      return evaluate(e.lhs(), point) + evaluate(e.rhs(), point);
    case IndexExpr::Kind::kMul:
      return evaluate(e.lhs(), point) * e.value().value();
    case IndexExpr::Kind::kFloorDiv:
      return floor_div(evaluate(e.lhs(), point), e.value().value());
    case IndexExpr::Kind::kMod: {
      int64_t a = evaluate(e.lhs(), point), c = e.value().value();
      return a - floor_div(a, c) * c;
    }
  }
  return 0;
}

IndexExpr bind_symbols(const IndexExpr& e, const std::map<std::string, int64_t>& bindings) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return e.value().substitute(bindings);
    case IndexExpr::Kind::kAxis:
      return e;
    case IndexExpr::Kind::kAdd:
      return bind_symbols(e.lhs(), bindings) + bind_symbols(e.rhs(), bindings);
    case IndexExpr::Kind::kMul:
      return bind_symbols(e.lhs(), bindings) * e.value().substitute(bindings);
    case IndexExpr::Kind::kFloorDiv:
      return floordiv(bind_symbols(e.lhs(), bindings), e.value().substitute(bindings));
    case IndexExpr::Kind::kMod:
      return floormod(bind_symbols(e.lhs(), bindings), e.value().substitute(bindings));
  }
  return e;
}

void collect_symbols(const IndexExpr& e, std::vector<Symbol>& symbols) {
  if (e.kind() != IndexExpr::Kind::kAxis) e.value().collect_symbols(symbols);
  if (e.kind() == IndexExpr::Kind::kConst || e.kind() == IndexExpr::Kind::kAxis) return;
  collect_symbols(e.lhs(), symbols);
  if (e.kind() == IndexExpr::Kind::kAdd) collect_symbols(e.rhs(), symbols);
}

namespace {
std::string factor_text(const Dim& d) { return d.is_const() ? to_string(d) : "{" + to_string(d) + "}"; }
}  // namespace

std::string to_string(const IndexExpr& e, const std::vector<std::string>* names) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return factor_text(e.value());
    case IndexExpr::Kind::kAxis:
      return names ? (*names)[e.axis_index()] : "d" + std::to_string(e.axis_index());
    case IndexExpr::Kind::kAdd:
      return to_string(e.lhs(), names) + " + " + to_string(e.rhs(), names);
    case IndexExpr::Kind::kMul:
      return factor_text(e.value()) + "*" + to_string(e.lhs(), names);
    case IndexExpr::Kind::kFloorDiv:
      return "((" + to_string(e.lhs(), names) + ") floordiv " + factor_text(e.value()) + ")";
    case IndexExpr::Kind::kMod:
      return "((" + to_string(e.lhs(), names) + ") mod " + factor_text(e.value()) + ")";
  }
  return {};
}

}  // namespace quernel
