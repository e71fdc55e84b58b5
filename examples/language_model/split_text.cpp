#include "split_text.h"

#include <algorithm>
#include <cstdint>

#include "unicode.h"

namespace language_model {
namespace {

const SplitRule kRules[] = {
    {"GPT-2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", false, false,
     0, false},
    {"Llama 3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     true, true, 3, true},
    {"Qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     true, true, 1, true},
};

// The alternatives of an expression, each as a function: where a match that begins at `i` ends, or `i` for none.
class Matcher {
 public:
  Matcher(std::string_view text, const SplitRule& rule) : rule_(rule) {
    for (size_t at = 0; at < text.size();) {
      const Character character = character_at(text, at);
      begins_.push_back(at);
      codes_.push_back(character.code);
      at += std::max<size_t>(character.bytes, 1);
    }
    begins_.push_back(text.size());
  }

  size_t size() const { return codes_.size(); }
  size_t byte(size_t i) const { return begins_[i]; }

  size_t match(size_t i) const {
    for (auto alternative : {&Matcher::contraction, &Matcher::word, &Matcher::digits, &Matcher::symbols,
                             &Matcher::line_ends, &Matcher::space}) {
      const size_t end = (this->*alternative)(i);
      if (end > i) return end;
    }
    return i + 1;  // not reached: every character is a letter, a digit, white space or a symbol
  }

 private:
  bool letter(size_t i) const { return i < size() && is_letter(codes_[i]); }
  bool number(size_t i) const { return i < size() && is_number(codes_[i]); }
  bool blank(size_t i) const { return i < size() && is_space(codes_[i]); }
  bool line_end(size_t i) const { return i < size() && (codes_[i] == '\n' || codes_[i] == '\r'); }
  bool symbol(size_t i) const { return i < size() && !letter(i) && !number(i) && !blank(i); }
  bool is(size_t i, uint32_t code) const { return i < size() && codes_[i] == code; }

  // In lower case, where the rule ignores case: also of U+017F, which folds to 's'.
  bool folds_to(size_t i, char lower) const {
    const auto code = static_cast<uint32_t>(lower);
    return is(i, code) || (rule_.ignores_case && (is(i, code - 32) || (lower == 's' && is(i, 0x17f))));
  }

  size_t contraction(size_t i) const {
    if (!is(i, '\'')) return i;
    for (const char* end : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      size_t j = i + 1;
      const char* c = end;
      while (*c != 0 && folds_to(j, *c)) ++c, ++j;
      if (*c == 0) return j;
    }
    return i;
  }

  size_t word(size_t i) const {
    const bool takes = rule_.any_before_letters ? !line_end(i) && !letter(i) && !number(i) : is(i, ' ');
    size_t j = takes && letter(i + 1) ? i + 1 : i;
    while (letter(j)) ++j;
    return j;
  }

  size_t digits(size_t i) const {
    size_t j = rule_.most_digits == 0 && is(i, ' ') && number(i + 1) ? i + 1 : i;
    const size_t last = rule_.most_digits == 0 ? size() : i + static_cast<size_t>(rule_.most_digits);
    while (j < last && number(j)) ++j;
    return j;
  }

  size_t symbols(size_t i) const {
    size_t j = is(i, ' ') && symbol(i + 1) ? i + 1 : i;
    if (!symbol(j)) return i;
    while (symbol(j)) ++j;
    while (rule_.takes_line_ends && line_end(j)) ++j;
    return j;
  }

  // White space up to its last line end.
  size_t line_ends(size_t i) const {
    size_t end = i;
    for (size_t j = i; rule_.takes_line_ends && blank(j); ++j)
      if (line_end(j)) end = j + 1;
    return end;
  }

  // White space without its last character, which goes with what follows; all of it at the end of the text.
  size_t space(size_t i) const {
    size_t j = i;
    while (blank(j)) ++j;
    return j < size() && j > i + 1 ? j - 1 : j;
  }

  const SplitRule& rule_;
  std::vector<uint32_t> codes_;
  std::vector<size_t> begins_;
};

}  // namespace

const SplitRule* find_split_rule(std::string_view pattern) {
  for (const SplitRule& rule : kRules)
    if (pattern == rule.pattern) return &rule;
  return nullptr;
}

const SplitRule& gpt2_rule() { return kRules[0]; }

std::vector<std::string_view> split_text(std::string_view text, const SplitRule& rule) {
  const Matcher matcher(text, rule);
  std::vector<std::string_view> pieces;
  for (size_t i = 0; i < matcher.size();) {
    const size_t end = matcher.match(i);
    pieces.push_back(text.substr(matcher.byte(i), matcher.byte(end) - matcher.byte(i)));
    i = end;
  }
  return pieces;
}

std::vector<std::string_view> split_digits(std::string_view text, bool each) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  bool in_digits = false;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    const bool digit = is_number(character.code);
    if (at > begin && (digit != in_digits || (digit && each))) {
      pieces.push_back(text.substr(begin, at - begin));
      begin = at;
    }
    in_digits = digit;
    at += std::max<size_t>(character.bytes, 1);
  }
  if (begin < text.size()) pieces.push_back(text.substr(begin));
  return pieces;
}

}  // namespace language_model
