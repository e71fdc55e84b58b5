// Walks the nodes of an ONNX graph in order and runs their importers: scopes of names, inlining of
// model-local functions and of If with a constant condition, and the gathering of all diagnostics.
// settle_names.cpp decides about names that are given twice, inline_graphs.cpp imports bodies, branches and
// functions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontends/onnx/custom_op.h"
#include "frontends/onnx/node_import.h"
#include "frontends/onnx/read_model.h"
#include "frontends/onnx/sort_nodes.h"
#include "frontends/shared/error_sink.h"
#include "frontends/shared/fold_value.h"
#include "frontends/shared/scale_nodes.h"

namespace quernel::onnx_import {

struct Operator;

// A tensor by name.
struct Entry {
  // kNoValue: an operand that the call of a function leaves out, an initializer that has not been read, or
  // what failed.
  ValueId value = kNoValue;
  const onnx::TensorProto* initializer = nullptr;  // not read yet
  // What gives it: a node, an initializer, or else an input.
  const onnx::NodeProto* node = nullptr;
  const onnx::TensorProto* tensor = nullptr;
  std::optional<Reported> failed;  // why it could not be computed
};

class GraphImport {
 public:
  // Reports what goes wrong to `errors`, which must outlive it.
  GraphImport(const onnx::ModelProto& model, int64_t opset, TensorSource source, const ImportOptions& options,
              Graph& graph, ErrorSink& errors);

  // Imports the main graph; `inputs` are the graph's inputs by name. Fills graph.outputs.
  void run(std::unordered_map<std::string, Entry> inputs);
  // Dims that would have to be equal; without numbers that only a branch demands, which may not be the one
  // that runs.
  std::vector<GraphBuilder::UnequalDims> unequal_dims() const;
  // Dims of failed nodes that had to be at least a number.
  const std::vector<LeastDim>& least_dims() const { return least_dims_; }
  // Names of graph inputs whose values failed nodes needed to know, with the first of these nodes.
  const std::map<std::string, std::string>& wanted_inputs() const { return wanted_inputs_; }
  // What the user may want to know of names that are given twice, and of outputs.
  std::vector<std::string> notes() const;
  // QuantizeLinear and DequantizeLinear of one scale.
  const std::vector<FoundScaleNode>& scale_nodes() const { return scale_nodes_; }
  // Names of the described custom ops that nodes use.
  const std::set<std::string>& used_custom_ops() const { return used_custom_ops_; }

 private:
  struct Scope {
    const Scope* outer = nullptr;
    std::unordered_map<std::string, Entry> entries;
    int depth = 0;
    bool continues = false;  // the outer scope is of the same graph: it has a body's initializers
  };

  void add_initializers(const onnx::GraphProto& graph, Scope& scope);
  void add_initializer(const onnx::TensorProto& tensor, Scope& scope);
  Diagnostic initializer_of_an_input(const std::string& name) const;
  void add_outputs(const onnx::GraphProto& graph, Scope& scope);

  // ---- names that are given twice
  // The nodes of a graph but for those whose results do not count.
  std::vector<const onnx::NodeProto*> settle_names(const NodeList& nodes, Scope& scope);
  // Whether a node's result replaces an initializer of its graph; else it is dropped, hides what an outer
  // graph defines, or there is a report.
  bool replaces(const onnx::NodeProto& node, int output, const Entry& entry, bool same_graph);
  // Whether the last definition counts; else a report.
  bool last_counts(const std::string& name, bool constants, const std::string& first,
                   const std::string& second, const Location& place);
  // Whether both, each a node or an initializer, are constants of one value.
  bool same_constant(const onnx::NodeProto* a_node, const onnx::TensorProto* a, const onnx::NodeProto* b_node,
                     const onnx::TensorProto* b);
  std::optional<Tensor> constant_of(const onnx::NodeProto* node, const onnx::TensorProto* tensor);
  bool is_dropped(const onnx::NodeProto& node, int output) const {
    return !dropped_.empty() && dropped_.count({&node, output}) > 0;
  }
  static std::string described(const Entry& entry);
  std::vector<std::string> name_notes() const;

  void import_nodes(const NodeList& nodes, Scope& scope);
  // Imports a node, or reports why not; then its outputs have failed.
  void import_node(const onnx::NodeProto& node, Scope& scope);
  // The functions below define the node's outputs, return what is wrong, or throw NodeFailed or
  // BuilderFailed.
  Status import_any(const onnx::NodeProto& node, Scope& scope);
  // `node`: in the form of the present opset; the results are those of `original`.
  Status import_operator(const onnx::NodeProto& node, const onnx::NodeProto& original, const Operator& op,
                         const CustomOpDescription* custom, Scope& scope);
  Status import_if(const onnx::NodeProto& node, Scope& scope);
  Status import_sequence_map(const onnx::NodeProto& node, Scope& scope);
  Status import_function(const onnx::FunctionProto& function, const onnx::NodeProto& node, Scope& scope);
  void import_function_body(const onnx::FunctionProto& function, const onnx::NodeProto& node, Scope& inner);
  // One pass through a body within `outer`, which holds the body's initializers. For NodeImport::inline_body.
  std::vector<ValueId> import_body(const onnx::GraphProto& body, const std::vector<ValueId>& inputs,
                                   ValueId iteration, Scope& outer, const Location& place);
  // For NodeImport::attempt.
  bool attempt(const std::function<bool()>& step);
  // The results of one branch of an If.
  std::vector<ValueId> import_branch(const onnx::NodeProto& node, bool condition, Scope& scope);
  // The results of an If whose condition is computed.
  std::vector<ValueId> import_branches(const onnx::NodeProto& node, ValueId condition, Scope& scope);
  // Counts a node; false and a report where that is one too many.
  bool count_node(const Location& place);
  // The description of the node's operator, if the user has given one.
  const CustomOpDescription* find_custom_op(const onnx::NodeProto& node) const;
  const onnx::FunctionProto* find_function(const onnx::NodeProto& node) const;
  // Entry of a name in this or an outer scope; null when there is none.
  Entry* find(Scope& scope, const std::string& name);
  // The scope that has the name, or null, and whether it is of the same graph.
  std::pair<Scope*, bool> owner_of(Scope& scope, const std::string& name);
  // kNoValue where it is left out. Throws NodeFailed where it has failed.
  ValueId value_of(Scope& scope, const std::string& name);
  // The value of an output of an inlined body. Throws NodeFailed where there is none.
  ValueId result_of(Scope& scope, const std::string& name, const Location& place);
  // Gives the node's outputs these values; `first_new_value`: values from here on take the outputs' names.
  void define(Scope& scope, const onnx::NodeProto& node, const std::vector<ValueId>& values,
              int32_t first_new_value = INT32_MAX);
  Status check_depth(const Location& place, int depth);
  void want(const std::set<ValueId>& inputs, const Location& place);
  Location place_of(const onnx::NodeProto& node) const;
  void keep_scale(NodeImport& n);

  const onnx::ModelProto& model_;
  std::map<std::pair<std::string_view, std::string_view>, const onnx::FunctionProto*>
      functions_;  // by domain and name
  int64_t opset_;
  TensorSource source_;
  const std::vector<CustomOpDescription>& custom_ops_;
  DuplicateNames names_rule_;
  OnnxChoices choices_;
  DType activations_;
  Graph& graph_;
  GraphBuilder build_;
  ConstantFolder folder_;
  CollectionTable collections_;
  std::vector<ValueId> iterations_;  // the numbers of the iterations that are being imported
  ErrorSink& errors_;
  // Nodes up to now, without and with those of attempts that were forgotten; bytes of functions' bodies.
  int64_t nodes_imported_ = 0, nodes_tried_ = 0, function_bytes_ = 0;
  int64_t max_nodes_ = INT64_MAX, max_function_bytes_ = INT64_MAX;
  std::set<const onnx::GraphProto*> long_bodies_;  // for NodeImport
  std::vector<LeastDim> least_dims_;
  std::vector<std::pair<size_t, size_t>> in_branches_;  // ranges of the builder's unequal dims
  std::map<std::string, std::string> wanted_inputs_;
  std::set<std::string> used_custom_ops_;
  // Results that another of their name replaces; names that notes tell of.
  std::set<std::pair<const onnx::NodeProto*, int>> dropped_;
  std::set<std::string> repeated_constants_, repeated_names_, hidden_names_;
  std::vector<std::string> output_notes_;
  std::vector<FoundScaleNode> scale_nodes_;
};

}  // namespace quernel::onnx_import
