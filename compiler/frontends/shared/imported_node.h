// What the importers of all formats see of a node: operands, questions to dims and constants, and the builder
// that they emit core ops with. The first failure of the builder ends an importer (by BuilderFailed, which the
// walk over the graph catches), so a straight line of calls needs no check between them; what is needed as a
// number (dims, constants) comes as Expected.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/shared/fold_value.h"
#include "frontends/shared/solve_dims.h"
#include "graph/build.h"

namespace quernel {

class ImportedNode {
 public:
  ImportedNode(GraphBuilder& builder, ConstantFolder& fold) : build(builder), folder(fold) {}

  GraphBuilder& build;
  ConstantFolder& folder;
  std::vector<std::string> input_names, output_names;  // in the file; empty where left out
  std::vector<ValueId> inputs;      // kNoValue for an omitted optional operand; trailing ones may be missing
  std::set<std::string> free_dims;  // symbols that had to be constants
  // Symbols of which a range would do, and the options that would.
  std::map<std::string, std::string> ranged_dims;
  std::vector<LeastDim> least_dims;  // what was required
  std::set<ValueId> wanted_inputs;   // graph inputs whose values had to be known

  // ---- operands
  int input_count() const { return static_cast<int>(inputs.size()); }
  bool has(int i) const { return i < input_count() && inputs[i] != kNoValue; }
  ValueId in(int i) const { return has(i) ? inputs[i] : kNoValue; }
  // Whether the model wants result i.
  bool wants_output(int i) const {
    return i < static_cast<int>(output_names.size()) && !output_names[i].empty();
  }

  Shape shape(ValueId v) const;  // a copy: values move as nodes are added
  int rank(ValueId v) const { return static_cast<int>(shape(v).size()); }
  DType dtype(ValueId v) const { return v < 0 ? DType::kF32 : build.graph().dtype(v); }
  // The dims of a static shape; unsupported where one is free.
  Expected<std::vector<int64_t>> dims(ValueId v);
  Expected<int64_t> dim(const Dim& d);
  Expected<int64_t> dim(ValueId v, int64_t axis) { return dim(shape(v)[axis]); }

  // ---- questions to dims that may be free

  // What is not known is assumed and checked at run time where one free dim decides it (DimAssumptions), else
  // refused.

  // Whether the dim is `value`. Unsupported where a free dim may be or not be: it is never guessed.
  Expected<bool> is(const Dim& d, int64_t value);
  // `what` names a; "the elements of the shape".
  Status require_equal(const Dim& a, const Dim& b, const std::string& what);
  // That two shapes would have to broadcast.
  void note_broadcast(const Shape& a, const Shape& b);
  Status require_at_least(const Dim& d, int64_t least, const std::string& what);

  // ---- operands as constants
  // null for sequences and what is left out, too.
  const Tensor* constant(ValueId v) { return v < 0 ? nullptr : folder.evaluate(v); }
  // Notes the graph inputs that v is computed from, for ImportOptions::input_values.
  void want_value(ValueId v) {
    if (v >= 0) folder.collect_inputs(v, wanted_inputs);
  }
  Expected<Tensor> constant_in(int i, std::string_view what);
  // All elements of an integer operand of rank 0 or 1.
  Expected<std::vector<int64_t>> ints_in(int i, std::string_view what);
  // The same where it may also follow from free dims: a Reshape's shape, a Slice's bounds.
  Expected<Shape> dims_in(int i, std::string_view what);
  Expected<std::vector<double>> floats_in(int i, std::string_view what);
  Expected<int64_t> int_in(int i, std::string_view what);
  Expected<double> float_in(int i, std::string_view what);

  // A negative axis counted from the end; invalid input when out of range.
  Expected<int64_t> axis(int64_t value, int rank) const;
  Expected<std::vector<int64_t>> axes_in_range(std::vector<int64_t> values,
                                               int rank) const;  // distinct, in the given order

  // ---- emission shorthands
  ValueId unary(UnaryOp op, ValueId x) { return build.unary(op, x); }
  ValueId binary(BinaryOp op, ValueId a, ValueId b) { return build.binary(op, a, b); }
  ValueId binary(BinaryOp op, ValueId a, double b) { return build.binary(op, a, scalar(dtype(a), b)); }
  // The positions where a mask, bool [n], holds, ascending: i64 of a size found at run time, at most n.
  ValueId positions_where(ValueId mask);
  // Constants of a compute dtype; unsupported for storage-only ones.
  ValueId scalar(DType dtype, double value);
  // A scalar with the value of a dim.
  ValueId number(DType dtype, const Dim& value);
  ValueId full(DType dtype, const Shape& shape, double value) {
    return build.broadcast_to(scalar(dtype, value), shape);
  }
  ValueId reshape(ValueId x, const std::vector<int64_t>& dims) { return build.reshape(x, make_shape(dims)); }
  // 0, 1, … count-1 along the first dim of [count, 1 × trailing].
  ValueId positions(DType dtype, const Dim& count, int trailing = 0);
  // f16 and bf16 as f32, for steps whose intermediates must be neither rounded nor overflow; others as they
  // are.
  ValueId widen(ValueId x);
  // Computed wide, in x's dtype.
  ValueId mean(ValueId x, const std::vector<int64_t>& axes, bool keepdims);

  // ---- ends
  Diagnostic invalid(std::string message, std::string hint = {}) const;
  Diagnostic refuse(std::string message, std::string hint = {}) const;  // unsupported
};

}  // namespace quernel
