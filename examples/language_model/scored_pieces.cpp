// The vocabulary of a llama2.c checkpoint (tokenizer.bin), which SentencePiece trained: pieces with scores, joined by
// the highest score; a character that is no piece becomes its bytes. The file is a u32, the longest piece, and for each
// token an f32 score, an i32 length and that many bytes.
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "merge_pairs.h"
#include "tokenizer.h"
#include "unicode.h"

namespace language_model {
namespace {

constexpr int32_t kBegin = 1, kEnd = 2, kFirstByte = 3;

class ScoredPieces : public Tokenizer {
 public:
  ScoredPieces(const std::string& contents, const std::string& path) {
    size_t at = 4;
    while (at < contents.size()) {
      float score = 0;
      int32_t length = 0;
      if (contents.size() - at >= 8) {
        std::memcpy(&score, contents.data() + at, 4);
        std::memcpy(&length, contents.data() + at + 4, 4);
      }
      at += 8;
      if (length < 1 || at > contents.size() || static_cast<size_t>(length) > contents.size() - at)
        throw std::runtime_error(path +
                                 ": neither a tokenizer.json nor the tokenizer.bin of a llama2.c checkpoint");
      const auto token = static_cast<int32_t>(pieces_.size());
      pieces_.push_back(contents.substr(at, static_cast<size_t>(length)));
      scores_.push_back(score);
      ids_.emplace(pieces_.back(), token);
      at += static_cast<size_t>(length);
    }
    if (size() < kFirstByte + 256)
      throw std::runtime_error(path + ": expected a vocabulary of 259 tokens or more, found " +
                               std::to_string(size()));
    for (int32_t byte = 0; byte < 256; ++byte) bytes_.push_back(static_cast<char>(byte));
  }

  std::vector<int32_t> encode(std::string_view text, bool begins) const override {
    if (size_t at = find_invalid_utf8(text); at != std::string_view::npos)
      throw std::runtime_error("the prompt is not UTF-8 at byte " + std::to_string(at));
    std::vector<int32_t> tokens;
    const std::string_view space = begins && !text.empty() ? " " : "";
    for (std::string_view part : {space, text})
      for (size_t at = 0; at < part.size();) {
        const size_t bytes = character_at(part, at).bytes;
        if (const std::optional<int32_t> token = find(part.substr(at, bytes))) {
          tokens.push_back(*token);
        } else {
          for (char c : part.substr(at, bytes)) tokens.push_back(kFirstByte + static_cast<uint8_t>(c));
        }
        at += bytes;
      }
    tokens = merge_pairs(tokens, [&](int32_t left, int32_t right) -> std::optional<Merge> {
      const std::optional<int32_t> joined = find(piece(left) + piece(right));
      if (!joined) return std::nullopt;
      return Merge{-static_cast<double>(scores_[static_cast<size_t>(*joined)]), *joined};
    });
    if (begins) tokens.insert(tokens.begin(), kBegin);
    return tokens;
  }

  // The first word of a text has no space before it.
  std::string_view bytes_of(int32_t token, int32_t previous) const override {
    if (token < kFirstByte || token >= size()) return {};
    if (token < kFirstByte + 256)
      return std::string_view(bytes_).substr(static_cast<size_t>(token - kFirstByte), 1);
    const std::string_view bytes = piece(token);
    return previous == kBegin && bytes[0] == ' ' ? bytes.substr(1) : bytes;
  }

  std::optional<int32_t> find(std::string_view content) const override {
    const auto found = ids_.find(std::string(content));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  int32_t size() const override { return static_cast<int32_t>(pieces_.size()); }
  // Training puts the begin token between texts, so it ends one, too.
  std::vector<int32_t> end_tokens() const override { return {kBegin, kEnd}; }

 private:
  const std::string& piece(int32_t token) const { return pieces_[static_cast<size_t>(token)]; }

  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::unordered_map<std::string, int32_t> ids_;
  std::string bytes_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_scored_pieces(const std::string& contents, const std::string& path) {
  return std::make_unique<ScoredPieces>(contents, path);
}

}  // namespace language_model
