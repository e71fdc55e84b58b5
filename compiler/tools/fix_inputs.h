// Gives inputs of an ONNX model the values of tensor files, so that they are constants to the compiler.
// Protocol buffers merge when they are joined end to end: a model followed by a graph that holds only
// initializers is the model with these initializers, and an input with an initializer of its name is a
// constant.
#pragma once

#include <string>
#include <vector>

#include "data_set.h"
#include "support/expected.h"

namespace quernel::tools {

// Writes `model` with the named files' values to `fixed_model`. Every file must have a name.
Status fix_inputs(const std::string& model, const std::vector<const DataFile*>& files,
                  const std::string& fixed_model);

}  // namespace quernel::tools
