// The format: scalars of 1, 2, 4 or 8 bytes, little endian. The last byte is the root's width, the one before is its type;
// the root itself is in front of them. An offset counts backwards from its own place. A vector is its size, its elements,
// and a type byte for each; a map is a vector with the offset and the width of its sorted keys in front of the size.
#include "frontends/tflite/flexbuffer.h"

#include <bit>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace quernel::tflite_import {
namespace {

// Types by number, in the high 6 bits of a type byte; the low 2 are the logarithm of the width behind an offset.
enum FlexType : unsigned {
  kInt = 1,
  kUint = 2,
  kFloat = 3,
  kKey = 4,
  kString = 5,
  kIndirectInt = 6,
  kIndirectUint = 7,
  kIndirectFloat = 8,
  kMap = 9,
  kVector = 10,
  kVectorInt = 11,
  kVectorUint = 12,
  kVectorFloat = 13,
  kBool = 26,
  kVectorBool = 36,
};

// An element at `place`, of `width` bytes where it is one of a vector.
struct Element {
  size_t place;
  unsigned width, type;

  unsigned kind() const { return type >> 2; }
  unsigned inner_width() const { return 1u << (type & 3); }
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::optional<AttributeValues> map() const {
    if (bytes_.size() < 3) return std::nullopt;
    unsigned width = bytes_.back();
    if (!std::has_single_bit(width) || width > 8 || bytes_.size() < width + 2) return std::nullopt;
    Element root{bytes_.size() - 2 - width, width, bytes_[bytes_.size() - 2]};
    std::optional<size_t> start = target(root);
    unsigned inner = root.inner_width();
    if (root.kind() != kMap || !start || *start < size_t{3} * inner) return std::nullopt;
    std::optional<std::vector<Element>> values = vector(*start, inner);
    std::optional<size_t> key_start = target({*start - size_t{3} * inner, inner, 0});
    std::optional<uint64_t> key_width = integer(*start - size_t{2} * inner, inner);
    if (!values || !key_start || !key_width || *key_width > 8 || !std::has_single_bit(*key_width))
      return std::nullopt;
    std::optional<std::vector<Element>> keys = typed(*key_start, static_cast<unsigned>(*key_width), kKey);
    if (!keys || keys->size() != values->size()) return std::nullopt;
    AttributeValues map;
    for (size_t i = 0; i < values->size(); ++i) {
      std::optional<std::string> name = key((*keys)[i]);
      std::optional<AttributeValue> value = value_of((*values)[i]);
      if (!name || !value || !map.emplace(std::move(*name), std::move(*value)).second) return std::nullopt;
    }
    return map;
  }

 private:
  // Offsets may lead to one place again and again, so what they lead to has a bound, too.
  bool spend(size_t elements) const { return (spent_ += elements) <= kMostReads * (bytes_.size() + 64); }

  std::optional<uint64_t> integer(size_t place, unsigned width) const {
    if (place > bytes_.size() || width > bytes_.size() - place) return std::nullopt;
    uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) value |= uint64_t{bytes_[place + i]} << (8 * i);
    return value;
  }
  std::optional<int64_t> signed_integer(size_t place, unsigned width) const {
    std::optional<uint64_t> value = integer(place, width);
    if (!value) return std::nullopt;
    unsigned unused = 64 - 8 * width;
    return static_cast<int64_t>(*value << unused) >> unused;
  }
  std::optional<int64_t> unsigned_integer(size_t place, unsigned width) const {
    std::optional<uint64_t> value = integer(place, width);
    if (!value || *value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(*value);
  }
  std::optional<float> real(size_t place, unsigned width) const {
    std::optional<uint64_t> bits = integer(place, width);
    if (!bits || width < 4) return std::nullopt;
    if (width == 4) return std::bit_cast<float>(static_cast<uint32_t>(*bits));
    return static_cast<float>(std::bit_cast<double>(*bits));
  }
  // Where the offset of an element leads.
  std::optional<size_t> target(const Element& e) const {
    std::optional<uint64_t> offset = integer(e.place, e.width);
    if (!offset || *offset > e.place) return std::nullopt;
    return e.place - static_cast<size_t>(*offset);
  }

  // The elements of a vector whose types are known, or 0 where they stand behind the elements.
  std::optional<std::vector<Element>> typed(size_t start, unsigned width, unsigned kind) const {
    std::optional<uint64_t> count = start < width ? std::nullopt : integer(start - width, width);
    uint64_t each = width + (kind == 0 ? 1u : 0u);
    if (!count || start > bytes_.size() || *count > (bytes_.size() - start) / each) return std::nullopt;
    if (!spend(static_cast<size_t>(*count))) return std::nullopt;
    std::vector<Element> elements;
    size_t types = start + static_cast<size_t>(*count) * width;
    for (size_t i = 0; i < *count; ++i)
      elements.push_back({start + i * width, width, kind == 0 ? bytes_[types + i] : kind << 2});
    return elements;
  }
  std::optional<std::vector<Element>> vector(size_t start, unsigned width) const {
    return typed(start, width, 0);
  }

  std::optional<std::string> text(size_t start, size_t size) const {
    if (!spend(size)) return std::nullopt;
    std::span<const uint8_t> bytes = bytes_.subspan(start, size);
    return std::string(bytes.begin(), bytes.end());
  }
  std::optional<std::string> key(const Element& e) const {
    std::optional<size_t> start = target(e);
    if (!start) return std::nullopt;
    for (size_t end = *start; end < bytes_.size(); ++end)
      if (bytes_[end] == 0) return text(*start, end - *start);
    return std::nullopt;
  }
  std::optional<std::string> string(const Element& e) const {
    std::optional<size_t> start = target(e);
    unsigned width = e.inner_width();
    std::optional<uint64_t> size = !start || *start < width ? std::nullopt : integer(*start - width, width);
    if (!size || *start > bytes_.size() || *size > bytes_.size() - *start) return std::nullopt;
    return text(*start, static_cast<size_t>(*size));
  }

  // A list of one kind; an empty one is of integers.
  std::optional<AttributeValue> list(const std::vector<Element>& elements) const {
    if (elements.empty()) return std::vector<int64_t>();
    std::optional<AttributeValue> first = value_of(elements[0], false);
    if (!first) return std::nullopt;
    return std::visit(
        [&]<class T>(const T&) -> std::optional<AttributeValue> {
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
                        std::is_same_v<T, std::string>) {
            std::vector<T> values;
            for (const Element& e : elements) {
              std::optional<AttributeValue> value = value_of(e, false);
              if (!value || !std::holds_alternative<T>(*value)) return std::nullopt;
              values.push_back(std::get<T>(std::move(*value)));
            }
            return values;
          } else {
            return std::nullopt;
          }
        },
        *first);
  }

  template <class T>
  static std::optional<AttributeValue> some(std::optional<T> value) {
    if (!value) return std::nullopt;
    return AttributeValue(std::move(*value));
  }

  std::optional<AttributeValue> value_of(const Element& e, bool lists = true) const {
    switch (e.kind()) {
      case kInt:
        return some(signed_integer(e.place, e.width));
      case kUint:
      case kBool:
        return some(unsigned_integer(e.place, e.width));
      case kFloat:
        return some(real(e.place, e.width));
      case kKey:
        return some(key(e));
      case kString:
        return some(string(e));
      default:
        break;
    }
    std::optional<size_t> there = target(e);
    if (!there) return std::nullopt;
    unsigned width = e.inner_width();
    auto elements = [&](unsigned kind) -> std::optional<AttributeValue> {
      std::optional<std::vector<Element>> found = lists ? typed(*there, width, kind) : std::nullopt;
      return found ? list(*found) : std::nullopt;
    };
    switch (e.kind()) {
      case kIndirectInt:
        return some(signed_integer(*there, width));
      case kIndirectUint:
        return some(unsigned_integer(*there, width));
      case kIndirectFloat:
        return some(real(*there, width));
      case kVector:
        return elements(0);
      case kVectorInt:
        return elements(kInt);
      case kVectorUint:
      case kVectorBool:
        return elements(kUint);
      case kVectorFloat:
        return elements(kFloat);
      default:
        return std::nullopt;
    }
  }

  static constexpr size_t kMostReads = 8;
  std::span<const uint8_t> bytes_;
  mutable size_t spent_ = 0;
};

}  // namespace

std::optional<AttributeValues> read_flexbuffer_map(std::span<const uint8_t> bytes) {
  return Reader(bytes).map();
}

}  // namespace quernel::tflite_import
