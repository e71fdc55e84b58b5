// What an ONNX operator's importer sees of its node: attributes besides what imported_node.h has.
//
// An importer is `Status import_<operator>(NodeImport& n)` and ends in `return n.output(value)`. The first
// failure of the builder or of an attribute read ends it. Attributes that no importer asked for are reported as
// unknown.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/onnx/read_model.h"
#include "frontends/onnx/sequence.h"
#include "frontends/shared/imported_node.h"
#include "support/onnx_choices.h"

namespace quernel::onnx_import {

class NodeImport : public ImportedNode {
 public:
  NodeImport(const onnx::NodeProto& node, int64_t model_opset, GraphBuilder& builder, ConstantFolder& fold,
             TensorSource& tensors)
      : ImportedNode(builder, fold),
        proto(node),
        opset(model_opset),
        source(tensors),
        outputs(node.output_size(), kNoValue) {
    input_names.assign(node.input().begin(), node.input().end());
    output_names.assign(node.output().begin(), node.output().end());
  }

  const onnx::NodeProto& proto;
  const int64_t opset;
  TensorSource& source;
  CollectionTable* collections = nullptr;  // of sequences and optionals
  OnnxChoices choices;
  DType activations = DType::kF32;  // ImportOptions::activations
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
  std::vector<ValueId> outputs;  // set by output()

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

  // ---- emission

  // For an importer of several steps that has narrow operands: from here on in(i) gives every operand
  // widened, and output() and set_outputs() round results of f32 to the dtype that operand `like` had.
  void compute_wide(int like = 0);

  // ---- ends
  Status output(ValueId v) { return set_outputs({v}); }
  Status set_outputs(std::vector<ValueId> values);

 private:
  std::set<std::string> used_attributes_;
  std::optional<DType> rounding_;  // what results of f32 are rounded to
};

}  // namespace quernel::onnx_import
