#include "frontends/shared/file_kind.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace quernel {
namespace {

// Other files that are given for models, by bytes at a place near their beginning.
struct Signature {
  size_t at;
  std::string_view bytes;
  const char* what;
  const char* to_onnx;
  const char* to_tflite;
};
constexpr const char* kFromPyTorch = "in Python: torch.onnx.export(model, example_inputs, \"model.onnx\")";
constexpr const char* kFromKeras =
    "in Python: model = keras.models.load_model(FILE); model.export(\"model.onnx\", format=\"onnx\")";
constexpr const char* kTfliteFromPyTorch =
    "in Python: litert_torch.convert(model.eval(), example_inputs).export(\"model.tflite\"), or export it to "
    "ONNX";
constexpr const char* kTfliteFromKeras =
    "in Python: open(\"model.tflite\", \"wb\").write(tf.lite.TFLiteConverter.from_keras_model("
    "keras.models.load_model(FILE)).convert())";
constexpr const char* kGiveModel = "give the model file";
constexpr const char* kFromWeights =
    "it has weights without a graph; export the model that they belong to, e.g. with optimum-cli export onnx "
    "--model NAME FOLDER";
constexpr Signature kSignatures[] = {
    {0, "version https://git-lfs", "a Git LFS pointer", "fetch the file itself, e.g. with git lfs pull",
     "fetch the file itself, e.g. with git lfs pull"},
    {4, "TFL3", "a TensorFlow Lite model",
     "python -m tf2onnx.convert --tflite FILE --output model.onnx makes an ONNX model of it", kGiveModel},
    {4, "ORTM", "a model in ONNX Runtime's own format", "take the ONNX model that it was made from",
     "take the ONNX model that it was made from, and name it .onnx"},
    {0, "\x89HDF", "an HDF5 file (as Keras writes)", kFromKeras, kTfliteFromKeras},
    {0, "\x80\x02", "a pickle (as PyTorch writes)", kFromPyTorch, kTfliteFromPyTorch},
    {0, "GGUF", "a GGUF file (as llama.cpp reads)", kFromWeights, kFromWeights},
    {8, "{\"", "a safetensors file", kFromWeights, kFromWeights},
    {0, "\x93NUMPY", "a NumPy array", kGiveModel, kGiveModel},
    {0, "\x1f\x8b", "a gzip archive", "unpack it", "unpack it"},
    {0, "{", "a JSON text", "convert it to ONNX's binary form", kGiveModel},
    {0, "ir_version:", "a protobuf message in text form", "convert it to ONNX's binary form",
     "name it .onnx, and convert it to ONNX's binary form"},
    {0, "7767517", "an ncnn model", "take the model that it was converted from",
     "take the model that it was converted from"},
};
constexpr const char* kFetch = "the download went wrong; fetch the file itself, e.g. by its \"raw\" link";
constexpr const char* kOriginal = "take the model that it was converted from";
constexpr Signature kWebPage = {0, "", "a web page (HTML)", kFetch, kFetch};
constexpr Signature kOpenVino = {0, "", "an OpenVINO model", kOriginal, kOriginal};
constexpr Signature kXml = {0, "", "a text in XML", kGiveModel, kGiveModel};
constexpr Signature kPyTorchZip = {0, "", "a PyTorch file (a zip archive)", kFromPyTorch, kTfliteFromPyTorch};
constexpr Signature kKerasZip = {0, "", "a Keras model (a zip archive)", kFromKeras, kTfliteFromKeras};
constexpr Signature kZip = {0, "", "a zip archive", "unpack it", "unpack it"};

constexpr size_t kBeginning = 4096;  // bytes that are looked at

// A zip archive by the name of its first file.
const Signature& zip_kind(std::string_view text) {
  constexpr size_t kLengthAt = 26, kNameAt = 30;
  if (text.size() < kNameAt) return kZip;
  auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(text[at])); };
  std::string_view name = text.substr(kNameAt, byte(kLengthAt) | byte(kLengthAt + 1) << 8);
  if (name.find(".pkl") != name.npos || name.ends_with("/version") || name.find("/data/") != name.npos)
    return kPyTorchZip;
  return name == "metadata.json" || name == "config.json" ? kKerasZip : kZip;
}

// A text that begins with '<'.
const Signature& markup_kind(std::string_view text) {
  std::string lower;
  for (char c : text.substr(0, kBeginning)) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (lower.find("<!doctype html") != lower.npos || lower.find("<html") != lower.npos) return kWebPage;
  return lower.find("<net ") != lower.npos ? kOpenVino : kXml;
}

const Signature* signature_of(std::string_view text) {
  if (text.starts_with("PK\x03\x04")) return &zip_kind(text);
  std::string_view begin = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
  if (begin.starts_with("<")) return &markup_kind(begin);
  for (const Signature& signature : kSignatures)
    if (text.size() > signature.at && text.substr(signature.at).starts_with(signature.bytes))
      return &signature;
  return nullptr;
}

}  // namespace

std::optional<FileKind> kind_of_file(std::span<const uint8_t> bytes, ModelFormat wanted) {
  const Signature* found = signature_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!found) return std::nullopt;
  return FileKind{found->what, wanted == ModelFormat::kOnnx ? found->to_onnx : found->to_tflite};
}

}  // namespace quernel
