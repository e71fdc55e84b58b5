#include "graph/dim.h"

#include <algorithm>
#include <array>

namespace quernel {
namespace {

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

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
      return b == 0 ? std::nullopt : std::optional(floor_div(a, b));
    case Dim::Kind::kMod:
      return b == 0 ? std::nullopt : std::optional(a - floor_div(a, b) * b);
    case Dim::Kind::kMin:
      return std::min(a, b);
    case Dim::Kind::kMax:
      return std::max(a, b);
    default:
      return std::nullopt;
  }
}

// Saturating arithmetic on interval ends.
int64_t clamp128(__int128 v) {
  if (v > INT64_MAX) return INT64_MAX;
  if (v < INT64_MIN) return INT64_MIN;
  return static_cast<int64_t>(v);
}

}  // namespace

Dim Dim::symbol(std::string name) {
  Dim d;
  d.node_ = std::make_shared<Node>(Node{Kind::kSymbol, std::move(name), {}});
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
      if (is(a, 0)) return b;
      if (is(b, 0)) return a;
      if (a.is_const() && !b.is_const()) return make(kind, b, a);  // constants last
      if (b.is_const() && a.kind() == Kind::kAdd && a.rhs().is_const())
        return make(kind, a.lhs(), a.rhs() + b);
      if (b.is_const() && a.kind() == Kind::kSub && a.rhs().is_const())
        return make(kind, a.lhs(), b - a.rhs());
      break;
    case Kind::kSub:
      if (is(b, 0)) return a;
      if (a == b) return 0;
      if (b.is_const() && b.value_ != INT64_MIN) return make(Kind::kAdd, a, Dim(-b.value_));
      break;
    case Kind::kMul:
      if (is(a, 0) || is(b, 0)) return 0;
      if (is(a, 1)) return b;
      if (is(b, 1)) return a;
      if (a.is_const() && !b.is_const()) return make(kind, b, a);
      if (b.is_const() && a.kind() == Kind::kMul && a.rhs().is_const())
        return make(kind, a.lhs(), a.rhs() * b);
      break;
    case Kind::kFloorDiv:
      if (is(b, 1)) return a;
      if (a.kind() == Kind::kMul && b.is_const() && a.rhs().is_const() && b.value_ != 0 &&
          a.rhs().value_ % b.value_ == 0)
        return a.lhs() * Dim(a.rhs().value_ / b.value_);
      if (a.kind() == Kind::kMul && (a.rhs() == b)) return a.lhs();
      if (a.kind() == Kind::kMul && (a.lhs() == b)) return a.rhs();
      if (a == b && !a.is_const()) return 1;
      break;
    case Kind::kMod:
      if (is(b, 1)) return 0;
      if (a.kind() == Kind::kMul && b.is_const() && a.rhs().is_const() && b.value_ != 0 &&
          a.rhs().value_ % b.value_ == 0)
        return 0;
      break;
    case Kind::kMin:
    case Kind::kMax:
      if (a == b) return a;
      break;
    default:
      break;
  }
  Dim d;
  d.node_ = std::make_shared<Node>(Node{kind, {}, {a, b}});
  return d;
}

bool Dim::operator==(const Dim& other) const {
  if (is_const() || other.is_const()) return is_const() && other.is_const() && value_ == other.value_;
  if (node_ == other.node_) return true;
  return node_->kind == other.node_->kind && node_->name == other.node_->name &&
         node_->args == other.node_->args;
}

void Dim::collect_symbols(std::vector<std::string>& names) const {
  if (is_const()) return;
  if (kind() == Kind::kSymbol) {
    if (std::find(names.begin(), names.end(), node_->name) == names.end()) names.push_back(node_->name);
    return;
  }
  for (const Dim& arg : node_->args) arg.collect_symbols(names);
}

std::optional<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& bindings) const {
  Dim d = substitute(bindings);
  return d.is_const() ? std::optional(d.value_) : std::nullopt;
}

Dim Dim::substitute(const std::map<std::string, int64_t>& bindings) const {
  if (is_const()) return *this;
  if (kind() == Kind::kSymbol) {
    auto it = bindings.find(node_->name);
    return it == bindings.end() ? *this : Dim(it->second);
  }
  return make(kind(), lhs().substitute(bindings), rhs().substitute(bindings));
}

Interval Dim::bounds(const std::vector<Symbol>& symbols) const {
  if (is_const()) return {value_, value_};
  if (kind() == Kind::kSymbol) {
    for (const Symbol& s : symbols)
      if (s.name == node_->name) return {s.min, s.max};
    return {0, INT64_MAX};
  }
  Interval a = lhs().bounds(symbols), b = rhs().bounds(symbols);
  using Wide = __int128;
  auto span = [](std::array<Wide, 4> v) {
    return Interval{clamp128(*std::min_element(v.begin(), v.end())),
                    clamp128(*std::max_element(v.begin(), v.end()))};
  };
  switch (kind()) {
    case Kind::kAdd:
      return {clamp128(Wide(a.lo) + b.lo), clamp128(Wide(a.hi) + b.hi)};
    case Kind::kSub:
      return {clamp128(Wide(a.lo) - b.hi), clamp128(Wide(a.hi) - b.lo)};
    case Kind::kMul:
      return span({Wide(a.lo) * b.lo, Wide(a.lo) * b.hi, Wide(a.hi) * b.lo, Wide(a.hi) * b.hi});
    case Kind::kFloorDiv:
      if (b.lo <= 0 && b.hi >= 0) return {INT64_MIN, INT64_MAX};
      return span({Wide(floor_div(a.lo, b.lo)), Wide(floor_div(a.lo, b.hi)), Wide(floor_div(a.hi, b.lo)),
                   Wide(floor_div(a.hi, b.hi))});
    case Kind::kMod:
      if (b.lo <= 0) return {INT64_MIN, INT64_MAX};
      if (a.lo >= 0 && a.hi < b.lo) return a;
      return {0, b.hi - 1};
    case Kind::kMin:
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case Kind::kMax:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

Dim operator+(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kAdd, a, b); }
Dim operator-(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kSub, a, b); }
Dim operator*(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMul, a, b); }
Dim floordiv(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kFloorDiv, a, b); }
Dim floormod(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMod, a, b); }
Dim min(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMin, a, b); }
Dim max(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::kMax, a, b); }

std::string to_string(const Dim& d) {
  switch (d.kind()) {
    case Dim::Kind::kConst:
      return std::to_string(d.value());
    case Dim::Kind::kSymbol:
      return d.name();
    default:
      break;
  }
  const char* names[] = {"", "", " + ", " - ", " * ", " floordiv ", " mod ", "min", "max"};
  std::string op = names[static_cast<int>(d.kind())];
  if (d.kind() >= Dim::Kind::kMin) return op + "(" + to_string(d.lhs()) + ", " + to_string(d.rhs()) + ")";
  return "(" + to_string(d.lhs()) + op + to_string(d.rhs()) + ")";
}

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

}  // namespace quernel
