// Steps through the fields of protobuf messages in their binary form, without parsing them
// (protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace quernel::onnx_import {

class WireReader {
 public:
  // What is known of a field once its tag has been read. The reader then stands before its `bytes` bytes, if it has any.
  struct Field {
    uint64_t tag = 0, number = 0;
    uint64_t bytes = 0;
    bool has_length = false;  // a message, a string or bytes
  };

  explicit WireReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  size_t at() const { return at_; }

  // Returns the field at the present position, which ends before `end`; nullopt where the bytes make no sense.
  std::optional<Field> field(size_t end) {
    std::optional<uint64_t> tag = varint(end), length = 0;
    if (!tag) return std::nullopt;
    Field result{.tag = *tag, .number = *tag >> 3};
    switch (*tag & 7) {
      case kVarint:
        if (!varint(end)) return std::nullopt;
        break;
      case kFixed64:
        length = 8;
        break;
      case kFixed32:
        length = 4;
        break;
      case kLength:
        length = varint(end);
        result.has_length = true;
        break;
      default:
        return std::nullopt;
    }
    if (!length || *length > end - at_) return std::nullopt;
    result.bytes = *length;
    return result;
  }

  // Requires a field of that many bytes.
  void skip(uint64_t bytes) { at_ += static_cast<size_t>(bytes); }

 private:
  enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  std::optional<uint64_t> varint(size_t end) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < end; shift += 7) {
      const uint8_t byte = bytes_[at_++];
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace quernel::onnx_import
