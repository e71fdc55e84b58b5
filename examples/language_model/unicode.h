// Text as code points: UTF-8, and the classes of characters that tokenizers ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace language_model {

// The character that begins at a byte of a text.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: no whole character of UTF-8 begins here
};

// Requires at < text.size().
Character character_at(std::string_view text, size_t at);
// Returns true if the text ends within a character: the bytes from `at` may begin one that goes on.
bool is_cut_short(std::string_view text, size_t at);
// The bytes from `at` that make one U+FFFD where no character begins there: one, or all that begin one (Unicode's
// "maximal subparts").
size_t replaced_bytes(std::string_view text, size_t at);
void append_utf8(uint32_t code, std::string* text);
// Returns the position of the first byte that is not UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

bool is_letter(uint32_t code);  // \p{L}
bool is_number(uint32_t code);  // \p{N}
bool is_space(uint32_t code);   // \s

// Returns the position of the first character that Unicode's normalisation form C may change, or npos. Says npos
// only of texts in that form, but not of all of them (UAX #15, quick check).
size_t find_not_nfc(std::string_view text);

}  // namespace language_model
