#include "frontends/onnx/detach_weights.h"

#include <onnx/onnx_pb.h>

#include "frontends/onnx/why_unreadable.h"
#include "support/mapped_file.h"

namespace quernel::onnx_import {
namespace {

constexpr uint64_t kFewestBytes = uint64_t{64} << 10;

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
constexpr uint64_t kRawData = 9, kExternalData = 13, kDataLocation = 14;  // of TensorProto

// Messages on the way to tensors, and the fields that lead from one to the next.
enum Kind : uint8_t { kModel, kGraph, kNode, kAttribute, kTensor };
struct Field {
  Kind from;
  uint64_t number;
  Kind to;
};
constexpr Field kFields[] = {
    {kModel, 7, kGraph},     {kGraph, 5, kTensor},     {kGraph, 1, kNode},       {kNode, 5, kAttribute},
    {kAttribute, 6, kGraph}, {kAttribute, 5, kTensor}, {kAttribute, 11, kGraph}, {kAttribute, 10, kTensor},
};

void add_varint(std::string& text, uint64_t value) {
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
}

class Detacher {
 public:
  explicit Detacher(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::optional<std::string> run() {
    std::string text;
    if (!copy(kModel, bytes_.size(), 1, text) || !detached_) return std::nullopt;
    return text;
  }

 private:
  // Copies the message from the present position to `end`. False where the bytes make no sense.
  bool copy(Kind kind, size_t end, int depth, std::string& to) {
    if (depth > kMaxMessageDepth) return false;
    uint64_t weights_begin = 0, weights_bytes = 0;
    bool is_plain = true;  // a tensor with raw data that are given once
    while (at_ < end) {
      const size_t begin = at_;
      uint64_t tag = 0, length = 0;
      if (!varint(end, tag)) return false;
      const uint64_t number = tag >> 3;
      switch (tag & 7) {
        case kVarint:
          if (uint64_t value = 0; !varint(end, value)) return false;
          break;
        case kFixed64:
          length = 8;
          break;
        case kFixed32:
          length = 4;
          break;
        case kLength:
          if (!varint(end, length)) return false;
          break;
        default:
          return false;
      }
      if (length > end - at_) return false;
      const bool has_length = (tag & 7) == kLength;
      if (kind == kTensor && (number == kExternalData || number == kDataLocation)) is_plain = false;
      if (kind == kTensor && number == kRawData && has_length && length >= kFewestBytes) {
        if (weights_bytes != 0) return false;  // which of them counts is for protobuf to say
        weights_begin = at_;
        weights_bytes = length;
        release_pages(bytes_.data() + begin, at_ - begin);
        at_ += length;
        continue;
      }
      const Field* inner = nullptr;
      for (const Field& field : kFields)
        if (has_length && field.from == kind && field.number == number) inner = &field;
      if (inner) {
        std::string message;
        if (!copy(inner->to, at_ + length, depth + 1, message)) return false;
        add_varint(to, tag);
        add_varint(to, message.size());
        to += message;
      } else {
        at_ += length;
        add(to, begin, at_);
      }
    }
    if (weights_bytes == 0) return true;
    if (!is_plain) return false;
    detached_ = true;
    onnx::TensorProto reference;
    auto set = [&](const char* key, const std::string& value) {
      onnx::StringStringEntryProto& entry = *reference.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    set("location", std::string(kOwnFile));
    set("offset", std::to_string(weights_begin));
    set("length", std::to_string(weights_bytes));
    reference.set_data_location(onnx::TensorProto::EXTERNAL);
    to += reference.SerializeAsString();  // messages that follow each other are one
    return true;
  }

  bool varint(size_t end, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ < end; shift += 7) {
      const uint8_t byte = bytes_[at_++];
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  void add(std::string& to, size_t begin, size_t end) const {
    to.append(reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin);
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool detached_ = false;
};

}  // namespace

std::optional<std::string> detach_weights(std::span<const uint8_t> model) { return Detacher(model).run(); }

}  // namespace quernel::onnx_import
