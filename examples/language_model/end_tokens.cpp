#include "end_tokens.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "read_file.h"

namespace language_model {
namespace {

using Json = nlohmann::json;

int32_t token_of(const std::string& text, const Tokenizer& tokenizer) {
  if (const std::optional<int32_t> token = tokenizer.find(text)) return *token;
  int32_t token = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (error != std::errc() || end != text.data() + text.size() || token < 0)
    throw std::runtime_error("--end-token: '" + text + "' is neither a number nor a token of the vocabulary");
  return token;
}

// eos_token_id is a number or a list of them, at the top or in "model".
std::set<int32_t> read_config(const std::filesystem::path& path) {
  std::set<int32_t> tokens;
  const Json file = Json::parse(read_file(path.string()), nullptr, false);
  if (!file.is_object()) throw std::runtime_error(path.string() + ": expected a JSON object");
  const Json model = file.value("model", Json::object());
  const Json& owner = model.is_object() && model.contains("eos_token_id") ? model : file;
  const Json ids = owner.value("eos_token_id", Json());
  for (const Json& id : ids.is_array() ? ids : Json::array({ids}))
    if (id.is_number_integer()) tokens.insert(id.get<int32_t>());
  return tokens;
}

}  // namespace

std::set<int32_t> find_end_tokens(const std::vector<std::string>& given, const std::string& tokenizer_path,
                                  const Tokenizer& tokenizer) {
  namespace fs = std::filesystem;
  std::set<int32_t> tokens;
  for (const std::string& text : given) tokens.insert(token_of(text, tokenizer));
  if (!tokens.empty()) return tokens;
  const fs::path folder =
      fs::is_directory(tokenizer_path) ? fs::path(tokenizer_path) : fs::path(tokenizer_path).parent_path();
  for (const char* name : {"genai_config.json", "generation_config.json"})
    if (tokens.empty() && tokenizer_path != "bytes" && fs::exists(folder / name))
      tokens = read_config(folder / name);
  if (!tokens.empty()) return tokens;
  const std::vector<int32_t> known = tokenizer.end_tokens();
  return {known.begin(), known.end()};
}

}  // namespace language_model
