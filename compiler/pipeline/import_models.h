// Model files to graphs, as options say: the first stage of the pipeline, for each entry point.
#pragma once

#include <string>
#include <vector>

#include "graph/ir.h"
#include "quernel/compiler.h"

namespace quernel {

// What of a model concerns who uses it, not what it computes.
struct ModelFacts {
  std::optional<IntegerRounding> rounding;  // of quantized TensorFlow Lite operators, if there are any
  std::vector<IoScales> scales;             // of each entry point; fewer: those of the rest are not known
  ModelAbout about;                         // of the first entry point's file
  std::vector<std::string> sha256;     // of each entry point's file; fewer: those of the rest are not known
  std::vector<int64_t> multiply_adds;  // of each entry point, as CompileReport::multiply_adds
};

struct Imported {
  Graph graph;
  std::vector<std::string> notes;
  std::vector<std::string> fixed_inputs;  // constants now, through CompileOptions::input_values
  std::vector<std::string> fourier_outputs;
  std::vector<QuantizedLayer> quantized;    // by CompileOptions::weights
  std::optional<IntegerRounding> rounding;  // of quantized TensorFlow Lite operators, if there are any
  IoScales scales;                          // of integer inputs and outputs
  ModelAbout about;
  std::string file;  // of the model
};
// Imports a file of any format (frontends/import_file.h).
Expected<Imported> import_model(const std::string& path, const CompileOptions& options);
// The models of all entry points that are to be built, of `model` where they name none; notes begin with the
// entry point's name where there are several.
Expected<std::vector<Imported>> import_entry_points(const std::string& model, const CompileOptions& options);
// Entry points see one variable by one name: it has to be the same to all.
Status check_shared_states(const std::vector<Graph>& graphs);

}  // namespace quernel
