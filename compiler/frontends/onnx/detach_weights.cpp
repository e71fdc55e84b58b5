#include "frontends/onnx/detach_weights.h"

#include <onnx/onnx_pb.h>

#include "frontends/onnx/why_unreadable.h"
#include "frontends/onnx/wire_reader.h"
#include "support/mapped_file.h"

namespace quernel::onnx_import {
namespace {

constexpr uint64_t kFewestBytes = uint64_t{64} << 10;

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
  explicit Detacher(std::span<const uint8_t> bytes) : bytes_(bytes), reader_(bytes) {}

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
    while (reader_.at() < end) {
      const size_t begin = reader_.at();
      const std::optional<WireReader::Field> field = reader_.field(end);
      if (!field) return false;
      const uint64_t number = field->number;
      const bool has_length = field->has_length;
      if (kind == kTensor && (number == kExternalData || number == kDataLocation)) is_plain = false;
      if (kind == kTensor && number == kRawData && has_length && field->bytes >= kFewestBytes) {
        if (weights_bytes != 0) return false;  // which of them counts is for protobuf to say
        weights_begin = reader_.at();
        weights_bytes = field->bytes;
        release_pages(bytes_.data() + begin, reader_.at() - begin);
        reader_.skip(field->bytes);
        continue;
      }
      const Field* inner = nullptr;
      for (const Field& known : kFields)
        if (has_length && known.from == kind && known.number == number) inner = &known;
      if (inner) {
        std::string message;
        if (!copy(inner->to, reader_.at() + field->bytes, depth + 1, message)) return false;
        add_varint(to, field->tag);
        add_varint(to, message.size());
        to += message;
      } else {
        reader_.skip(field->bytes);
        add(to, begin, reader_.at());
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

  void add(std::string& to, size_t begin, size_t end) const {
    to.append(reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin);
  }

  std::span<const uint8_t> bytes_;
  WireReader reader_;
  bool detached_ = false;
};

}  // namespace

std::optional<std::string> detach_weights(std::span<const uint8_t> model) { return Detacher(model).run(); }

}  // namespace quernel::onnx_import
