// What the tests of examples/language_model share: commands, and what they print.
#pragma once

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace quernel {

using Tokens = std::vector<int64_t>;

// What the command prints, errors first or last; `ok` is false when it fails.
inline std::string output_of(const std::string& command, bool* ok) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  for (int c; pipe && (c = fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  *ok = pipe && pclose(pipe) == 0;
  return text;
}

inline Tokens numbers_after(const std::string& text, const std::string& word) {
  size_t begin = text.find(word);
  Tokens tokens;
  if (begin == std::string::npos) return tokens;
  std::istringstream line(text.substr(begin + word.size(), text.find('\n', begin) - begin - word.size()));
  for (int64_t token; line >> token;) tokens.push_back(token);
  return tokens;
}

inline std::string text_of(const Diagnostics& errors) {
  std::string text;
  for (const Diagnostic& error : errors) text += error.message + "\n";
  return text;
}

}  // namespace quernel
