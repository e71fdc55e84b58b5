#include "frontends/tflite/variables.h"

namespace quernel::tflite_import {

ValueId Variables::read(const std::string& name, const TensorType& type, const Location& place) {
  Variable& variable = variables_[name];
  if (variable.current == kNoValue) variable.input = variable.current = graph_.add_input(name, type, place);
  return variable.current;
}

Status Variables::finish(const std::string& file) {
  for (auto& [name, variable] : variables_) {
    if (variable.input == kNoValue) continue;  // nobody reads what is kept
    Location place{file, name, "variable"};
    const TensorType &type = graph_.type(variable.input), &last = graph_.type(variable.current);
    if (!(type == last) || !is_static(type.shape))
      return unsupported("variable '" + name + "': expected values of one fixed type, found " +
                             to_string(type) + " and " + to_string(last),
                         place, "convert the model with a fixed batch size");
    Graph::State state;
    if (variable.initial) {
      const Tensor& value = *variable.initial;
      if (value.dtype != type.dtype || make_shape(value.dims) != type.shape)
        return unsupported("variable '" + name + "': expected values of one fixed type, found " +
                               to_string(type) + " and " +
                               to_string(TensorType{value.dtype, make_shape(value.dims)}),
                           place, "convert the model with a fixed batch size");
      state.initial = value;
    }
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      if (graph_.inputs[i] == variable.input) state.input = i;
    state.output = graph_.outputs.size();
    graph_.outputs.push_back(
        {graph_.values[static_cast<size_t>(variable.input)].name + "_next", variable.current});
    graph_.states.push_back(std::move(state));
  }
  return {};
}

}  // namespace quernel::tflite_import
