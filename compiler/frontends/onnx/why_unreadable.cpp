#include "frontends/onnx/why_unreadable.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

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
