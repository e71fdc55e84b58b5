#include "graph/dim.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "graph/dim_polynomial.h"
#include "support/text_reader.h"

namespace quernel {
namespace {

std::optional<int64_t> fold(Dim::Kind kind, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (kind) {
    case Dim::Kind::kAdd:
      return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Dim::Kind::kSub:
      return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Dim::Kind::kMul:
      return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Dim::Kind::kFloorDiv:
      return b == 0 || (b == -1 && a == INT64_MIN) ? std::nullopt : std::optional(floor_div(a, b));
    case Dim::Kind::kMod:
      if (b == -1) return 0;
      return b == 0 ? std::nullopt : std::optional(a - floor_div(a, b) * b);
    case Dim::Kind::kMin:
      return std::min(a, b);
    case Dim::Kind::kMax:
      return std::max(a, b);
    default:
      return std::nullopt;
  }
}

}  // namespace

Dim Dim::node(Kind kind, const Dim& a, const Dim& b) {
  const char* names[] = {"", "", " + ", " - ", " * ", " floordiv ", " mod ", "min", "max"};
  std::string op = names[static_cast<int>(kind)];
  Dim d;
  d.node_ =
      std::make_shared<Node>(Node{kind,
                                  {},
                                  {a, b},
                                  kind >= Kind::kMin ? op + "(" + to_string(a) + ", " + to_string(b) + ")"
                                                     : "(" + to_string(a) + op + to_string(b) + ")"});
  return d;
}

namespace {

// Names that the text form would read as something else stand in quotes.
std::string symbol_text(const std::string& name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool plain = !name.empty() && letter(name[0]) && name != "floordiv" && name != "mod" && name != "min" &&
               name != "max";
  for (char c : name) plain &= letter(c) || (c >= '0' && c <= '9');
  return plain ? name : quoted_text(name);
}
}  // namespace

Dim Dim::symbol(Symbol facts) {
  Dim d;
  std::string text = symbol_text(facts.name);
  d.node_ = std::make_shared<Node>(Node{Kind::kSymbol, std::move(facts), {}, std::move(text)});
  return d;
}

int64_t Dim::value() const {
  QUERNEL_ASSERT(is_const());
  return value_;
}

Dim Dim::make(Kind kind, const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const())
    if (auto v = fold(kind, a.value_, b.value_)) return Dim(*v);
  auto is = [](const Dim& d, int64_t v) { return d.is_const() && d.value_ == v; };
  switch (kind) {
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMul: {
      if (is(b, kind == Kind::kMul ? 1 : 0)) return a;
      if (kind != Kind::kSub && is(a, kind == Kind::kMul ? 1 : 0)) return b;
      if (kind == Kind::kMul && (is(a, 0) || is(b, 0))) return 0;
      Polynomial p = polynomial(a), q = polynomial(b);
      if (kind == Kind::kMul)
        p = product(p, q);
      else
        p.add(q, kind == Kind::kAdd ? 1 : -1);
      return p.overflow ? node(kind, a, b) : from_polynomial(p, node);
    }
    case Kind::kFloorDiv:
    case Kind::kMod: {
      if (is(b, 0)) return node(kind, a, b);
      if (is(b, 1)) return kind == Kind::kFloorDiv ? a : Dim(0);
      if (is(a, 0)) return 0;
      if (kind == Kind::kMod && b.is_const() && b.value_ > 0 && a.known_divisor() % b.value_ == 0) return 0;
      // a = multiple * b + rest
      DimSplit split = split_by(a, b);
      if (b.bounds().lo > 0) {
        if (always_le(0, split.rest) && always_lt(split.rest, b))
          return kind == Kind::kFloorDiv ? split.multiple : split.rest;
        if (kind == Kind::kFloorDiv && !is(split.multiple, 0))
          return split.multiple + floordiv(split.rest, b);
        if (kind == Kind::kMod && !is(split.multiple, 0)) return floormod(split.rest, b);
      }
      if (b.is_const() && b.value_ > 1)
        if (DimSplit multiples = split_multiples(a, b.value_, node); !is(multiples.multiple, 0))
          return kind == Kind::kFloorDiv ? multiples.multiple + floordiv(multiples.rest, b)
                                         : floormod(multiples.rest, b);
      if (a.kind() == Kind::kFloorDiv && kind == Kind::kFloorDiv && b.bounds().lo > 0 &&
          a.rhs().bounds().lo > 0)
        return floordiv(a.lhs(), a.rhs() * b);
      // ((x floordiv c) + k) floordiv b = (x + k*c) floordiv (c*b)
      if (kind == Kind::kFloorDiv && (a.kind() == Kind::kAdd || a.kind() == Kind::kSub) &&
          a.lhs().kind() == Kind::kFloorDiv && a.rhs().is_const() && b.bounds().lo > 0 &&
          a.lhs().rhs().bounds().lo > 0) {
        Dim c = a.lhs().rhs(), k = a.kind() == Kind::kAdd ? a.rhs() : Dim(0) - a.rhs();
        return floordiv(a.lhs().lhs() + k * c, c * b);
      }
      return node(kind, a, b);
    }
    case Kind::kMin:
    case Kind::kMax:
      if (always_le(a, b)) return kind == Kind::kMin ? a : b;
      if (always_le(b, a)) return kind == Kind::kMin ? b : a;
      if (a.is_const() || b.is_const()) return a.is_const() ? node(kind, b, a) : node(kind, a, b);
      return to_string(b) < to_string(a) ? node(kind, b, a) : node(kind, a, b);
    default:
      return node(kind, a, b);
  }
}

bool Dim::operator==(const Dim& other) const {
  if (is_const() || other.is_const()) return is_const() && other.is_const() && value_ == other.value_;
  return node_ == other.node_ || node_->text == other.node_->text;
}

void Dim::collect_symbols(std::vector<Symbol>& symbols) const {
  if (is_const()) return;
  if (kind() == Kind::kSymbol) {
    if (std::none_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == name(); }))
      symbols.push_back(node_->facts);
    return;
  }
  for (const Dim& arg : node_->args) arg.collect_symbols(symbols);
}

std::optional<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& bindings) const {
  if (is_const()) return value_;
  if (kind() == Kind::kSymbol) {
    auto it = bindings.find(name());
    return it == bindings.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<int64_t> a = lhs().evaluate(bindings), b = rhs().evaluate(bindings);
  return a && b ? fold(kind(), *a, *b) : std::nullopt;
}

Dim Dim::substitute(const std::map<std::string, int64_t>& bindings) const {
  if (is_const()) return *this;
  if (kind() == Kind::kSymbol) {
    auto it = bindings.find(name());
    return it == bindings.end() ? *this : Dim(it->second);
  }
  return make(kind(), lhs().substitute(bindings), rhs().substitute(bindings));
}

Dim Dim::substitute(const std::map<std::string, Dim>& values) const {
  if (is_const()) return *this;
  if (kind() == Kind::kSymbol) {
    auto it = values.find(name());
    return it == values.end() ? *this : it->second;
  }
  return make(kind(), lhs().substitute(values), rhs().substitute(values));
}

Interval Dim::bounds() const {
  if (is_const()) return {value_, value_};
  if (kind() == Kind::kSymbol) return {node_->facts.min, node_->facts.max};
  Interval a = lhs().bounds(), b = rhs().bounds();
  using Wide = __int128;
  switch (kind()) {
    case Kind::kAdd:
      return {add_ends(a.lo, b.lo), add_ends(a.hi, b.hi)};
    case Kind::kSub:
      return {add_ends(a.lo, negate_end(b.hi)), add_ends(a.hi, negate_end(b.lo))};
    case Kind::kMul:
      return multiply(a, b);
    case Kind::kFloorDiv: {
      if (b.lo <= 0) return {INT64_MIN, INT64_MAX};
      auto divide = [](int64_t x, int64_t y) -> Wide {
        if (x == INT64_MAX || x == INT64_MIN) return y == INT64_MAX ? 0 : x;
        return floor_div(x, y);
      };
      return span_of({divide(a.lo, b.lo), divide(a.lo, b.hi), divide(a.hi, b.lo), divide(a.hi, b.hi)});
    }
    case Kind::kMod:
      if (b.lo <= 0) return {INT64_MIN, INT64_MAX};
      if (a.lo >= 0 && a.hi < b.lo) return a;
      return {0, b.hi == INT64_MAX ? (a.lo >= 0 ? a.hi : INT64_MAX) : b.hi - 1};
    case Kind::kMin:
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case Kind::kMax:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

int64_t Dim::known_divisor() const {
  if (is_const()) return value_ == INT64_MIN ? 1 : std::abs(value_);
  if (kind() == Kind::kSymbol) return node_->facts.multiple_of;
  int64_t a = lhs().known_divisor(), b = rhs().known_divisor(), r = 0;
  switch (kind()) {
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kMod:
      return std::gcd(a, b);
    case Kind::kMul:
      return __builtin_mul_overflow(a, b, &r) ? std::max(a, b) : r;
    default:
      return 1;
  }
}

int64_t Dim::estimate() const {
  if (is_const()) return value_;
  std::vector<Symbol> symbols;
  collect_symbols(symbols);
  std::map<std::string, int64_t> bindings;
  for (const Symbol& s : symbols)
    bindings[s.name] =
        std::clamp<int64_t>((64 + s.multiple_of - 1) / s.multiple_of * s.multiple_of, s.min, s.max);
  return evaluate(bindings).value_or(64);
}

bool Dim::is_bound() const {
  std::vector<Symbol> symbols;
  collect_symbols(symbols);
  return std::none_of(symbols.begin(), symbols.end(), [](const Symbol& s) { return s.runtime; });
}

Dim Dim::upper_bound() const {
  if (is_bound()) return *this;
  if (kind() == Kind::kSymbol)
    return node_->facts.bound.empty() ? Dim(node_->facts.max) : node_->facts.bound[0].upper_bound();
  // For subtrahends, divisors: what makes the whole largest is their smallest value.
  auto smallest = [](const Dim& d) { return d.is_bound() ? d : Dim(d.bounds().lo); };
  switch (kind()) {
    case Kind::kSub:
      return lhs().upper_bound() - smallest(rhs());
    case Kind::kFloorDiv:
      return floordiv(lhs().upper_bound(), smallest(rhs()));
    case Kind::kMod:
      return rhs().upper_bound() - 1;
    default:
      return make(kind(), lhs().upper_bound(), rhs().upper_bound());
  }
}

Dim operator+(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kAdd, a, b); }
Dim operator-(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kSub, a, b); }
Dim operator*(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMul, a, b); }
Dim floordiv(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kFloorDiv, a, b); }
Dim floormod(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMod, a, b); }
Dim ceildiv(const Dim& a, const Dim& b) { return floordiv(a + b - 1, b); }
Dim min(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMin, a, b); }
Dim max(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMax, a, b); }

bool always_le(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return a.value() <= b.value();
  if (a.estimate() > b.estimate()) return false;  // one counterexample is enough
  // Through min and max: min(x, y) <= b when either is, and so on.
  using K = Dim::Kind;
  if (a.kind() == K::kMax) return always_le(a.lhs(), b) && always_le(a.rhs(), b);
  if (b.kind() == K::kMin) return always_le(a, b.lhs()) && always_le(a, b.rhs());
  if (a.kind() == K::kMin && (always_le(a.lhs(), b) || always_le(a.rhs(), b))) return true;
  if (b.kind() == K::kMax && (always_le(a, b.lhs()) || always_le(a, b.rhs()))) return true;
  Polynomial p = polynomial(b), relaxed;
  p.add(polynomial(a), -1);
  reduce_quotients(p);
  if (p.overflow) return (b - a).bounds().lo >= 0;
  if (p.bounds().lo >= 0) return true;
  // c * (x floordiv c) lies in [x - c + 1, x]: terms of that form are replaced by the end that makes the
  // difference smallest.
  bool changed = false;
  for (const auto& [key, term] : p.terms) {
    const Dim* atom = term.factors.size() == 1 ? &term.factors[0] : nullptr;
    if (atom && atom->kind() == K::kFloorDiv && atom->rhs().is_const() && atom->rhs().value() > 0 &&
        term.coefficient % atom->rhs().value() == 0) {
      int64_t times = term.coefficient / atom->rhs().value();
      relaxed.add(polynomial(times > 0 ? atom->lhs() - atom->rhs() + 1 : atom->lhs()), times);
      changed = true;
    } else {
      relaxed.add(key, term.factors, term.coefficient);
    }
  }
  return changed && !relaxed.overflow && relaxed.bounds().lo >= 0;
}

std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const())
    return b.value() != 0 && a.value() % b.value() == 0 ? std::optional<Dim>(a.value() / b.value())
                                                        : std::nullopt;
  DimSplit split = split_by(a, b);
  return split.rest == Dim(0) ? std::optional(split.multiple) : std::nullopt;
}

DimSplit split_by(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) {
    if (b.value() == 0) return {0, a};
    int64_t q = floor_div(a.value(), b.value());
    return {q, a - Dim(q) * b};
  }
  if (a == b) return {1, 0};
  Polynomial p = polynomial(a), q = polynomial(b);
  if (p.overflow || q.overflow || q.terms.empty()) return {0, a};
  if (q.terms.size() == 1) {
    const Term& divisor = q.terms.begin()->second;
    Dim multiple = 0, rest = 0;
    for (const auto& [key, term] : p.terms) {
      Dim whole = term.coefficient;
      for (const Dim& f : term.factors) whole = whole * f;
      if (std::optional<Term> part = divide(term, divisor)) {
        Dim quotient = part->coefficient;
        for (const Dim& f : part->factors) quotient = quotient * f;
        multiple = multiple + quotient;
      } else if (term.factors.empty() && divisor.factors.empty()) {
        DimSplit constant = split_by(whole, b);
        multiple = multiple + constant.multiple;
        rest = rest + constant.rest;
      } else {
        rest = rest + whole;
      }
    }
    return {multiple, rest};
  }
  // A sum as the divisor: long division by its first term, as long as it goes.
  Dim multiple = 0, rest = a;
  const Term& lead = q.terms.rbegin()->second;
  for (size_t step = 0; step <= p.terms.size(); ++step) {
    bool found = false;
    for (const auto& [key, term] : polynomial(rest).terms) {
      std::optional<Term> part = divide(term, lead);
      if (!part) continue;
      Dim quotient = part->coefficient;
      for (const Dim& f : part->factors) quotient = quotient * f;
      multiple = multiple + quotient;
      rest = rest - quotient * b;
      found = true;
      break;
    }
    if (!found || rest == Dim(0)) break;
  }
  return rest == Dim(0) ? DimSplit{multiple, rest} : DimSplit{0, a};
}

std::string to_string(const Dim& d) { return d.is_const() ? std::to_string(d.value()) : d.node_->text; }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + to_string(shape[i]);
  return text + "]";
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_const(); });
}

std::vector<int64_t> static_dims(const Shape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(shape.size());
  for (const Dim& d : shape) dims.push_back(d.value());
  return dims;
}

Shape make_shape(const std::vector<int64_t>& dims) { return Shape(dims.begin(), dims.end()); }

std::optional<int64_t> element_count(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(n, d, &n)) return std::nullopt;
  return n;
}

Dim element_count(const Shape& shape) {
  Dim n = 1;
  for (const Dim& d : shape) n = n * d;
  return n;
}

Shape contiguous_strides(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * (dims[i] == Dim(0) ? Dim(1) : dims[i]);
  return strides;
}

}  // namespace quernel
