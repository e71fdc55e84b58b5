// Variables: tensors that a model keeps from run to run, as resources with a name (VAR_HANDLE) or as tensors that
// operators update (is_variable). They become states of the graph.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "graph/build.h"

namespace quernel::tflite_import {

class Variables {
 public:
  explicit Variables(Graph& graph) : graph_(graph) {}

  // Returns the current value; the first read before a write makes the state's input, of this type.
  ValueId read(const std::string& name, const TensorType& type, const Location& place);
  void write(const std::string& name, ValueId value) { variables_[name].current = value; }
  // What the variable holds before the first run; zeros without it.
  void set_initial(const std::string& name, Tensor value) { variables_[name].initial = std::move(value); }

  // Adds the graph's outputs and states, after all nodes. Requires values of the types that were read.
  Status finish(const std::string& file);

 private:
  struct Variable {
    ValueId input = kNoValue, current = kNoValue;
    std::optional<Tensor> initial;
  };
  Graph& graph_;
  std::map<std::string, Variable> variables_;
};

}  // namespace quernel::tflite_import
