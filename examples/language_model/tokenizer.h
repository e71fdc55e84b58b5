// Text to tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace language_model {

// The id of what begins a text, where there is nothing before.
inline constexpr int32_t kNoToken = -1;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // `begins`: the text begins a conversation, so the vocabulary's begin token comes before it. Throws
  // std::runtime_error where the vocabulary cannot say the text.
  virtual std::vector<int32_t> encode(std::string_view text, bool begins) const = 0;
  // The bytes of a token behind `previous`; none of special tokens and of ids that the vocabulary lacks.
  virtual std::string_view bytes_of(int32_t token, int32_t previous) const = 0;
  // The token of exactly this content, special tokens included.
  virtual std::optional<int32_t> find(std::string_view content) const = 0;
  // The largest id and one.
  virtual int32_t size() const = 0;
  // The tokens that end a text, as far as the files say.
  virtual std::vector<int32_t> end_tokens() const = 0;
};

// `path`: a tokenizer.json, a folder with one, the tokenizer.bin of a llama2.c checkpoint, or "bytes", where each
// byte is a token. Throws std::runtime_error.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

// What load_tokenizer chooses from. `contents`: of the file; `path` names it in errors.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& contents, const std::string& path);
std::unique_ptr<Tokenizer> read_scored_pieces(const std::string& contents, const std::string& path);
std::unique_ptr<Tokenizer> byte_tokenizer();

}  // namespace language_model
