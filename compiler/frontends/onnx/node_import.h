// What an operator's importer sees of its node: operands, attributes, constants, and the builder it emits
// core ops with.
//
// An importer is `Status import_<operator>(NodeImport& n)` and ends in `return n.output(value)`. The first
// failure of the builder or of an attribute read ends it (by BuilderFailed, which import_graph catches), so a
// straight line of calls needs no check between them; what is needed as a number (dims, constants) comes as
// Expected. Attributes that no importer asked for are reported as unknown.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/onnx/fold_value.h"
#include "frontends/onnx/read_model.h"
#include "frontends/onnx/sequence.h"
#include "frontends/onnx/solve_dims.h"
#include "graph/build.h"
#include "support/onnx_choices.h"

namespace quernel::onnx_import {

class NodeImport {
 public:
  NodeImport(const onnx::NodeProto& node, int64_t model_opset, GraphBuilder& builder, ConstantFolder& fold,
             TensorSource& tensors)
      : proto(node),
        opset(model_opset),
        build(builder),
        folder(fold),
        source(tensors),
        outputs(node.output_size(), kNoValue) {}

  const onnx::NodeProto& proto;
  const int64_t opset;
  GraphBuilder& build;
  ConstantFolder& folder;
  TensorSource& source;
  CollectionTable* collections = nullptr;  // of sequences and optionals
  OnnxChoices choices;
  // Imports the nodes of a graph attribute with these values as its inputs, and gives its outputs' values. A
  // failure inside ends the import of this node. `iteration`: the number of the loop's iteration, an integer
  // scalar.
  std::function<std::vector<ValueId>(const onnx::GraphProto& body, const std::vector<ValueId>& inputs,
                                     ValueId iteration)>
      inline_body;
  // Runs a step that may fail, by its result or in bodies that it inlines; then what it reported, and the
  // builder's failure, are forgotten. Whether it succeeded.
  std::function<bool(const std::function<bool()>& step)> attempt;
  // How many nodes have been imported, those of inlined bodies among them.
  const int64_t* nodes_imported = nullptr;
  // Bodies of which a few iterations have too many nodes to be unrolled, as has been found out.
  std::set<const onnx::GraphProto*>* long_bodies = nullptr;
  // The numbers of the iterations around this node, outermost first.
  std::vector<ValueId> iterations;
  std::vector<ValueId> inputs;      // kNoValue for an omitted optional operand; trailing ones may be missing
  std::vector<ValueId> outputs;     // set by output()
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
  bool wants_output(int i) const { return i < proto.output_size() && !proto.output(i).empty(); }

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

  // ---- attributes
  const onnx::AttributeProto* attribute(const char* name);  // null when absent
  int64_t attr_int(const char* name, int64_t fallback);
  double attr_float(const char* name, double fallback);
  std::string attr_string(const char* name, const char* fallback);
  std::optional<std::vector<int64_t>> attr_ints(const char* name);
  std::optional<std::vector<double>> attr_floats(const char* name);
  void ignore_attribute(const char* name) { used_attributes_.insert(name); }
  std::vector<std::string> unused_attributes() const;
  // Axes given as an operand from `since` on, as an attribute before. nullopt: absent.
  Expected<std::optional<std::vector<int64_t>>> axes(int operand, int64_t since, const char* name = "axes");

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
  // For an importer of several steps that has narrow operands: from here on in(i) gives every operand
  // widened, and output() and set_outputs() round results of f32 to the dtype that operand `like` had.
  void compute_wide(int like = 0);
  // Computed wide, in x's dtype.
  ValueId mean(ValueId x, const std::vector<int64_t>& axes, bool keepdims);

  // ---- ends
  Status output(ValueId v) { return set_outputs({v}); }
  Status set_outputs(std::vector<ValueId> values);
  Diagnostic invalid(std::string message, std::string hint = {}) const;
  Diagnostic refuse(std::string message, std::string hint = {}) const;  // unsupported

 private:
  std::set<std::string> used_attributes_;
  std::optional<DType> rounding_;  // what results of f32 are rounded to
};

}  // namespace quernel::onnx_import
