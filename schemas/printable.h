// Names of models and bundles as readable text: in lines for people, and in JSON.
#pragma once

#include <stdio.h>

#include <string>
#include <string_view>

#include "schemas/utf8.h"

namespace quernel {

// Returns the text with \xHH for bytes that are not UTF-8 and for ASCII control characters, and \u{HEX} for
// other characters that are not shown as themselves.
inline std::string printable(std::string_view text) {
  std::string out;
  char escaped[16];
  while (!text.empty()) {
    uint32_t code = 0, length = utf8_character(text.data(), text.size(), &code);
    if (length > 0 && shows_as_it_is(code)) {
      out += text.substr(0, length);
    } else {
      bool byte = length == 0 || code < 0x80;
      snprintf(escaped, sizeof escaped, byte ? "\\x%02x" : "\\u{%x}",
               byte ? static_cast<unsigned>(static_cast<unsigned char>(text[0])) : code);
      out += escaped;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

// The same for each line.
inline std::string printable_lines(std::string_view text) {
  std::string out;
  for (;;) {
    size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

// Returns a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
inline std::string json_literal(std::string_view text) {
  std::string out = "\"";
  char escaped[16];
  while (!text.empty()) {
    uint32_t code = 0, length = utf8_character(text.data(), text.size(), &code);
    if (length == 0) {
      out += "\\ufffd";
    } else if (code == '"' || code == '\\') {
      (out += '\\') += text[0];
    } else if (code == '\n' || code == '\t') {
      out += code == '\n' ? "\\n" : "\\t";
    } else if (shows_as_it_is(code)) {
      out += text.substr(0, length);
    } else {
      bool pair = code >= 0x10000;
      snprintf(escaped, sizeof escaped, "\\u%04x", pair ? 0xD7C0 + (code >> 10) : code);
      out += escaped;
      if (pair) snprintf(escaped, sizeof escaped, "\\u%04x", 0xDC00 + (code & 0x3FF));
      if (pair) out += escaped;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

}  // namespace quernel
