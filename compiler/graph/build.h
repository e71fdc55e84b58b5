// GraphBuilder: terse construction of graph IR for importers and passes. Every method returns the value it
// made; the first failure is kept (status()) and later calls return kNoValue, so that a sequence of calls
// needs one check at its end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace quernel {

class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  void set_location(Location location) { location_ = std::move(location); }
  const Location& location() const { return location_; }
  // The name of the next value made (once).
  void set_name(std::string name) { name_ = std::move(name); }

  Status status() const { return errors_.empty() ? Status() : Status(errors_); }
  bool ok() const { return errors_.empty(); }
  Status take_status() {
    Diagnostics errors = std::move(errors_);
    errors_.clear();
    return errors.empty() ? Status() : Status(std::move(errors));
  }
  ValueId fail(Diagnostic diagnostic);
  // Called after each failure has been kept. It may throw, which ends a sequence of calls at its first
  // failure.
  void on_failure(std::function<void()> handler) { on_failure_ = std::move(handler); }
  // Pairs of dims, at least one of them free, that would have to be equal for operands to broadcast or to be
  // concatenated. only_equal: broadcasting is no way out.
  struct UnequalDims {
    Dim a, b;
    bool only_equal = false;
  };
  const std::vector<UnequalDims>& unequal_dims() const { return unequal_dims_; }
  // Adds a pair, if one of the two is free and they differ.
  void note_unequal(const Dim& a, const Dim& b, bool only_equal);

  ValueId add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId constant(Tensor tensor);
  // A scalar constant expanded to `shape`.
  ValueId full(DType dtype, Shape shape, double value);

  ValueId unary(UnaryOp op, ValueId x);
  // Elementwise with numpy broadcasting: operands are reshaped (leading 1s) and expanded to the common shape.
  ValueId binary(BinaryOp op, ValueId a, ValueId b);
  ValueId where(ValueId condition, ValueId a, ValueId b);
  // With a scalar constant of a's dtype as the second operand.
  ValueId binary(BinaryOp op, ValueId a, double b) { return binary(op, a, full(graph_.dtype(a), {}, b)); }
  ValueId cast(ValueId x, DType dtype);

  ValueId reshape(ValueId x, Shape shape);
  ValueId permute(ValueId x, std::vector<int64_t> perm);
  ValueId broadcast_to(ValueId x, Shape shape);  // numpy rules
  ValueId slice(ValueId x, Shape starts, Shape stops, std::vector<int64_t> steps = {});
  ValueId flip(ValueId x, std::vector<int64_t> axes);
  ValueId pad(ValueId x, Shape before, Shape after, PadMode mode = PadMode::kConstant, double fill = 0);
  ValueId view(ValueId x, Shape shape, IndexMap map, double fill = 0);
  ValueId cat(std::vector<ValueId> xs, int64_t axis);
  ValueId reduce(OpKind op, ValueId x, std::vector<int64_t> axes, bool keepdims);
  ValueId contract(ValueId a, ValueId b, Contraction contraction);
  ValueId take(ValueId x, ValueId indices, int64_t axis);
  // `zeros`: kNoValue for none. `groups`: per dim, the neighbours that share a scale.
  ValueId dequantize(ValueId x, ValueId scales, ValueId zeros, std::vector<int64_t> groups);
  // `sums`: of each group of the result, times `factor`; of i32: of the digits, whose rows have a scale each. `group`: the
  // neighbours along the last dim that share a scale. `digits`: of base `base`, the most significant first.
  ValueId dequantize_rows(std::vector<ValueId> digits, int64_t base, ValueId scales, ValueId sums,
                          int64_t group, int64_t factor = 1);
  ValueId scan(OpKind op, ValueId x, int64_t axis, bool exclusive, bool reverse);
  ValueId argsort(ValueId x, int64_t axis, Dim count, bool descending);
  // `parameter`: the axis, or scatter_nd's batch_dims.
  ValueId scatter(OpKind op, ValueId x, ValueId indices, ValueId updates, int64_t parameter,
                  ScatterMode mode);
  // x moved along an axis, to places that name each position once: the inverse of gather_elements. `places`:
  // integers, of x's shape.
  ValueId scatter_unique(ValueId x, ValueId places, int64_t axis);

 private:
  ValueId cannot_broadcast(const Shape& a, const Shape& b, Diagnostic diagnostic);

  Graph& graph_;
  Location location_;
  std::string name_;
  Diagnostics errors_;
  std::function<void()> on_failure_;
  std::vector<UnequalDims> unequal_dims_;
};

// What reductions and contractions accumulate in by default: f16, bf16 -> f32; i8, u8 -> i32; else the dtype
// itself.
DType default_accumulator(DType dtype);

// The numpy broadcast of two shapes; invalid input when dims disagree.
Expected<Shape> broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace quernel
