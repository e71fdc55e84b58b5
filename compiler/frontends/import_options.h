// What the importers of all formats take and give.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/custom_op.h"
#include "graph/duplicate_names.h"
#include "graph/io_types.h"
#include "graph/ir.h"
#include "support/dtype.h"
#include "support/integer_rounding.h"
#include "support/model_about.h"
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
  // kI8: rows of activations of products with quantised weights will be rounded to i8, which a model may forbid.
  DType activations = DType::kF32;
  // Of TensorFlow Lite models; a model of another format refuses one.
  std::optional<IntegerRounding> rounding;
  // The signature of a TensorFlow Lite model that is imported, where the model has several; empty: the first
  // subgraph. Means nothing to models of another format.
  std::string signature;
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
  std::optional<IntegerRounding> rounding;   // that quantized operators of TensorFlow Lite got
  ModelAbout about;
  IoScales scales;    // of inputs and outputs
  int64_t opset = 0;  // ONNX: of the default domain
};

// The names of a model's inputs, in its order.
struct ModelInputs {
  std::vector<std::string> names;     // without initializers
  std::vector<std::string> with_all;  // with the initializers that are listed among them
};

}  // namespace quernel
