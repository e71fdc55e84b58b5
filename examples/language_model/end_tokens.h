// The tokens that end a text.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tokenizer.h"

namespace language_model {

// `given`: numbers or contents, as --end-token says. Without any: eos_token_id of the genai_config.json or
// generation_config.json beside the tokenizer, else what the tokenizer knows. Throws std::runtime_error.
std::set<int32_t> find_end_tokens(const std::vector<std::string>& given, const std::string& tokenizer_path,
                                  const Tokenizer& tokenizer);

}  // namespace language_model
