// Dims of tensor shapes: a constant, or an integer expression over named symbols whose values are known at
// run time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"

namespace quernel {

class Dim;

// A symbol's static facts: every run-time value v has min <= v <= max and v % multiple_of == 0.
struct Symbol {
  std::string name;
  int64_t min = 1;
  int64_t max = INT64_MAX;
  int64_t multiple_of = 1;
  // Whether its value is found while the model runs (a count of non-zero elements, a loop's iteration)
  // instead of being bound before it; `bound` then holds one dim over bound symbols that it never exceeds.
  bool runtime = false;
  std::vector<Dim> bound;
};

struct Interval {
  int64_t lo = 0, hi = 0;  // inclusive; saturated at the ends of i64
};

// An immutable integer expression in a canonical form: a sum of products of constants and atoms, where an
// atom is a symbol or a floordiv, mod, min or max. Expressions that are equal as polynomials are equal as
// values.
class Dim {
 public:
  enum class Kind : uint8_t { kConst, kSymbol, kAdd, kSub, kMul, kFloorDiv, kMod, kMin, kMax };

  Dim(int64_t value = 0) : value_(value) {}
  // A symbol carries its facts; symbols of one name are one symbol.
  static Dim symbol(Symbol facts);
  static Dim symbol(std::string name) { return symbol(Symbol{std::move(name), 1, INT64_MAX, 1, false, {}}); }
  static Dim make(Kind kind, const Dim& a, const Dim& b);

  bool is_const() const { return !node_; }
  int64_t value() const;  // of a constant
  Kind kind() const { return node_ ? node_->kind : Kind::kConst; }
  const std::string& name() const { return node_->facts.name; }  // of a symbol
  const Symbol& facts() const { return node_->facts; }           // of a symbol
  const Dim& lhs() const { return node_->args[0]; }
  const Dim& rhs() const { return node_->args[1]; }

  bool operator==(const Dim& other) const;
  // Collects the symbols, each once, in order of first appearance.
  void collect_symbols(std::vector<Symbol>& symbols) const;
  // Value under the bindings; nullopt when a symbol is unbound, on division by zero and on overflow.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t>& bindings) const;
  // Replaces symbols that are bound.
  Dim substitute(const std::map<std::string, int64_t>& bindings) const;
  // Replaces symbols by expressions.
  Dim substitute(const std::map<std::string, Dim>& values) const;
  // Range by interval arithmetic from the symbols' ranges.
  Interval bounds() const;
  // A divisor of every value: the greatest that the coefficients and the symbols' multiples show.
  int64_t known_divisor() const;
  // A typical value, for choices that need a number: symbols count as 64 where their range allows it.
  int64_t estimate() const;
  // Whether all its symbols are bound before a run.
  bool is_bound() const;
  // A dim over bound symbols that is never smaller: run-time symbols replaced by their bounds.
  Dim upper_bound() const;

 private:
  struct Node {
    Kind kind;
    Symbol facts;
    std::vector<Dim> args;
    std::string text;  // canonical, so it decides equality
  };
  friend std::string to_string(const Dim& dim);
  static Dim node(Kind kind, const Dim& a, const Dim& b);
  int64_t value_ = 0;
  std::shared_ptr<const Node> node_;
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
inline Dim& operator+=(Dim& a, const Dim& b) { return a = a + b; }
inline Dim& operator*=(Dim& a, const Dim& b) { return a = a * b; }
Dim floordiv(const Dim& a, const Dim& b);
Dim floormod(const Dim& a, const Dim& b);
Dim ceildiv(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);

// Whether it holds for all values of the symbols, as far as can be shown.
bool always_le(const Dim& a, const Dim& b);
inline bool always_lt(const Dim& a, const Dim& b) { return always_le(a + 1, b); }
// a / b where every term of `a` is a multiple of the single product `b`, or `a` is a multiple of the sum `b`.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b);
// a = multiple * b + rest, where `multiple` takes the terms that are multiples of `b`.
struct DimSplit {
  Dim multiple, rest;
};
DimSplit split_by(const Dim& a, const Dim& b);

std::string to_string(const Dim& dim);  // "4", "batch", "(h * 2)", "(h floordiv 2)"

using Shape = std::vector<Dim>;
std::string to_string(const Shape& shape);  // "[1,3,h,w]"
bool is_static(const Shape& shape);
// All dims of a static shape; asserts that it is one.
std::vector<int64_t> static_dims(const Shape& shape);
Shape make_shape(const std::vector<int64_t>& dims);
// Number of elements of a static shape; nullopt where the product does not fit i64.
std::optional<int64_t> element_count(const std::vector<int64_t>& dims);
Dim element_count(const Shape& shape);
// Row-major strides; a dim of 0 counts as 1.
Shape contiguous_strides(const Shape& dims);

}  // namespace quernel
