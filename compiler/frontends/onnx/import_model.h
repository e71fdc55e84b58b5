// The ONNX importer: a model file becomes graph IR. Every operator is decomposed into the core op set;
// nothing after this knows ONNX. All nodes that cannot be imported are reported together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/custom_op.h"
#include "graph/duplicate_names.h"
#include "graph/ir.h"
#include "support/onnx_choices.h"

namespace quernel {

struct ImportOptions {
  std::map<std::string, int64_t> dims;                       // fixes a named free dim: --dim name=value
  std::map<std::string, Symbol> dim_ranges;                  // min, max and multiple_of of a named free dim
  std::map<std::string, std::vector<int64_t>> input_shapes;  // fixes the whole shape of an input
  // Such a shape replaces one that the model declares and that contradicts it, as ONNX's own test runner
  // takes the data's shapes; else that is an error.
  bool declared_shapes_yield = false;
  // Values of inputs. Where an operator needs one at compile time (a Reshape's shape, an If's condition), the
  // input becomes a constant and is no input of the graph any more; the others stay inputs, and their values
  // are not used.
  std::map<std::string, Tensor> input_values;
  // Shell patterns: initializers that the model lists as inputs, too, and that stay inputs. A pattern that
  // matches none is invalid input; all others are constants.
  std::vector<std::string> keep_inputs;
  DuplicateNames duplicate_names = DuplicateNames::kConstants;
  // Operators that become custom ops, also where an importer or a function of the model has their names.
  std::vector<CustomOpDescription> custom_ops;
  OnnxChoices choices;
  // Folders besides the model's that external data may lie in.
  std::vector<std::string> external_dirs;
  // No limits of nodes, and of bytes of functions' bodies, after inlining.
  bool allow_large = false;
  int64_t max_initializer_bytes = int64_t{64} << 30;  // of all initializers together; more is refused
};

struct ImportedModel {
  Graph graph;
  std::vector<std::string> notes;         // what the user may want to know, one sentence each
  std::vector<std::string> fixed_inputs;  // inputs that became constants through ImportOptions::input_values
  std::vector<std::string> fourier_outputs;  // those that a Fourier transform gives
  std::string producer;                      // as the file says, e.g. "pytorch 1.9"
  int64_t opset = 0;                         // of the default domain
};

// Imports a model file; external data are read relative to its folder, which links may not leave.
Expected<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options = {});
// Imports a model from memory. `file_name` is used in diagnostics, and its folder for external data.
Expected<ImportedModel> import_onnx_bytes(std::span<const uint8_t> bytes, const std::string& file_name,
                                          const ImportOptions& options = {});

// The names of a model's inputs, in its order. Needs nothing of the model to be supported.
struct OnnxInputs {
  std::vector<std::string> names;     // without initializers
  std::vector<std::string> with_all;  // with the initializers that are listed among them
};
Expected<OnnxInputs> read_onnx_inputs(const std::string& path);
// The values of the initializers of these names, without those that are not there or cannot be read.
Expected<std::map<std::string, Tensor>> read_onnx_initializers(const std::string& path,
                                                               const std::vector<std::string>& names);

// A tensor file as ONNX data sets have them (one TensorProto).
struct NamedTensor {
  std::string name;  // may be empty
  Tensor tensor;
};
Expected<NamedTensor> read_tensor_proto(const std::string& path);

}  // namespace quernel
