// examples/language_model: tokenizers, the choice of tokens and the stream of text, without a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <optional>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "end_tokens.h"
#include "merge_pairs.h"
#include "options.h"
#include "read_file.h"
#include "sample.h"
#include "split_text.h"
#include "stream_text.h"
#include "tokenizer.h"
#include "unicode.h"

namespace language_model {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;
using Pieces = std::vector<std::string_view>;

template <typename F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// ---- splitting

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(SplitText, gpt2) {
  auto split = [](std::string_view text) { return split_text(text, gpt2_rule()); };
  EXPECT_EQ(split("I'll say, 'it's 2026'!"),
            (Pieces{"I", "'ll", " say", ",", " '", "it", "'s", " 2026", "'!"}));
  EXPECT_EQ(split("I'LL"), (Pieces{"I", "'", "LL"}));
  EXPECT_EQ(split("a  b\n\n c \n"), (Pieces{"a", " ", " b", "\n\n", " c", " \n"}));
  EXPECT_EQ(split(" \xc2\xbd\xe2\x85\xa7x\xe4\xbd\xa0"), (Pieces{" \xc2\xbd\xe2\x85\xa7", "x\xe4\xbd\xa0"}));
  EXPECT_EQ(split(""), Pieces{});
}

TEST(SplitText, llama3_and_qwen2) {
  auto llama3 = [](std::string_view text) { return split_text(text, *find_split_rule(kLlama3)); };
  auto qwen2 = [](std::string_view text) { return split_text(text, *find_split_rule(kQwen2)); };
  EXPECT_EQ(llama3("I'LL 12345"), (Pieces{"I", "'LL", " ", "123", "45"}));
  EXPECT_EQ(qwen2("I'LL 123"), (Pieces{"I", "'LL", " ", "1", "2", "3"}));
  EXPECT_EQ(llama3("(word) ends;\n\n  next"), (Pieces{"(word", ")", " ends", ";\n\n", " ", " next"}));
  EXPECT_EQ(llama3("a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(llama3("it'\xc5\xbf"), (Pieces{"it", "'\xc5\xbf"}));  // U+017F folds to s
  EXPECT_EQ(find_split_rule(R"(\w+)"), nullptr);
}

TEST(SplitText, digits) {
  EXPECT_EQ(split_digits("ab12c3", true), (Pieces{"ab", "1", "2", "c", "3"}));
  EXPECT_EQ(split_digits("ab12c3", false), (Pieces{"ab", "12", "c", "3"}));
}

TEST(Unicode, what_may_not_be_normal) {
  EXPECT_EQ(find_not_nfc("caf\xc3\xa9 \xed\x95\x9c \xe4\xbd\xa0"), std::string_view::npos);
  EXPECT_EQ(find_not_nfc("cafe\xcc\x81"), 4u);                           // e, U+0301
  EXPECT_EQ(find_not_nfc("\xe2\x84\xab"), 0u);                           // U+212B is U+00C5
  EXPECT_EQ(find_not_nfc("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"), 3u);   // conjoining Hangul
  EXPECT_EQ(find_not_nfc("q\xcc\xa0\xcc\x84"), 3u);                      // U+0304 may compose
  EXPECT_EQ(find_not_nfc("q\xcd\x80"), 1u);                              // U+0340 is U+0300
  EXPECT_EQ(find_not_nfc("q\xcc\x96\xcc\xbd"), std::string_view::npos);  // classes 220, 230
  EXPECT_EQ(find_not_nfc("q\xcc\xbd\xcc\x96"), 3u);                      // 230, 220: out of order
}

// ---- merging

TEST(MergePairs, lowest_order_first_then_leftmost) {
  // 1 1 -> 2 before 2 1 -> 3.
  auto find = [](int32_t left, int32_t right) -> std::optional<Merge> {
    if (left == 1 && right == 1) return Merge{0, 2};
    if (left == 2 && right == 1) return Merge{1, 3};
    return std::nullopt;
  };
  EXPECT_EQ(merge_pairs({1, 1, 1}, find), Ids{3});
  EXPECT_EQ(merge_pairs({1, 1, 1, 1}, find), (Ids{2, 2}));
  EXPECT_EQ(merge_pairs({5, 1, 1, 1, 5}, find), (Ids{5, 3, 5}));
  EXPECT_EQ(merge_pairs({}, find), Ids{});
  EXPECT_EQ(merge_pairs(Ids(100000, 1), find).size(), 50000u);
}

// ---- tokenizer.json

// GPT-2's character of a byte.
std::string character_of(int byte) {
  std::string text;
  int next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    const int code = printable ? b : next++;
    if (b == byte) append_utf8(static_cast<uint32_t>(code), &text);
  }
  return text;
}

// The bytes are the tokens 0 to 255; merges add tokens from 256 on; then two special tokens.
json bpe(const std::vector<std::pair<std::string, std::string>>& merges) {
  json vocab, list = json::array();
  for (int byte = 0; byte < 256; ++byte) vocab[character_of(byte)] = byte;
  auto written = [](const std::string& bytes) {
    std::string text;
    for (char c : bytes) text += character_of(static_cast<unsigned char>(c));
    return text;
  };
  int next = 256;
  for (const auto& [left, right] : merges) {
    vocab[written(left + right)] = next++;
    list.push_back(written(left) + " " + written(right));
  }
  return {{"added_tokens",
           {{{"id", next}, {"content", "<|begin|>"}, {"special", true}, {"normalized", false}},
            {{"id", next + 1}, {"content", "<|endoftext|>"}, {"special", true}, {"normalized", false}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor", {{"type", "ByteLevel"}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}};
}

json words() {
  return bpe({{"t", "h"}, {"th", "e"}, {" ", "the"}, {"\xc3", "\xa9"}, {"i", "n"}, {"l", "l"}});
}
constexpr int32_t kTh = 256, kThe = 257, kSpaceThe = 258, kEAcute = 259, kIn = 260, kLl = 261, kBegin = 262,
                  kEnd = 263;

std::unique_ptr<Tokenizer> read(const json& file) { return read_tokenizer_json(file.dump(), "t.json"); }

std::string decode(const Tokenizer& tokenizer, const Ids& tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i)
    text += tokenizer.bytes_of(tokens[i], i == 0 ? kNoToken : tokens[i - 1]);
  return text;
}

TEST(ByteLevelBpe, merges_within_pieces) {
  auto t = read(words());
  EXPECT_THAT(t->encode("the the", true), ElementsAre(kThe, kSpaceThe));
  EXPECT_THAT(t->encode("thin", true), ElementsAre(kTh, kIn));
  EXPECT_THAT(t->encode("t he", true), ElementsAre('t', ' ', 'h', 'e'));
  EXPECT_THAT(t->encode("\xc3\xa9\xc3\xa8\n", true), ElementsAre(kEAcute, 0xc3, 0xa8, '\n'));
  EXPECT_EQ(t->size(), kEnd + 1);
  EXPECT_THAT(t->end_tokens(), ElementsAre(kEnd));
  EXPECT_EQ(t->find("the"), kThe);
  EXPECT_EQ(t->find("<|begin|>"), kBegin);
  EXPECT_EQ(t->find("then"), std::nullopt);
}

TEST(ByteLevelBpe, every_byte_comes_back) {
  auto t = read(words());
  std::string text;
  for (uint32_t code = 1; code < 0x30000; code += code < 0x800 ? 1 : 97)
    if (code < 0xd800 || code > 0xdfff) append_utf8(code, &text);
  EXPECT_EQ(decode(*t, t->encode(text, true)), text);
}

TEST(ByteLevelBpe, special_tokens_stand_in_the_text) {
  auto t = read(words());
  EXPECT_THAT(t->encode("<|begin|>the<|endoftext|> the", true), ElementsAre(kBegin, kThe, kEnd, kSpaceThe));
  EXPECT_EQ(decode(*t, {kBegin, kThe, kEnd}), "the");
  EXPECT_EQ(t->bytes_of(100000, kNoToken), "");
  json file = words();
  file["added_tokens"][0]["lstrip"] = true;
  file["added_tokens"][0]["rstrip"] = true;
  EXPECT_THAT(read(file)->encode("a \t<|begin|>\n b", true), ElementsAre('a', kBegin, 'b'));
  file["added_tokens"].push_back({{"id", 300}, {"content", "<|begin|>more"}});
  EXPECT_THAT(read(file)->encode("<|begin|>mor", true), ElementsAre(kBegin, 'm', 'o', 'r'));
  file["added_tokens"][2]["normalized"] = false;
  EXPECT_THAT(read(file)->encode("<|begin|>more", true), ElementsAre(300));
  EXPECT_EQ(decode(*read(file), {300}), "<|begin|>more");
}

TEST(ByteLevelBpe, what_comes_before_a_text) {
  json file = words();
  file["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"},
         {"single", {{{"SpecialToken", {{"id", "<|begin|>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
         {"special_tokens", {{"<|begin|>", {{"ids", {kBegin}}}}}}}}}};
  EXPECT_THAT(read(file)->encode("the", true), ElementsAre(kBegin, kThe));
  EXPECT_THAT(read(file)->encode("the", false), ElementsAre(kThe));
  file = words();
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_THAT(read(file)->encode("the", true), ElementsAre(kSpaceThe));
  EXPECT_THAT(read(file)->encode(" the", true), ElementsAre(kSpaceThe));
}

TEST(ByteLevelBpe, forms_of_files) {
  json file = words();
  for (json& merge : file["model"]["merges"]) {
    const std::string both = merge;
    merge = {both.substr(0, both.find(' ')), both.substr(both.find(' ') + 1)};
  }
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", kLlama3}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  EXPECT_THAT(read(file)->encode("I'LL the", true), ElementsAre('I', '\'', 'L', 'L', kSpaceThe));
  file["pre_tokenizer"]["pretokenizers"][0] = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_THAT(read(file)->encode("12", true), ElementsAre('1', '2'));
  // A piece that is a token is not merged from parts: no merge leads to "thx".
  file["model"]["vocab"]["thx"] = 270;
  EXPECT_THAT(read(file)->encode("thx", true), ElementsAre(kTh, 'x'));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(read(file)->encode("thx", true), ElementsAre(270));
}

TEST(ByteLevelBpe, normal_form) {
  json file = words();
  file["normalizer"] = {{"type", "NFC"}};
  EXPECT_THAT(read(file)->encode("\xc3\xa9", true), ElementsAre(kEAcute));
  EXPECT_THAT(error_of([&] { read(file)->encode("e\xcc\x81", true); }), HasSubstr("normalisation form C"));
}

TEST(ByteLevelBpe, refusals) {
  auto refused = [](const char* pointer, const json& value) {
    json file = words();
    file[json::json_pointer(pointer)] = value;
    return error_of([&] { read(file); });
  };
  EXPECT_THAT(refused("/normalizer", {{"type", "Prepend"}}),
              HasSubstr("t.json: normalizer 'Prepend' is not supported"));
  EXPECT_THAT(refused("/pre_tokenizer/type", "Metaspace"),
              HasSubstr("pre_tokenizer 'Metaspace' is not supported"));
  EXPECT_THAT(refused("/pre_tokenizer", nullptr), HasSubstr("expected the pre_tokenizer 'ByteLevel'"));
  EXPECT_THAT(refused("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "\\w+"}}}}),
              HasSubstr("\\\\w+"));
  EXPECT_THAT(refused("/pre_tokenizer",
                      {{"type", "Split"}, {"pattern", {{"Regex", kQwen2}}}, {"behavior", "MergedWithNext"}}),
              HasSubstr("behavior 'MergedWithNext'"));
  EXPECT_THAT(refused("/pre_tokenizer", {{"type", "Sequence"},
                                         {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "Digits"}}}}}),
              HasSubstr("'Digits' behind ByteLevel"));
  EXPECT_THAT(refused("/post_processor/type", "BertProcessing"),
              HasSubstr("post_processor 'BertProcessing'"));
  EXPECT_THAT(refused("/post_processor",
                      {{"type", "TemplateProcessing"},
                       {"single", {{{"Sequence", {{"id", "A"}}}}, {{"SpecialToken", {{"id", "</s>"}}}}}}}),
              HasSubstr("token '</s>' behind the text"));
  EXPECT_THAT(refused("/decoder/type", "Metaspace"), HasSubstr("decoder 'Metaspace'"));
  EXPECT_THAT(refused("/model/type", "Unigram"), HasSubstr("model 'Unigram' is not supported"));
  EXPECT_THAT(refused("/model/byte_fallback", true), HasSubstr("byte_fallback"));
  EXPECT_THAT(refused("/model/dropout", 0.1), HasSubstr("dropout"));
  EXPECT_THAT(refused("/model/end_of_word_suffix", "</w>"), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(refused("/model/vocab", json::array()), HasSubstr("expected a vocab"));
  EXPECT_THAT(refused("/model/vocab/a", -1), HasSubstr("expected tokens from 0"));
  EXPECT_THAT(refused("/model/vocab/a", "x"), HasSubstr("expected a token's number"));
  EXPECT_THAT(refused("/model/vocab", {{"\xe4\xbd\xa0", 1}}), HasSubstr("is not written in the characters"));
  EXPECT_THAT(refused("/model/merges/0", "t"), HasSubstr("expected two tokens of the vocab"));
  EXPECT_THAT(refused("/model/merges/0", "q q"), HasSubstr("expected tokens of the vocab"));
  EXPECT_THAT(refused("/added_tokens/0/content", ""), HasSubstr("has no content"));
  EXPECT_THAT(refused("/added_tokens/0/single_word", true), HasSubstr("single_word"));
  json few = words();
  few["model"]["vocab"].erase("a");
  EXPECT_THAT(error_of([&] { read(few)->encode("a", true); }), HasSubstr("no token for byte 97"));
  EXPECT_THAT(error_of([] { read_tokenizer_json("{", "t.json"); }), HasSubstr("t.json: "));
  EXPECT_THAT(error_of([] { read(words())->encode("a\xff", true); }), HasSubstr("not UTF-8 at byte 1"));
}

// ---- tokenizer.bin

std::string vocabulary(const std::vector<std::pair<std::string, float>>& pieces) {
  std::string file(4, '\0');
  auto add = [&](const std::string& piece, float score) {
    auto length = static_cast<int32_t>(piece.size());
    std::array<char, 8> numbers;
    std::memcpy(numbers.data(), &score, 4);
    std::memcpy(numbers.data() + 4, &length, 4);
    file.append(numbers.data(), 8).append(piece);
  };
  for (const char* special : {"<unk>", "\n<s>\n", "\n</s>\n"}) add(special, 0);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    add(text, 0);
  }
  for (const auto& [piece, score] : pieces) add(piece, score);
  return file;
}

TEST(ScoredPieces, highest_score_first) {
  // 259: " ", "a", "b", "ab", " a", "\xc3\xa9"
  auto t = read_scored_pieces(
      vocabulary({{" ", -9}, {"a", -8}, {"b", -7}, {"ab", -2}, {" a", -3}, {"\xc3\xa9", -4}}), "t.bin");
  EXPECT_THAT(t->encode("ab", true), ElementsAre(1, 259, 262));  // "ab" has a better score than " a"
  EXPECT_THAT(t->encode("aa", true), ElementsAre(1, 263, 260));
  EXPECT_THAT(t->encode("ab", false), ElementsAre(262));
  EXPECT_THAT(t->encode("\xc3\xa9\xc3\xa8\n", false), ElementsAre(264, 3 + 0xc3, 3 + 0xa8, 3 + '\n'));
  EXPECT_THAT(t->encode("", true), ElementsAre(1));
  EXPECT_EQ(t->size(), 265);
  EXPECT_THAT(t->end_tokens(), ElementsAre(1, 2));
  EXPECT_EQ(decode(*t, t->encode("ab\xc3\xa8", true)), "ab\xc3\xa8");
  EXPECT_EQ(decode(*t, {1, 263, 262}), "aab");  // no space before the first word
}

TEST(ScoredPieces, refusals) {
  const std::string file = vocabulary({{"a", 0}});
  for (const std::string& bad :
       {file.substr(0, file.size() - 1), file + "x", std::string("12345678901234567890")})
    EXPECT_THAT(error_of([&] { read_scored_pieces(bad, "t.bin"); }),
                HasSubstr("t.bin: neither a tokenizer.json nor"));
  EXPECT_THAT(error_of([&] { read_scored_pieces(file.substr(0, 4), "t.bin"); }),
              HasSubstr("expected a vocabulary of 259"));
}

// ---- the stream of text

struct Written {
  std::vector<std::string> parts;
  TextStream stream;
  explicit Written(std::vector<std::string> stops = {})
      : stream(std::move(stops), [this](std::string_view text) { parts.emplace_back(text); }) {}
  std::string all() const {
    std::string text;
    for (const std::string& part : parts) text += part;
    return text;
  }
};

TEST(TextStream, whole_characters_only) {
  Written w;
  w.stream.add("a\xe4");
  w.stream.add("\xbd");
  EXPECT_THAT(w.parts, ElementsAre("a"));
  w.stream.add("\xa0z");
  EXPECT_THAT(w.parts, ElementsAre("a", "\xe4\xbd\xa0z"));
  w.stream.add("\xff\xc3(\xed\xa0\x80");
  w.stream.add("\xf0\x9f");
  w.stream.finish();
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(w.all(), "a\xe4\xbd\xa0z" + bad + bad + "(" + bad + bad + bad + bad);
}

TEST(TextStream, one_replacement_for_a_broken_character) {
  Written w;
  w.stream.add("\xe4\xbd(\xf0\x9f\x98\xf0\x9f\xc3");
  w.stream.finish();
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(w.all(), bad + "(" + bad + bad + bad);
}

TEST(TextStream, stops_before_a_stop_string) {
  Written w({"</end>", "stop"});
  w.stream.add("one <");
  EXPECT_EQ(w.all(), "one ");
  w.stream.add("/en");
  w.stream.add("t> st");
  EXPECT_EQ(w.all(), "one </ent> ");
  w.stream.add("op it");
  EXPECT_TRUE(w.stream.stopped());
  w.stream.add("more");
  w.stream.finish();
  EXPECT_EQ(w.all(), "one </ent> ");
  Written last({"stop"});
  last.stream.add("no sto");
  last.stream.finish();
  EXPECT_EQ(last.all(), "no sto");
}

TEST(TextStream, unfinished_characters) {
  EXPECT_EQ(unfinished_character("a\xf0\x9f\x98"), "\xf0\x9f\x98");
  EXPECT_EQ(unfinished_character("a\xe4\xbd\xa0"), "");
  EXPECT_EQ(unfinished_character("\xc3"), "\xc3");
  EXPECT_EQ(unfinished_character(""), "");
}

// ---- the choice of tokens

TEST(Sampler, likeliest) {
  Sampler sampler({}, 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 3, -2}), 1);
  EXPECT_EQ(sampler.random(), 1u);  // nothing was drawn
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of([&] {
                sampler.sample(std::vector<float>{1, nan});
              }),
              HasSubstr("logit of token 1 is not a number"));
}

// The share of each token in 20,000 draws.
std::vector<double> shares(const SamplingOptions& options, const std::vector<float>& logits,
                           uint64_t seed = 5) {
  Sampler sampler(options, seed);
  std::vector<double> counts(logits.size());
  for (int i = 0; i < 20000; ++i) counts[static_cast<size_t>(sampler.sample(logits))] += 1.0 / 20000;
  return counts;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.02) << i;
}

TEST(Sampler, temperature_and_limits) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.15f), std::log(0.25f)};
  expect_near(shares({1, 0, 1}, logits), {0.1, 0.5, 0.15, 0.25});
  expect_near(shares({0.5, 0, 1}, logits), {0.01 / 0.345, 0.25 / 0.345, 0.0225 / 0.345, 0.0625 / 0.345});
  expect_near(shares({1, 2, 1}, logits), {0, 2.0 / 3, 0, 1.0 / 3});
  expect_near(shares({1, 0, 0.7}, logits), {0, 2.0 / 3, 0, 1.0 / 3});
  expect_near(shares({1, 0, 0}, logits), {0, 1, 0, 0});
  EXPECT_EQ(shares({1, 3, 0.9}, logits), shares({1, 3, 0.9}, logits));
  EXPECT_NE(shares({1, 3, 0.9}, logits), shares({1, 3, 0.9}, logits, 6));
}

// ---- options, end tokens, files

Options parse(std::vector<std::string> arguments) {
  std::vector<char*> argv = {const_cast<char*>("generate")};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST(Options, are_checked) {
  const Options o =
      parse({"m.qnl", "--tokenizer", "bytes", "--top-p", "0.5", "--stop", "a", "--stop", "b", "--echo"});
  EXPECT_EQ(o.bundle, "m.qnl");
  EXPECT_EQ(o.sampling.top_p, 0.5);
  EXPECT_THAT(o.stops, ElementsAre("a", "b"));
  EXPECT_TRUE(o.echo);
  auto error = [](std::vector<std::string> arguments) { return error_of([&] { parse(arguments); }); };
  EXPECT_THAT(error({"--tokens", "x"}), HasSubstr("--tokens: expected a number from 0 on, found 'x'"));
  EXPECT_THAT(error({"--top-p", "nan"}), HasSubstr("--top-p: expected a number from 0"));
  EXPECT_THAT(error({"--threads", "0"}), HasSubstr("--threads: expected a number from 1 to 256"));
  EXPECT_THAT(error({"--seed"}), HasSubstr("--seed: expected a value behind it"));
  EXPECT_THAT(error({"a", "b"}), HasSubstr("unexpected argument 'b'"));
  EXPECT_THAT(error({"a", "--tokeniser", "b"}), HasSubstr("unexpected argument '--tokeniser'"));
  EXPECT_THAT(error({"a"}), HasSubstr("expected a bundle and --tokenizer"));
  EXPECT_THAT(error({"a", "--tokenizer", "b", "--stop", ""}), HasSubstr("--stop: expected a text"));
}

TEST(EndTokens, from_the_command_line_the_configuration_or_the_vocabulary) {
  namespace fs = std::filesystem;
  char path[] = "/tmp/quernel-end-tokens-XXXXXX";
  const std::string folder = mkdtemp(path);
  write_file(folder + "/tokenizer.json", words().dump());
  auto t = load_tokenizer(folder);
  EXPECT_THAT(find_end_tokens({}, folder, *t), ElementsAre(kEnd));
  write_file(folder + "/genai_config.json", R"({"model": {"eos_token_id": [7, 9]}})");
  EXPECT_THAT(find_end_tokens({}, folder + "/tokenizer.json", *t), ElementsAre(7, 9));
  EXPECT_THAT(find_end_tokens({"<|begin|>", "12"}, folder, *t), ElementsAre(12, kBegin));
  EXPECT_THAT(error_of([&] { find_end_tokens({"<|none|>"}, folder, *t); }),
              HasSubstr("'<|none|>' is neither a number nor"));
  write_file(folder + "/genai_config.json", "no");
  EXPECT_THAT(error_of([&] { find_end_tokens({}, folder, *t); }),
              HasSubstr("genai_config.json: expected a JSON object"));
  EXPECT_THAT(error_of([&] { load_tokenizer(folder + "/none"); }), HasSubstr("/none: No such file"));
  EXPECT_THAT(error_of([&] { write_file(folder + "/none/x", ""); }), HasSubstr("/none/x"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace language_model
