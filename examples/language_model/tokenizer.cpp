#include "tokenizer.h"

#include <filesystem>
#include <stdexcept>

#include "read_file.h"

namespace language_model {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer() {
    for (int i = 0; i < 256; ++i) bytes_.push_back(static_cast<char>(i));
  }
  std::vector<int32_t> encode(std::string_view text, bool) const override {
    std::vector<int32_t> tokens;
    for (char c : text) tokens.push_back(static_cast<uint8_t>(c));
    return tokens;
  }
  std::string_view bytes_of(int32_t token, int32_t) const override {
    return token < 0 || token > 255 ? std::string_view() : std::string_view(bytes_).substr(token, 1);
  }
  std::optional<int32_t> find(std::string_view content) const override {
    if (content.size() != 1) return std::nullopt;
    return static_cast<uint8_t>(content[0]);
  }
  int32_t size() const override { return 256; }
  std::vector<int32_t> end_tokens() const override { return {}; }

 private:
  std::string bytes_;
};

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  namespace fs = std::filesystem;
  if (path == "bytes") return byte_tokenizer();
  const std::string file = fs::is_directory(path) ? (fs::path(path) / "tokenizer.json").string() : path;
  const std::string contents = read_file(file);
  const size_t first = contents.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && contents[first] == '{') return read_tokenizer_json(contents, file);
  return read_scored_pieces(contents, file);
}

}  // namespace language_model
