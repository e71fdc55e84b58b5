// Walks the operators of a model's subgraphs in order and runs their importers, and gathers all diagnostics.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontends/import_options.h"
#include "frontends/shared/error_sink.h"
#include "frontends/shared/scale_nodes.h"
#include "frontends/tflite/node_import.h"
#include "frontends/tflite/variables.h"

namespace quernel::tflite_import {

// A tensor of a subgraph during the import.
struct Entry {
  ValueId value = kNoValue;        // kNoValue: not computed yet, or a constant that has not been read
  std::optional<Reported> failed;  // why it could not be computed
  std::string variable;            // of a handle: the name of what it stands for
};

class GraphImport {
 public:
  // Reports what goes wrong to `errors`. All references must outlive it.
  GraphImport(const ModelFile& file, const ImportOptions& options, Graph& graph, ErrorSink& errors);

  // Imports the first subgraph; `inputs`: its tensors' entries. Fills graph.outputs with these names.
  void run(std::vector<Entry> tensors, const std::vector<std::string>& output_names);
  const std::vector<GraphBuilder::UnequalDims>& unequal_dims() const { return build_.unequal_dims(); }
  // Dims of failed nodes that had to be at least a number.
  const std::vector<LeastDim>& least_dims() const { return least_dims_; }
  // Names of graph inputs whose values failed nodes needed to know, with the first of these nodes.
  const std::map<std::string, std::string>& wanted_inputs() const { return wanted_inputs_; }
  // Names of the described custom ops that operators use.
  const std::set<std::string>& used_custom_ops() const { return used_custom_ops_; }
  // For the user, about operators.
  const std::vector<std::string>& notes() const { return notes_; }
  // QUANTIZE and DEQUANTIZE of one scale.
  const std::vector<FoundScaleNode>& scale_nodes() const { return scale_nodes_; }

 private:
  struct Scope {
    const tflite::SubGraph& subgraph;
    std::vector<Entry> tensors;
    int depth = 0;
  };

  void import_nodes(Scope& scope);
  // Imports a node, or reports why not; then its results have failed.
  void import_node(const tflite::Operator& node, Scope& scope);
  // Defines the node's results, returns what is wrong, or throws NodeFailed or BuilderFailed.
  Status import_operator(const tflite::Operator& node, Scope& scope, const Location& place);
  // The value of a tensor. Throws NodeFailed where it has failed, or is computed by no earlier node.
  ValueId value_of(Scope& scope, int32_t tensor, const Location& place);
  // Operators on handles of variables; the others are left to import_operator, which gets false.
  Expected<bool> import_variable_operator(const tflite::Operator& node, Scope& scope, const Location& place);
  Status initialize_variables(int64_t subgraph, const Scope& outer, const Location& place);
  std::vector<ValueId> import_subgraph(int64_t number, const std::vector<ValueId>& inputs, const Scope& outer,
                                       const Location& place);
  // The description of a custom operator; null where there is none.
  const CustomOpDescription* find_custom_op(const std::string& name);
  // Complex tensors are for a few operators only.
  Status check_complex(const NodeImport& n) const;
  Location place_of(const tflite::Operator& node, const Scope& scope) const;
  void keep_scale(const NodeImport& n);

  const ModelFile& file_;
  Graph& graph_;
  GraphBuilder build_;
  ConstantFolder folder_;
  ErrorSink& errors_;
  Variables variables_;
  const std::vector<CustomOpDescription>& custom_ops_;
  std::set<std::string> used_custom_ops_;
  std::vector<std::string> notes_;
  std::vector<FoundScaleNode> scale_nodes_;
  std::map<int64_t, Reported> failed_subgraphs_;
  bool initializes_ = false;  // what is assigned are the variables' first values
  int64_t nodes_imported_ = 0, max_nodes_ = INT64_MAX;
  std::vector<LeastDim> least_dims_;
  std::map<std::string, std::string> wanted_inputs_;
};

}  // namespace quernel::tflite_import
