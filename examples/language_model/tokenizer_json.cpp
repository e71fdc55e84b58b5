#include "tokenizer_json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "unicode.h"

namespace language_model {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& what) { throw std::runtime_error(what); }

// A member, null where there is none.
const Json& member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool flag(const Json& object, const char* name, bool otherwise) {
  const Json& value = member(object, name);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

int32_t id_of(const Json& value) {
  constexpr int64_t kMost = 1 << 22;
  if (!value.is_number_integer()) refuse("expected a token's number, found " + value.dump());
  const auto id = value.get<int64_t>();
  if (id < 0 || id >= kMost)
    refuse("expected tokens from 0 to " + std::to_string(kMost - 1) + ", found " + value.dump());
  return static_cast<int32_t>(id);
}

// GPT-2 writes each byte as a printable character: itself, or one from U+0100 on. 256 for other characters.
uint32_t byte_of(uint32_t code) {
  static const std::array<uint32_t, 0x200> kBytes = [] {
    std::array<uint32_t, 0x200> bytes;
    bytes.fill(256);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      bytes[printable ? byte : next++] = byte;
    }
    return bytes;
  }();
  return code < kBytes.size() ? kBytes[code] : 256;
}

std::optional<std::string> bytes_of(const std::string& content) {
  std::string bytes;
  for (size_t at = 0; at < content.size();) {
    const Character character = character_at(content, at);
    const uint32_t byte = character.bytes == 0 ? 256 : byte_of(character.code);
    if (byte > 255) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    at += character.bytes;
  }
  return bytes;
}

class Reader {
 public:
  explicit Reader(const Json& file) : file_(file) {}

  TokenizerJson read() {
    read_added_tokens();
    read_normalizer(member(file_, "normalizer"));
    read_pre_tokenizer(member(file_, "pre_tokenizer"));
    if (!byte_level_)
      refuse("expected the pre_tokenizer 'ByteLevel', found none: only byte-level BPE is supported");
    read_model(member(file_, "model"));
    read_post_processor(member(file_, "post_processor"));
    const std::string decoder = text_of(member(file_, "decoder"), "type");
    if (decoder != "ByteLevel") refuse("decoder '" + decoder + "' is not supported; supported: ByteLevel");
    return std::move(result_);
  }

 private:
  void read_added_tokens() {
    for (const Json& entry : member(file_, "added_tokens")) {
      AddedToken token{id_of(member(entry, "id")), text_of(entry, "content"), flag(entry, "special", false),
                       flag(entry, "lstrip", false), flag(entry, "rstrip", false)};
      if (token.content.empty()) refuse("added token " + std::to_string(token.id) + " has no content");
      if (flag(entry, "single_word", false))
        refuse("added token '" + token.content + "': single_word is not supported");
      const bool normalized = flag(entry, "normalized", !token.special);
      (normalized ? result_.normalized_tokens : result_.raw_tokens).add(std::move(token));
    }
  }

  void read_normalizer(const Json& normalizer) {
    if (normalizer.is_null()) return;
    const std::string type = text_of(normalizer, "type");
    if (type == "NFC") {
      result_.needs_nfc = true;
    } else if (type == "Sequence") {
      for (const Json& step : member(normalizer, "normalizers")) read_normalizer(step);
    } else {
      refuse("normalizer '" + type + "' is not supported; supported: NFC");
    }
  }

  void read_pre_tokenizer(const Json& step) {
    if (step.is_null()) return;
    const std::string type = text_of(step, "type");
    if (byte_level_) refuse("pre_tokenizer '" + type + "' behind ByteLevel is not supported");
    if (type == "Sequence") {
      for (const Json& part : member(step, "pretokenizers")) read_pre_tokenizer(part);
    } else if (type == "ByteLevel") {
      byte_level_ = true;
      if (flag(step, "add_prefix_space", true)) result_.steps.push_back({SplitStep::kLeadingSpace});
      if (flag(step, "use_regex", true)) result_.steps.push_back({SplitStep::kRule, &gpt2_rule()});
    } else if (type == "Digits") {
      result_.steps.push_back({SplitStep::kDigits, nullptr, flag(step, "individual_digits", false)});
    } else if (type == "Split") {
      read_split(step);
    } else {
      refuse("pre_tokenizer '" + type + "' is not supported; supported: ByteLevel, Split, Digits");
    }
  }

  void read_split(const Json& step) {
    const Json& pattern = member(step, "pattern");
    const SplitRule* rule = find_split_rule(text_of(pattern, "Regex"));
    if (rule == nullptr)
      refuse("pre_tokenizer Split by " + pattern.dump() +
             " is not supported; supported: the regular expressions of GPT-2, Llama 3 and Qwen2");
    const std::string behavior = text_of(step, "behavior");
    const bool inverted = flag(step, "invert", false);
    // These expressions match the whole text, so what is between their matches is empty.
    if (!(behavior == "Isolated" && !inverted) && !(behavior == "Removed" && inverted))
      refuse("pre_tokenizer Split: behavior '" + behavior + "'" + (inverted ? ", inverted," : "") +
             " is not supported; supported: Isolated");
    result_.steps.push_back({SplitStep::kRule, rule});
  }

  void read_model(const Json& model) {
    const std::string type = text_of(model, "type");
    if (type != "BPE" && !(type.empty() && model.contains("merges")))
      refuse("model '" + type + "' is not supported; supported: BPE");
    if (flag(model, "byte_fallback", false))
      refuse("model: byte_fallback is not supported; supported: byte-level BPE");
    if (const Json& dropout = member(model, "dropout"); dropout.is_number() && dropout.get<double>() != 0)
      refuse("model: dropout is not supported");
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_of(model, name).empty()) refuse(std::string("model: ") + name + " is not supported");
    result_.takes_whole_pieces = flag(model, "ignore_merges", false);
    const Json& vocab = member(model, "vocab");
    if (!vocab.is_object() || vocab.empty()) refuse("model: expected a vocab of tokens and their numbers");
    for (const auto& [content, value] : vocab.items()) add_token(content, id_of(value));
    double order = 0;
    for (const Json& merge : member(model, "merges")) add_merge(merge, order++);
  }

  // Contents that are not bytes are those of added tokens, which stand in the vocabulary, too.
  void add_token(const std::string& content, int32_t id) {
    const std::optional<std::string> bytes = bytes_of(content);
    if (!bytes) {
      if (!result_.raw_tokens.find(content) && !result_.normalized_tokens.find(content))
        refuse("model: token '" + content + "' is not written in the characters of byte-level BPE");
      return;
    }
    if (static_cast<size_t>(id) >= result_.bytes.size()) result_.bytes.resize(static_cast<size_t>(id) + 1);
    result_.bytes[static_cast<size_t>(id)] = *bytes;
    result_.ids[*bytes] = id;
  }

  void add_merge(const Json& merge, double order) {
    std::string left, right;
    if (merge.is_string()) {
      const auto both = merge.get<std::string>();
      const size_t space = both.find(' ');
      if (space != std::string::npos) left = both.substr(0, space), right = both.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0], right = merge[1];
    }
    const std::optional<std::string> first = bytes_of(left), second = bytes_of(right);
    const auto id = [&](const std::string& bytes) {
      const auto found = result_.ids.find(bytes);
      if (found == result_.ids.end())
        refuse("model: merge " + merge.dump() + ": expected tokens of the vocab");
      return found->second;
    };
    if (!first || !second || first->empty() || second->empty())
      refuse("model: merge " + merge.dump() + ": expected two tokens of the vocab");
    const auto pair = static_cast<uint64_t>(id(*first)) << 32 | static_cast<uint64_t>(id(*second));
    result_.merges.emplace(pair, Merge{order, id(*first + *second)});
  }

  void read_post_processor(const Json& step) {
    if (step.is_null()) return;
    const std::string type = text_of(step, "type");
    if (type == "Sequence") {
      for (const Json& part : member(step, "processors")) read_post_processor(part);
    } else if (type == "TemplateProcessing") {
      read_template(step);
    } else if (type != "ByteLevel") {  // which is about offsets only
      refuse("post_processor '" + type + "' is not supported; supported: ByteLevel, TemplateProcessing");
    }
  }

  void read_template(const Json& step) {
    bool after = false;
    for (const Json& part : member(step, "single")) {
      if (part.contains("Sequence")) {
        after = true;
        continue;
      }
      const std::string name = text_of(member(part, "SpecialToken"), "id");
      if (after) refuse("post_processor: token '" + name + "' behind the text is not supported");
      for (const Json& id : member(member(member(step, "special_tokens"), name.c_str()), "ids"))
        result_.begin.push_back(id_of(id));
    }
  }

  const Json& file_;
  TokenizerJson result_;
  bool byte_level_ = false;
};

}  // namespace

TokenizerJson parse_tokenizer_json(const std::string& contents, const std::string& path) {
  try {
    return Reader(Json::parse(contents)).read();
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace language_model
