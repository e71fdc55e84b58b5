// Characters of UTF-8, and which of them are shown as themselves. For the names of models and bundles, which
// may hold any bytes, before they are written to a terminal, a document or a program.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace quernel {

// Returns the bytes of the well-formed character at the text's beginning; 0: there is none. bytes > 0.
inline uint32_t utf8_character(const char* text, size_t bytes, uint32_t* code) {
  auto at = [&](uint32_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  uint32_t lead = at(0);
  *code = lead;
  if (lead < 0x80) return 1;
  uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > bytes) return 0;
  *code = lead & (0x7Fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
    *code = *code << 6 | (at(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = *code >= 0xD800 && *code < 0xE000;
  return *code < kLeast[length] || *code > 0x10FFFF || surrogate ? 0 : length;
}

// Returns false for control characters, line ends, marks that reorder or hide text, and numbers that are no
// character.
inline bool shows_as_it_is(uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  if (code == 0xAD || code == 0x61C || code == 0x180E || code == 0xFEFF) return false;
  if ((code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
      (code >= 0x2060 && code <= 0x206F))
    return false;
  if ((code >= 0xFFF9 && code <= 0xFFFB) || (code >= 0xE0000 && code <= 0xE007F)) return false;
  return (code & 0xFFFE) != 0xFFFE;
}

}  // namespace quernel
