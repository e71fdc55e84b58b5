// What an operator's importer sees of its node: options and quantization besides what imported_node.h has.
//
// An importer is `Status import_<operator>(NodeImport& n)` and ends in `return n.output(value)`. Options that no
// importer asked for, and fields that tflite.fbs does not know, are errors.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "frontends/shared/imported_node.h"
#include "frontends/tflite/tensors.h"

namespace quernel::tflite_import {

class NodeImport : public ImportedNode {
 public:
  NodeImport(const ModelFile& model_file, const tflite::SubGraph& sub, const tflite::Operator& node,
             GraphBuilder& builder, ConstantFolder& fold);

  const ModelFile& file;
  const tflite::SubGraph& subgraph;
  const tflite::Operator& op;
  const tflite::BuiltinOperator kind;
  std::vector<ValueId> outputs;  // set by output()
  // Imports another subgraph of the file with these values as its inputs, and gives its outputs' values. A failure
  // inside ends the import of this node.
  std::function<std::vector<ValueId>(int64_t subgraph, const std::vector<ValueId>& inputs)> inline_subgraph;
  // Makes a value the next one of a variable, a tensor of the node's subgraph that operand i names.
  std::function<void(int32_t tensor, ValueId value)> assign_variable;
  // Returns the value of a tensor of the node's subgraph.
  std::function<ValueId(int32_t tensor)> value_of;
  // Tells the user something about the node.
  std::function<void(const std::string& text)> note;

  // ---- tensors
  // Null where the operand is left out.
  const tflite::Tensor* in_tensor(int i) const;
  const tflite::Tensor& out_tensor(int i) const;
  int output_count() const { return static_cast<int>(outputs.size()); }
  // Of operand or result i, checked before the importer runs.
  const Quantization& in_quantization(int i) const {
    expect_operand(i);
    return in_quantization_[static_cast<size_t>(i)];
  }
  const Quantization& out_quantization(int i) const {
    expect_result(i);
    return out_quantization_[static_cast<size_t>(i)];
  }
  DType out_dtype(int i) const {
    expect_result(i);
    return out_dtypes_[static_cast<size_t>(i)];
  }
  // The result's shape as the file declares it.
  std::vector<int64_t> declared_shape(int i) const;
  // Reads the quantization of all operands and results.
  Status read_quantization();
  // Whether operand i has one of these dtypes and a scale, so that it stands for real numbers.
  bool is_quantized(int i) const;
  bool is_output_quantized(int i = 0) const;
  // Whether operand i is f32, or f16, which is computed in f32.
  bool is_float(int i) const { return quernel::is_float(dtype(in(i))); }
  // Whether operand i is complex: f32 with one more dim, of both parts.
  bool is_complex(int i) const { return in_tensor(i) && tflite_import::is_complex(*in_tensor(i)); }

  // ---- options
  // The node's options; those of a node without any are the defaults. Invalid where it has another kind.
  template <class T>
  const T& options();
  // The same of the second list of kinds.
  template <class T>
  const T& options2();
  void ignore_options() { options_read_ = true; }
  // The custom operator's own bytes, which may lie behind the FlatBuffer.
  std::vector<uint8_t> custom_options();

  // ---- checks with one wording
  Status expect_dtypes(int i, std::initializer_list<DType> dtypes) const;
  Status expect_rank(int i, int least, int most) const;
  // Requires one scale of operand i, of result i.
  Status expect_per_tensor(int i) const;
  Status expect_output_per_tensor(int i = 0) const;
  Diagnostic bad_option(const std::string& name, const std::string& expected, const std::string& found) const;
  // That the operator cannot be imported with these dtypes.
  Diagnostic no_kernel() const;

  // ---- real values
  // Operand i as f32: floats as they are, quantized elements dequantized.
  ValueId real(int i);

  // ---- ends
  Status output(ValueId v) { return set_outputs({v}); }
  Status set_outputs(std::vector<ValueId> values);

 private:
  // These end the import of a node that the file gives fewer operands or results.
  void expect_operand(int i) const;
  void expect_result(int i) const;
  static const void* no_options();  // a table without fields
  // These end the import of the node.
  void wrong_options();
  void check_fields(std::optional<int> unknown);

  std::vector<Quantization> in_quantization_, out_quantization_;
  std::vector<DType> out_dtypes_;
  bool options_read_ = false, options2_read_ = false, custom_read_ = false, large_custom_read_ = false;
};

// Returns the shape in which a scale for each index of a dim is broadcast over x; ends the import if x has no such dim.
Shape shape_of_scales(ImportedNode& n, ValueId x, const Quantization& q);
// A real tensor in the integers of `q`, dequantized to f32.
ValueId dequantize(ImportedNode& n, ValueId x, const Quantization& q);
// The same of scales in blocks, whose tensor is `scales`.
ValueId dequantize_blocks(ImportedNode& n, ValueId x, const Quantization& q, ValueId scales);

template <class T>
const T& NodeImport::options() {
  options_read_ = true;
  if (!op.builtin_options()) return *static_cast<const T*>(no_options());
  if (op.builtin_options_type() != tflite::BuiltinOptionsTraits<T>::enum_value) wrong_options();
  check_fields(unknown_field(*op.builtin_options_as<T>()));
  return *op.builtin_options_as<T>();
}

template <class T>
const T& NodeImport::options2() {
  options2_read_ = true;
  if (!op.builtin_options_2()) return *static_cast<const T*>(no_options());
  if (op.builtin_options_2_type() != tflite::BuiltinOptions2Traits<T>::enum_value) wrong_options();
  check_fields(unknown_field(*op.builtin_options_2_as<T>()));
  return *op.builtin_options_2_as<T>();
}

}  // namespace quernel::tflite_import
