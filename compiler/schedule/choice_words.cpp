#include "schedule/choice_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace quernel::schedule {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (size_t at = text.find_first_not_of(kBlank); at != std::string_view::npos;) {
    size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return words;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) text += (text.empty() ? "" : " ") + std::string(word);
  return text;
}

bool parse_number(std::string_view text, int64_t& value) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && value > 0;
}

std::string key_word(const Dim& dim) {
  std::string text;
  for (char c : to_string(dim)) {
    if (std::isalnum(static_cast<unsigned char>(c)) ||
        std::string_view("+-*/%(),._").find(c) != std::string_view::npos)
      text += c;
    else if (c != ' ')
      text += '_';
  }
  return text;
}

bool Properties::has(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool parse_properties(const std::vector<std::string_view>& words,
                      const std::function<bool(std::string_view name, std::string_view value)>& set,
                      Properties& properties) {
  if (words.size() % 2 != 0) return false;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (properties.has(words[i]) || !set(words[i], words[i + 1])) return false;
    properties.names.push_back(words[i]);
  }
  return true;
}

}  // namespace quernel::schedule
