#include "frontends/tflite/read_model.h"

#include <algorithm>

#include "frontends/shared/file_kind.h"
#include "frontends/tflite/signatures.h"

namespace quernel::tflite_import {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint32_t kMaxDepth = 64, kMaxTables = 1 << 24;

template <class T>
uint32_t count(const flatbuffers::Vector<T>* vector) {
  return vector ? vector->size() : 0;
}

Status check_subgraph(const tflite::Model& model, const tflite::SubGraph& subgraph, uint64_t file_bytes,
                      const std::string& name, const Location& place) {
  int64_t tensors = count(subgraph.tensors());
  for (uint32_t i = 0; i < count(subgraph.tensors()); ++i) {
    const tflite::Tensor& tensor = *subgraph.tensors()->Get(i);
    std::string what = "tensor " + std::to_string(i) + " of " + name;
    if (count(model.buffers()) > 0 || tensor.buffer() != 0)
      QUERNEL_CHECK(check_number(tensor.buffer(), 0, count(model.buffers()), what + ": buffer", place));
    const auto* quantization = tensor.quantization();
    if (const auto* blocks = quantization ? quantization->details_as_BlockwiseQuantization() : nullptr)
      QUERNEL_CHECK(check_number(blocks->scales(), 0, tensors, what + ": scales of blocks", place));
  }
  for (const auto* list : {subgraph.inputs(), subgraph.outputs()})
    for (int32_t tensor : elements(list))
      QUERNEL_CHECK(check_number(tensor, 0, tensors, name + ": input or output", place));
  for (uint32_t i = 0; i < count(subgraph.operators()); ++i) {
    const tflite::Operator& node = *subgraph.operators()->Get(i);
    std::string what = "operator " + std::to_string(i) + " of " + name;
    QUERNEL_CHECK(
        check_number(node.opcode_index(), 0, count(model.operator_codes()), what + ": code", place));
    uint64_t begin = node.large_custom_options_offset(), size = node.large_custom_options_size();
    if (begin >= kFirstOffset && (begin > file_bytes || size > file_bytes - begin))
      return invalid_input(what + ": options " + std::to_string(begin) + "+" + std::to_string(size) +
                               " lie outside of the file of " + std::to_string(file_bytes) + " bytes",
                           place);
    for (const auto* list : {node.inputs(), node.intermediates()})
      for (int32_t tensor : elements(list))
        QUERNEL_CHECK(check_number(tensor, -1, tensors, what + ": input", place));
    for (int32_t tensor : elements(node.outputs()))
      QUERNEL_CHECK(check_number(tensor, 0, tensors, what + ": output", place));
  }
  return {};
}

}  // namespace

Status check_number(int64_t number, int64_t least, int64_t count, const std::string& what,
                    const Location& place) {
  if (number >= least && number < count) return {};
  return invalid_input(what + ": expected a number from " + std::to_string(least) + " to " +
                           std::to_string(count - 1) + ", found " + std::to_string(number),
                       place);
}

Expected<ModelFile> read_model(Bytes bytes, std::string file_name) {
  Location place{.file = file_name};
  constexpr size_t kHeader = 8;  // root offset and identifier
  if (bytes.size() < kHeader || !tflite::ModelBufferHasIdentifier(bytes.data())) {
    if (std::optional<FileKind> kind = kind_of_file({bytes.data(), bytes.size()}, ModelFormat::kTflite))
      return invalid_input(std::string("expected a TensorFlow Lite model, found ") + kind->what, place,
                           kind->hint);
    return invalid_input("expected a TensorFlow Lite model, which has TFL3 at byte 4, found another file",
                         place);
  }
  // Offsets have 31 bits; what is behind them, buffers name by 64.
  size_t size = std::min(bytes.size(), size_t{FLATBUFFERS_MAX_BUFFER_SIZE} - 1);
  flatbuffers::Verifier verifier(bytes.data(), size, kMaxDepth, kMaxTables);
  if (!tflite::VerifyModelBuffer(verifier))
    return invalid_input("the TensorFlow Lite model is damaged: an offset or a size lies outside of the file",
                         place, "copy or convert the model again");
  ModelFile file{std::move(file_name), std::move(bytes), nullptr};
  file.model = tflite::GetModel(file.bytes.data());
  if (file.model->version() != kVersion)
    return unsupported("version " + std::to_string(file.model->version()) +
                           " of the TensorFlow Lite format is not supported, expected " +
                           std::to_string(kVersion),
                       place, "convert the model again with a current converter");
  if (count(file.model->subgraphs()) == 0)
    return invalid_input("expected a model with a subgraph, found none", place);
  for (size_t i = 0; i < file.subgraph_count(); ++i)
    QUERNEL_CHECK(check_subgraph(*file.model, file.subgraph(i), file.bytes.size(),
                                 "subgraph " + std::to_string(i), place));
  QUERNEL_CHECK(check_signatures(*file.model, place));
  return file;
}

std::optional<int> unknown_field(const flatbuffers::Table& table, size_t known_fields) {
  const uint8_t* vtable = table.GetVTable();
  size_t bytes = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
  constexpr size_t kFixed = 2 * sizeof(flatbuffers::voffset_t), kField = sizeof(flatbuffers::voffset_t);
  for (size_t i = known_fields; kFixed + (i + 1) * kField <= bytes; ++i)
    if (flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + kFixed + i * kField) != 0)
      return static_cast<int>(i);
  return std::nullopt;
}

tflite::BuiltinOperator operator_of(const ModelFile& file, const tflite::Operator& node) {
  const tflite::OperatorCode& code = *file.model->operator_codes()->Get(node.opcode_index());
  // Old files have the first field only, new files both.
  return std::max(code.builtin_code(), static_cast<tflite::BuiltinOperator>(code.deprecated_builtin_code()));
}

std::string operator_name(const ModelFile& file, const tflite::Operator& node) {
  tflite::BuiltinOperator op = operator_of(file, node);
  if (op == tflite::BuiltinOperator::CUSTOM) {
    std::string name = text(file.model->operator_codes()->Get(node.opcode_index())->custom_code());
    if (!name.empty()) return name;
  }
  std::string name = tflite::EnumNameBuiltinOperator(op);
  return name.empty() ? "operator " + std::to_string(static_cast<int>(op)) : name;
}

std::string type_name(tflite::TensorType type) {
  std::string name = tflite::EnumNameTensorType(type);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c < 'A' || c > 'Z' ? c : c + 32; });
  return name.empty() ? "type " + std::to_string(static_cast<int>(type)) : name;
}

}  // namespace quernel::tflite_import
