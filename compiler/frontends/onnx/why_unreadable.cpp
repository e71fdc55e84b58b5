#include "frontends/onnx/why_unreadable.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quernel::onnx_import {
namespace {

// Other files that are given for models, by bytes at a place near their beginning.
struct Signature {
  size_t at;
  std::string_view bytes;
  const char* what;
  const char* hint;
};
constexpr const char* kFromPyTorch = "in Python: torch.onnx.export(model, example_inputs, \"model.onnx\")";
constexpr const char* kFromKeras =
    "in Python: model = keras.models.load_model(FILE); model.export(\"model.onnx\", format=\"onnx\")";
constexpr const char* kFromWeights =
    "it has weights without a graph; export the model that they belong to, e.g. with optimum-cli export onnx "
    "--model NAME FOLDER";
constexpr Signature kSignatures[] = {
    {0, "version https://git-lfs", "a Git LFS pointer", "fetch the file itself, e.g. with git lfs pull"},
    {4, "TFL3", "a TensorFlow Lite model",
     "python -m tf2onnx.convert --tflite FILE --output model.onnx makes an ONNX model of it"},
    {4, "ORTM", "a model in ONNX Runtime's own format", "take the ONNX model that it was made from"},
    {0, "\x89HDF", "an HDF5 file (as Keras writes)", kFromKeras},
    {0, "\x80\x02", "a pickle (as PyTorch writes)", kFromPyTorch},
    {0, "GGUF", "a GGUF file (as llama.cpp reads)", kFromWeights},
    {8, "{\"", "a safetensors file", kFromWeights},
    {0, "\x93NUMPY", "a NumPy array", "give the model file"},
    {0, "\x1f\x8b", "a gzip archive", "unpack it"},
    {0, "{", "a JSON text", "convert it to ONNX's binary form"},
    {0, "ir_version:", "a protobuf message in text form", "convert it to ONNX's binary form"},
    {0, "7767517", "an ncnn model", "take the model that it was converted from"},
};
constexpr Signature kWebPage = {0, "", "a web page (HTML)",
                                "the download went wrong; fetch the file itself, e.g. by its \"raw\" link"};
constexpr Signature kOpenVino = {0, "", "an OpenVINO model", "take the model that it was converted from"};
constexpr Signature kXml = {0, "", "a text in XML", "give the model file"};
constexpr Signature kPyTorchZip = {0, "", "a PyTorch file (a zip archive)", kFromPyTorch};
constexpr Signature kKerasZip = {0, "", "a Keras model (a zip archive)", kFromKeras};
constexpr Signature kZip = {0, "", "a zip archive", "unpack it"};

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

// What the file is, where its first bytes tell; else null.
const Signature* kind_of(std::string_view text) {
  if (text.starts_with("PK\x03\x04")) return &zip_kind(text);
  std::string_view begin = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
  if (begin.starts_with("<")) return &markup_kind(begin);
  for (const Signature& signature : kSignatures)
    if (text.size() > signature.at && text.substr(signature.at).starts_with(signature.bytes))
      return &signature;
  return nullptr;
}

// The messages of onnx.proto that can hold themselves, and the fields that lead from one to the next.
enum Kind : uint8_t { kModel, kFunction, kGraph, kNode, kAttribute, kValueInfo, kType, kElement };
struct Field {
  Kind from;
  uint32_t number;
  Kind to;
};
constexpr Field kFields[] = {
    {kModel, 7, kGraph},      {kModel, 25, kFunction},  {kFunction, 7, kNode},    {kGraph, 1, kNode},
    {kGraph, 11, kValueInfo}, {kGraph, 12, kValueInfo}, {kGraph, 13, kValueInfo}, {kNode, 5, kAttribute},
    {kAttribute, 6, kGraph},  {kAttribute, 11, kGraph}, {kAttribute, 14, kType},  {kAttribute, 15, kType},
    {kValueInfo, 2, kType},   {kType, 4, kElement},     {kType, 5, kElement},     {kType, 9, kElement},
    {kElement, 1, kType},     {kElement, 2, kType},
};

// Goes through a message's fields; nothing where they end or make no sense.
class WireReader {
 public:
  WireReader(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), at_(at) {}
  size_t at() const { return at_; }

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      uint8_t byte = bytes_[at_++];
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool skip(uint64_t count) {
    if (count > bytes_.size() - at_) return false;
    at_ += static_cast<size_t>(count);
    return true;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_;
};

// How many messages lie in each other at most, up to where the bytes make no sense.
size_t message_depth(std::span<const uint8_t> bytes) {
  struct Message {
    Kind kind;
    size_t end;
  };
  std::vector<Message> open{{kModel, bytes.size()}};
  size_t deepest = 1;
  WireReader reader(bytes, 0);
  while (true) {
    while (!open.empty() && reader.at() >= open.back().end) open.pop_back();
    if (open.empty()) return deepest;
    std::optional<uint64_t> tag = reader.varint();
    if (!tag) return deepest;
    std::optional<uint64_t> length = 0;
    if ((*tag & 7) == 0 && !reader.varint()) return deepest;
    if ((*tag & 7) == 1) length = 8;
    if ((*tag & 7) == 5) length = 4;
    if ((*tag & 7) == 2) length = reader.varint();
    if ((*tag & 7) == 3 || (*tag & 7) == 4 || !length || *length > bytes.size() - reader.at()) return deepest;
    const Field* inner = nullptr;
    for (const Field& field : kFields)
      if ((*tag & 7) == 2 && field.from == open.back().kind && field.number == *tag >> 3) inner = &field;
    if (!inner && !reader.skip(*length)) return deepest;
    if (!inner) continue;
    open.push_back({inner->to, reader.at() + static_cast<size_t>(*length)});
    deepest = std::max(deepest, open.size());
  }
}

}  // namespace

Diagnostic why_unreadable(std::span<const uint8_t> bytes, const Location& place) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const Signature* kind = kind_of(text))
    return invalid_input(std::string("expected an ONNX model, found ") + kind->what, place, kind->hint);
  if (size_t depth = message_depth(bytes); depth > static_cast<size_t>(kMaxMessageDepth))
    return unsupported("bodies and branches in each other make " + std::to_string(depth) +
                           " nested protobuf messages, but at most " + std::to_string(kMaxMessageDepth) +
                           " are read",
                       place, "nest If, Loop and Scan less deeply, or make functions of their bodies");
  return invalid_input("not an ONNX model, or truncated or corrupted: the protobuf message does not parse",
                       place, "check that the file is complete");
}

}  // namespace quernel::onnx_import
