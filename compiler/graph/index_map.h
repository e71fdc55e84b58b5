// Index maps: how an access reads a tensor, as integer expressions over the axes of an iteration domain.
// Movement ops are index maps; contractions state their accesses as affine ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace quernel {

// Integer expression over axes d0, d1, …: sums, products with constants, floordiv and mod by positive
// constants. Immutable and kept simplified.
class IndexExpr {
 public:
  enum class Kind : uint8_t { kConst, kAxis, kAdd, kMul, kFloorDiv, kMod };

  IndexExpr(int64_t value = 0);
  static IndexExpr axis(int index);

  Kind kind() const { return node_->kind; }
  int64_t value() const {
    return node_->value;
  }  // kConst: the constant; kAxis: the axis; kMul, kFloorDiv, kMod: the right operand
  const IndexExpr& lhs() const { return node_->args[0]; }
  const IndexExpr& rhs() const { return node_->args[1]; }  // of kAdd

  bool is_const() const { return kind() == Kind::kConst; }
  bool operator==(const IndexExpr& other) const;

  friend IndexExpr operator+(const IndexExpr& a, const IndexExpr& b);
  friend IndexExpr operator*(const IndexExpr& a, int64_t factor);
  friend IndexExpr floordiv(const IndexExpr& a, int64_t divisor);
  friend IndexExpr floormod(const IndexExpr& a, int64_t divisor);

 private:
  struct Node {
    Kind kind;
    int64_t value;
    std::vector<IndexExpr> args;
  };
  explicit IndexExpr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// offset + sum over axes of coefficient[i] * d_i.
struct AffineForm {
  std::vector<int64_t> coefficients;  // one per axis of the domain
  int64_t offset = 0;
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
  int64_t lo = 0, hi = 0;
};
IndexRange range_of(const IndexExpr& e, const std::vector<int64_t>& extents);
// Simplifies floordiv and mod that the extents decide, e.g. (4*d0 + d1) mod 4 -> d1 when extent(d1) <= 4.
IndexExpr simplify(const IndexExpr& e, const std::vector<int64_t>& extents);
// Value at a point.
int64_t evaluate(const IndexExpr& e, const int64_t* point);

// "2*d0 + d1 + 3", "(d0 floordiv 4)", "(d0 mod 4)". `names`: the axes' names, else d0, d1, ….
std::string to_string(const IndexExpr& e, const std::vector<std::string>* names = nullptr);

// The access of one tensor from a domain: indices[i] addresses dim i. Where a guard's expression is outside
// [lo, hi), the access reads the fill value of the op that carries the map, and memory is not touched.
struct IndexGuard {
  IndexExpr expr;
  int64_t lo = 0, hi = 0;
  bool operator==(const IndexGuard&) const = default;
};
struct IndexMap {
  std::vector<IndexExpr> indices;
  std::vector<IndexGuard> guards;
  bool operator==(const IndexMap&) const = default;
};

}  // namespace quernel
