// Model files of every format: the one place that picks the importer, by what a file holds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontends/import_options.h"

namespace quernel {

// Imports a model file: graph IR text by its name (.qg), TensorFlow Lite by its identifier or name (.tflite), anything
// else as ONNX. Of graph IR text the options mean nothing.
Expected<ImportedModel> import_file(const std::string& path, const ImportOptions& options = {});

// Returns the names of a model's inputs. Needs nothing of the model to be supported. Not of graph IR text.
// `signature`: as ImportOptions::signature.
Expected<ModelInputs> read_model_inputs(const std::string& path, const std::string& signature = {});
// Returns the values of the initializers of these names, without those that are not there or cannot be read. Only
// ONNX lists initializers among the inputs.
Expected<std::map<std::string, Tensor>> read_listed_initializers(const std::string& path,
                                                                 const std::vector<std::string>& names);

}  // namespace quernel
