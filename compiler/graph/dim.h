// Dims of tensor shapes: a constant, or an expression over named symbols whose values are bound at run time.
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

// A symbol's static facts: every run-time value v has min <= v <= max and v % multiple_of == 0.
struct Symbol {
  std::string name;
  int64_t min = 1;
  int64_t max = INT64_MAX;
  int64_t multiple_of = 1;
};

struct Interval {
  int64_t lo = 0, hi = 0;  // inclusive; saturated at the ends of i64
};

// An immutable integer expression, kept folded: + - * floordiv mod min max over constants and symbol names.
class Dim {
 public:
  enum class Kind : uint8_t { kConst, kSymbol, kAdd, kSub, kMul, kFloorDiv, kMod, kMin, kMax };

  Dim(int64_t value = 0) : value_(value) {}
  static Dim symbol(std::string name);
  static Dim make(Kind kind, const Dim& a, const Dim& b);

  bool is_const() const { return !node_; }
  int64_t value() const;  // of a constant
  Kind kind() const { return node_ ? node_->kind : Kind::kConst; }
  const std::string& name() const { return node_->name; }  // of a symbol
  const Dim& lhs() const { return node_->args[0]; }
  const Dim& rhs() const { return node_->args[1]; }

  bool operator==(const Dim& other) const;
  // Collects the symbols' names, in order of first appearance.
  void collect_symbols(std::vector<std::string>& names) const;
  // Value under the bindings; nullopt when a symbol is unbound.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t>& bindings) const;
  // Replaces symbols that are bound.
  Dim substitute(const std::map<std::string, int64_t>& bindings) const;
  // Range by interval arithmetic from the symbols' ranges.
  Interval bounds(const std::vector<Symbol>& symbols) const;

 private:
  struct Node {
    Kind kind;
    std::string name;
    std::vector<Dim> args;
  };
  int64_t value_ = 0;
  std::shared_ptr<const Node> node_;
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floordiv(const Dim& a, const Dim& b);
Dim floormod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);

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

}  // namespace quernel
