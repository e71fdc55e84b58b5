// Finds the layer at which a device begins to compute something else: the model is compiled once more with
// the result of every node as an output and run there; each result is compared with what the interpreter
// makes of the operands that the device itself had. A layer that is wrong is thereby told from those that
// follow it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quernel/compiler.h"
#include "tensor_file.h"

namespace quernel::tools {

struct DivergingLayer {
  bool found = false;
  std::string node, op, message;  // of the model's node: what is off, or why none could be found
};

// Runs what was compiled on the device: inputs and outputs have their names.
using RunCompiled = std::function<Expected<std::vector<tensor_file::HostTensor>>(
    const CompileReport& report, const std::vector<tensor_file::HostTensor>& inputs)>;

// `options` fix all shapes; `inputs` have the names of the model's inputs. The model with all results is
// written to `output`.
DivergingLayer find_diverging_layer(const std::string& model, const CompileOptions& options,
                                    const std::vector<tensor_file::HostTensor>& inputs,
                                    const std::string& output, const RunCompiled& run);

}  // namespace quernel::tools
