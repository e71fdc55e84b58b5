#include "stream_text.h"

#include <algorithm>

#include "unicode.h"

namespace language_model {

void TextStream::add(std::string_view bytes) {
  if (stopped_) return;
  held_ += bytes;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    return write(first, true);
  }
  size_t waiting = 0;  // bytes at the end that begin a stop string
  for (const std::string& stop : stops_)
    for (size_t count = std::min(stop.size() - 1, held_.size()); count > waiting; --count)
      if (held_.ends_with(std::string_view(stop).substr(0, count))) waiting = count;
  write(held_.size() - waiting, false);
}

void TextStream::finish() {
  if (!stopped_) write(held_.size(), true);
}

// Writes the first `count` bytes; `is_last`: also a character that they only begin.
void TextStream::write(size_t count, bool is_last) {
  const std::string_view text = std::string_view(held_).substr(0, count);
  std::string whole;
  size_t at = 0;
  while (at < count) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) {
      if (!is_last && is_cut_short(text, at)) break;
      append_utf8(0xfffd, &whole);
      at += replaced_bytes(text, at);
    } else {
      whole += text.substr(at, character.bytes);
      at += character.bytes;
    }
  }
  held_.erase(0, at);
  if (!whole.empty()) write_(whole);
}

std::string_view unfinished_character(std::string_view text) {
  for (size_t bytes = std::min<size_t>(3, text.size()); bytes > 0; --bytes)
    if (is_cut_short(text, text.size() - bytes)) return text.substr(text.size() - bytes);
  return {};
}

}  // namespace language_model
