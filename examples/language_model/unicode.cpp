#include "unicode.h"

#include <algorithm>
#include <iterator>

#include "unicode_ranges.h"

namespace language_model {
namespace {

template <typename R, size_t N>
const R* find_range(const R (&ranges)[N], uint32_t code) {
  const R* after = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                    [](uint32_t c, const R& range) { return c < range.first; });
  return after != ranges && code <= after[-1].last ? after - 1 : nullptr;
}

// The bytes of the character that this byte begins; 0 if none does.
size_t length_by_lead(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

// Table 3-7 of the Unicode standard: the range of the second byte depends on the first.
bool fits_second(uint8_t lead, uint8_t second) {
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high;
}

// How many of the bytes from `at` belong to one character, whole or not.
size_t fitting_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const size_t length = std::min(length_by_lead(byte(0)), text.size() - at);
  for (size_t i = 1; i < length; ++i)
    if (i == 1 ? !fits_second(byte(0), byte(1)) : (byte(i) & 0xc0) != 0x80) return i;
  return length;
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  const size_t length = length_by_lead(lead);
  if (length == 0 || fitting_bytes(text, at) < length) return {};
  if (length == 1) return {lead, 1};
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3fu);
  return {code, length};
}

bool is_cut_short(std::string_view text, size_t at) {
  const size_t fitting = fitting_bytes(text, at);
  return at + fitting == text.size() && fitting < length_by_lead(static_cast<uint8_t>(text[at]));
}

size_t replaced_bytes(std::string_view text, size_t at) {
  return std::max<size_t>(fitting_bytes(text, at), 1);
}

void append_utf8(uint32_t code, std::string* text) {
  const auto add = [&](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  const auto rest = [&](int shift) { add(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6), rest(0);
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12), rest(6), rest(0);
  } else {
    add(0xf0 | code >> 18), rest(12), rest(6), rest(0);
  }
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = character_at(text, at).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

bool is_letter(uint32_t code) { return find_range(kLetters, code) != nullptr; }
bool is_number(uint32_t code) { return find_range(kNumbers, code) != nullptr; }

// The property White_Space.
bool is_space(uint32_t code) {
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
         code == 0x205f || code == 0x3000;
}

size_t find_not_nfc(std::string_view text) {
  uint32_t last_class = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0 || find_range(kNotSurelyNfc, character.code) != nullptr) return at;
    const ClassRange* range = find_range(kCombining, character.code);
    const uint32_t combining = range ? range->value : 0;
    if (combining != 0 && last_class > combining) return at;
    last_class = combining;
    at += character.bytes;
  }
  return std::string_view::npos;
}

}  // namespace language_model
