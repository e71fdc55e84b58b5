#include "frontends/onnx/why_unreadable.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "frontends/onnx/wire_reader.h"
#include "frontends/shared/file_kind.h"

namespace quernel::onnx_import {
namespace {

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

// How many messages lie in each other at most, up to where the bytes make no sense.
size_t message_depth(std::span<const uint8_t> bytes) {
  struct Message {
    Kind kind;
    size_t end;
  };
  std::vector<Message> open{{kModel, bytes.size()}};
  size_t deepest = 1;
  WireReader reader(bytes);
  while (true) {
    while (!open.empty() && reader.at() >= open.back().end) open.pop_back();
    if (open.empty()) return deepest;
    const std::optional<WireReader::Field> field = reader.field(bytes.size());
    if (!field) return deepest;
    const Field* inner = nullptr;
    for (const Field& known : kFields)
      if (field->has_length && known.from == open.back().kind && known.number == field->number)
        inner = &known;
    if (!inner) {
      reader.skip(field->bytes);
      continue;
    }
    open.push_back({inner->to, reader.at() + static_cast<size_t>(field->bytes)});
    deepest = std::max(deepest, open.size());
  }
}

}  // namespace

Diagnostic why_unreadable(std::span<const uint8_t> bytes, const Location& place) {
  if (std::optional<FileKind> kind = kind_of_file(bytes, ModelFormat::kOnnx))
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
