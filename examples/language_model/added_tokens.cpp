#include "added_tokens.h"

#include <algorithm>

#include "unicode.h"

namespace language_model {
namespace {

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.bytes == 0 || !is_space(character.code)) break;
    at += character.bytes;
  }
  return at;
}

// Where the white space before `end` begins, at `from` or later.
size_t space_before(std::string_view text, size_t from, size_t end) {
  size_t begin = end;
  for (size_t at = end; at > from;) {
    --at;
    const Character character = character_at(text, at);
    if (character.bytes == 0) continue;  // within a character
    if (at + character.bytes != begin || !is_space(character.code)) break;
    begin = at;
  }
  return begin;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  by_first_[token.content[0]].push_back(tokens_.size());
  tokens_.push_back(std::move(token));
}

const AddedToken* AddedTokens::token_at(std::string_view text, size_t at) const {
  const auto found = by_first_.find(text[at]);
  const AddedToken* longest = nullptr;
  if (found == by_first_.end()) return nullptr;
  for (size_t i : found->second)
    if (text.substr(at).starts_with(tokens_[i].content) &&
        (longest == nullptr || tokens_[i].content.size() > longest->content.size()))
      longest = &tokens_[i];
  return longest;
}

std::vector<TextPart> AddedTokens::split(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = token_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const size_t first = token->takes_left ? space_before(text, begin, at) : at;
    const size_t after = at + token->content.size();
    const size_t end = token->takes_right ? skip_space(text, after) : after;
    if (first > begin) parts.push_back({text.substr(begin, first - begin), nullptr});
    parts.push_back({text.substr(first, end - first), token});
    at = begin = end;
  }
  if (begin < text.size()) parts.push_back({text.substr(begin), nullptr});
  return parts;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found =
      std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& t) { return t.id == id; });
  return found == tokens_.end() ? nullptr : &*found;
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found =
      std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& t) { return t.content == content; });
  return found == tokens_.end() ? nullptr : &*found;
}

}  // namespace language_model
