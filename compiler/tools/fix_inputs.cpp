#include "fix_inputs.h"

namespace quernel::tools {
namespace {

// Field numbers of onnx.proto: ModelProto.graph, GraphProto.initializer.
constexpr int kModelGraph = 7, kGraphInitializer = 5;

void append_varint(std::string& out, size_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void append_message(std::string& out, int field, const std::string& message) {
  constexpr int kLengthDelimited = 2;
  append_varint(out, static_cast<size_t>(field << 3 | kLengthDelimited));
  append_varint(out, message.size());
  out += message;
}

Expected<std::string> read_text(const std::string& path) {
  std::vector<std::byte> bytes;
  if (tensor_file::Error error = tensor_file::read_file(path, &bytes)) return invalid_input(*error);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Status fix_inputs(const std::string& model, const std::vector<const DataFile*>& files,
                  const std::string& fixed_model) {
  std::string graph;
  for (const DataFile* file : files) {
    QUERNEL_TRY(std::string tensor, read_text(file->path));
    append_message(graph, kGraphInitializer, tensor);
  }
  QUERNEL_TRY(std::string bytes, read_text(model));
  append_message(bytes, kModelGraph, graph);
  if (tensor_file::Error error = tensor_file::write_file(fixed_model, bytes.data(), bytes.size()))
    return invalid_input(*error);
  return {};
}

}  // namespace quernel::tools
