// The tokens of a vocabulary that stand in a text as they are: they are found before anything is split or merged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace language_model {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;     // not a part of the text that people read
  bool takes_left = false;  // the white space before it, too
  bool takes_right = false;
};

// A part of a text: a token, or what stands between tokens.
struct TextPart {
  std::string_view text;
  const AddedToken* token = nullptr;
};

class AddedTokens {
 public:
  void add(AddedToken token);
  // The leftmost tokens, of those that begin at one place the longest.
  std::vector<TextPart> split(std::string_view text) const;
  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  const AddedToken* token_at(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::map<char, std::vector<size_t>> by_first_;  // those that begin with this byte
};

}  // namespace language_model
