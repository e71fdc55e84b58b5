// The TensorFlow Lite importer: a model file becomes graph IR. Every operator is decomposed into the core op set;
// nothing after this knows the format. All operators that cannot be imported are reported together.
#pragma once

#include <span>
#include <string>

#include "frontends/import_options.h"

namespace quernel {

// Returns whether a file is a TensorFlow Lite model: by its identifier, or by its name (.tflite).
bool is_tflite(const std::string& path);

// Imports a subgraph of a model file: the one of ImportOptions::signature, else the first.
Expected<ImportedModel> import_tflite(const std::string& path, const ImportOptions& options = {});
// Imports a model from memory. `file_name` is used in diagnostics.
Expected<ImportedModel> import_tflite_bytes(std::span<const uint8_t> bytes, const std::string& file_name,
                                            const ImportOptions& options = {});

// Returns the names that the inputs of a signature's subgraph have after import. Needs no operator to be supported.
Expected<ModelInputs> read_tflite_inputs(const std::string& path, const std::string& signature = {});

}  // namespace quernel
