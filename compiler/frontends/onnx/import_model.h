// The ONNX importer: a model file becomes graph IR. Every operator is decomposed into the core op set;
// nothing after this knows ONNX. All nodes that cannot be imported are reported together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "frontends/import_options.h"

namespace quernel {

// Imports a model file; external data are read relative to its folder, which links may not leave.
Expected<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options = {});
// Imports a model from memory. `file_name` is used in diagnostics, and its folder for external data.
Expected<ImportedModel> import_onnx_bytes(std::span<const uint8_t> bytes, const std::string& file_name,
                                          const ImportOptions& options = {});

// Needs nothing of the model to be supported.
Expected<ModelInputs> read_onnx_inputs(const std::string& path);
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
