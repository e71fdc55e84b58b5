// Byte-level BPE, the tokenizers of GPT-2, Llama 3, Qwen and their kin, as a tokenizer.json describes them.
#include <algorithm>
#include <stdexcept>

#include "tokenizer.h"
#include "tokenizer_json.h"
#include "unicode.h"

namespace language_model {
namespace {

// What the tokens that end a text, or a turn of a conversation, are called.
constexpr const char* kEnds[] = {"</s>",       "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>",
                                 "<|im_end|>", "<|end|>",       "<end_of_turn>",   "<eos>"};

class ByteLevelBpe : public Tokenizer {
 public:
  explicit ByteLevelBpe(TokenizerJson file) : file_(std::move(file)) {
    size_ = static_cast<int32_t>(file_.bytes.size());
    for (const AddedTokens* tokens : {&file_.raw_tokens, &file_.normalized_tokens})
      for (const AddedToken& token : tokens->all()) size_ = std::max(size_, token.id + 1);
  }

  std::vector<int32_t> encode(std::string_view text, bool begins) const override {
    if (size_t at = find_invalid_utf8(text); at != std::string_view::npos)
      throw std::runtime_error("the prompt is not UTF-8 at byte " + std::to_string(at));
    std::vector<int32_t> tokens;
    if (begins) tokens = file_.begin;
    for (const TextPart& outer : file_.raw_tokens.split(text)) {
      if (outer.token != nullptr) {
        tokens.push_back(outer.token->id);
        continue;
      }
      check_normal(outer.text);
      for (const TextPart& part : file_.normalized_tokens.split(outer.text)) {
        if (part.token != nullptr) {
          tokens.push_back(part.token->id);
        } else {
          encode_pieces(part.text, 0, &tokens);
        }
      }
    }
    return tokens;
  }

  std::string_view bytes_of(int32_t token, int32_t) const override {
    if (const AddedToken* added = find_added(token))
      return added->special ? "" : std::string_view(added->content);
    if (token < 0 || static_cast<size_t>(token) >= file_.bytes.size()) return {};
    return file_.bytes[static_cast<size_t>(token)];
  }

  std::optional<int32_t> find(std::string_view content) const override {
    for (const AddedTokens* tokens : {&file_.raw_tokens, &file_.normalized_tokens})
      if (const AddedToken* token = tokens->find(content)) return token->id;
    const auto found = file_.ids.find(std::string(content));
    return found == file_.ids.end() ? std::nullopt : std::optional(found->second);
  }

  int32_t size() const override { return size_; }

  std::vector<int32_t> end_tokens() const override {
    std::vector<int32_t> ends;
    for (const char* content : kEnds)
      for (const AddedTokens* tokens : {&file_.raw_tokens, &file_.normalized_tokens})
        if (const AddedToken* token = tokens->find(std::string_view(content))) ends.push_back(token->id);
    return ends;
  }

 private:
  const AddedToken* find_added(int32_t id) const {
    const AddedToken* token = file_.raw_tokens.find(id);
    return token != nullptr ? token : file_.normalized_tokens.find(id);
  }

  void check_normal(std::string_view text) const {
    if (!file_.needs_nfc) return;
    const size_t at = find_not_nfc(text);
    if (at != std::string_view::npos)
      throw std::runtime_error("this tokenizer takes text in Unicode's normalisation form C, and '" +
                               std::string(text.substr(at, character_at(text, at).bytes)) +
                               "' may not be; give the prompt in that form (uconv -x any-nfc)");
  }

  void encode_pieces(std::string_view text, size_t step, std::vector<int32_t>* tokens) const {
    if (step == file_.steps.size()) return encode_piece(text, tokens);
    const SplitStep& split = file_.steps[step];
    if (split.kind == SplitStep::kLeadingSpace) {
      const std::string spaced = (text.starts_with(' ') ? "" : " ") + std::string(text);
      return encode_pieces(spaced, step + 1, tokens);
    }
    for (std::string_view piece : split.kind == SplitStep::kDigits ? split_digits(text, split.each_digit)
                                                                   : split_text(text, *split.rule))
      encode_pieces(piece, step + 1, tokens);
  }

  void encode_piece(std::string_view piece, std::vector<int32_t>* tokens) const {
    if (file_.takes_whole_pieces) {
      if (const auto whole = file_.ids.find(std::string(piece)); whole != file_.ids.end()) {
        tokens->push_back(whole->second);
        return;
      }
    }
    std::vector<int32_t> bytes;
    for (char c : piece) {
      const auto found = file_.ids.find(std::string(1, c));
      if (found == file_.ids.end())
        throw std::runtime_error("the vocabulary has no token for byte " +
                                 std::to_string(static_cast<unsigned char>(c)));
      bytes.push_back(found->second);
    }
    const std::vector<int32_t> merged =
        merge_pairs(bytes, [&](int32_t left, int32_t right) -> std::optional<Merge> {
          const auto found =
              file_.merges.find(static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right));
          return found == file_.merges.end() ? std::nullopt : std::optional(found->second);
        });
    tokens->insert(tokens->end(), merged.begin(), merged.end());
  }

  TokenizerJson file_;
  int32_t size_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& contents, const std::string& path) {
  return std::make_unique<ByteLevelBpe>(parse_tokenizer_json(contents, path));
}

}  // namespace language_model
