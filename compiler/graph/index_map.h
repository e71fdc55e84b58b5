// Index maps: how an access reads a tensor, as integer expressions over the axes of an iteration domain.
// Movement ops are index maps; contractions state their accesses as affine ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/dim.h"

namespace quernel {

// Integer expression over axes d0, d1, …: sums, products with dims, floordiv and mod by positive dims, where
// a dim is a constant or an expression over symbols. Immutable and kept simplified.
class IndexExpr {
 public:
  enum class Kind : uint8_t { kConst, kAxis, kAdd, kMul, kFloorDiv, kMod };

  IndexExpr(Dim value = 0);
  IndexExpr(int64_t value) : IndexExpr(Dim(value)) {}
  IndexExpr(int value) : IndexExpr(Dim(value)) {}
  static IndexExpr axis(int index);

  Kind kind() const { return node_->kind; }
  const Dim& value() const {
    return node_->value;
  }                                               // kConst: itself; kMul, kFloorDiv, kMod: the right operand
  int axis_index() const { return node_->axis; }  // kAxis
  const IndexExpr& lhs() const { return node_->args[0]; }
  const IndexExpr& rhs() const { return node_->args[1]; }  // of kAdd

  bool is_const() const { return kind() == Kind::kConst; }  // the same at every point
  bool operator==(const IndexExpr& other) const;

  friend IndexExpr operator+(const IndexExpr& a, const IndexExpr& b);
  friend IndexExpr operator*(const IndexExpr& a, const Dim& factor);
  friend IndexExpr floordiv(const IndexExpr& a, const Dim& divisor);
  friend IndexExpr floormod(const IndexExpr& a, const Dim& divisor);

 private:
  struct Node {
    Kind kind;
    Dim value;
    int axis = -1;
    std::vector<IndexExpr> args;
  };
  explicit IndexExpr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// offset + sum over axes of coefficient[i] * d_i.
struct AffineForm {
  std::vector<Dim> coefficients;  // one per axis of the domain
  Dim offset = 0;
};
// The affine form of `e` over `axes` axes; nullopt when it contains floordiv or mod.
std::optional<AffineForm> as_affine(const IndexExpr& e, int axes);
IndexExpr from_affine(const AffineForm& form);
// Whether the expression mentions axis `index`.
bool uses_axis(const IndexExpr& e, int index);
// Replaces axis i by values[i].
IndexExpr substitute(const IndexExpr& e, const std::vector<IndexExpr>& values);
// Smallest and largest value over the box 0 <= d_i < extents[i] (extents positive); conservative, exact for
// affine forms.
struct IndexRange {
  Dim lo = 0, hi = 0;
};
IndexRange range_of(const IndexExpr& e, const Shape& extents);
// Simplifies floordiv and mod that the extents decide, e.g. (4*d0 + d1) mod 4 -> d1 when extent(d1) <= 4.
IndexExpr simplify(const IndexExpr& e, const Shape& extents);
// Value of an expression without symbols at a point.
int64_t evaluate(const IndexExpr& e, const int64_t* point);
// With symbols replaced.
IndexExpr bind_symbols(const IndexExpr& e, const std::map<std::string, int64_t>& bindings);
// Adds the symbols of its dims.
void collect_symbols(const IndexExpr& e, std::vector<Symbol>& symbols);

// "2*d0 + d1 + 3", "(d0 floordiv 4)", "({n} * d0 mod {(n * 4)})". `names`: the axes' names, else d0, d1, ….
std::string to_string(const IndexExpr& e, const std::vector<std::string>* names = nullptr);

// The access of one tensor from a domain: indices[i] addresses dim i. Where a guard's expression is outside
// [lo, hi), the access reads the fill value of the op that carries the map, and memory is not touched.
struct IndexGuard {
  IndexExpr expr;
  Dim lo = 0, hi = 0;
  bool operator==(const IndexGuard&) const = default;
};
struct IndexMap {
  std::vector<IndexExpr> indices;
  std::vector<IndexGuard> guards;
  bool operator==(const IndexMap&) const = default;
};

}  // namespace quernel
