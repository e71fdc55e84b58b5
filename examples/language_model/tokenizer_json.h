// What a tokenizer.json of byte-level BPE says, checked: every setting is either here or refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "added_tokens.h"
#include "merge_pairs.h"
#include "split_text.h"

namespace language_model {

// One step of splitting; the steps apply to the pieces of the one before, in order.
struct SplitStep {
  enum Kind { kRule, kDigits, kLeadingSpace } kind;
  const SplitRule* rule = nullptr;  // of kRule
  bool each_digit = false;          // of kDigits
};

struct TokenizerJson {
  std::unordered_map<std::string, int32_t> ids;  // of the vocabulary's contents, in bytes
  std::vector<std::string> bytes;                // by id; empty for ids that the vocabulary lacks
  std::unordered_map<uint64_t, Merge> merges;    // by the pair's ids, left << 32 | right
  AddedTokens raw_tokens, normalized_tokens;     // found before, and after normalisation
  bool needs_nfc = false;
  bool takes_whole_pieces = false;  // a piece that is a token is not merged from its parts
  std::vector<SplitStep> steps;
  std::vector<int32_t> begin;  // what comes before a text
};

// `path` names the file in errors. Throws std::runtime_error.
TokenizerJson parse_tokenizer_json(const std::string& contents, const std::string& path);

}  // namespace language_model
