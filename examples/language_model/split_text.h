// The pieces of a text that byte-level BPE merges separately: what the regular expressions of GPT-2, Llama 3 and
// Qwen2 match one after another, which is the whole text.
#pragma once

#include <string_view>
#include <vector>

namespace language_model {

// What the expressions differ in.
struct SplitRule {
  const char* name;
  const char* pattern;      // as tokenizer.json writes it
  bool ignores_case;        // of contractions such as 'll
  bool any_before_letters;  // a word takes any character before it but line ends and digits; else a space
  int most_digits;          // of a piece; 0: any number, with a space before them
  bool takes_line_ends;     // by punctuation before them; and white space is split behind its last line end
};

// Returns the rule of that pattern, or nullptr.
const SplitRule* find_split_rule(std::string_view pattern);
const SplitRule& gpt2_rule();

// Requires UTF-8.
std::vector<std::string_view> split_text(std::string_view text, const SplitRule& rule);
// Splits into digits and what is between them; `each`: every digit is a piece.
std::vector<std::string_view> split_digits(std::string_view text, bool each);

}  // namespace language_model
