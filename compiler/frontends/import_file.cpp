#include "frontends/import_file.h"

#include "frontends/onnx/import_model.h"
#include "frontends/text/import_text.h"
#include "frontends/tflite/import_model.h"

namespace quernel {

Expected<ImportedModel> import_file(const std::string& path, const ImportOptions& options) {
  if (options.rounding && !is_tflite(path))
    return invalid_input("--rounding: expected a TensorFlow Lite model, found one of another format",
                         {.file = path}, "leave the option out: other models say themselves how they round");
  if (path.size() > 3 && path.ends_with(".qg")) {
    QUERNEL_TRY(Graph graph, import_text(path));
    ImportedModel model;
    model.graph = std::move(graph);
    return model;
  }
  return is_tflite(path) ? import_tflite(path, options) : import_onnx(path, options);
}

Expected<ModelInputs> read_model_inputs(const std::string& path, const std::string& signature) {
  return is_tflite(path) ? read_tflite_inputs(path, signature) : read_onnx_inputs(path);
}

Expected<std::map<std::string, Tensor>> read_listed_initializers(const std::string& path,
                                                                 const std::vector<std::string>& names) {
  if (is_tflite(path)) return std::map<std::string, Tensor>();
  return read_onnx_initializers(path, names);
}

}  // namespace quernel
