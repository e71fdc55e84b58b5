#include "options.h"

#include <charconv>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>

#include "read_file.h"

namespace language_model {

const char* const kUsage =
    R"(Continues a text with a compiled language model.
usage: generate BUNDLE --tokenizer FILE [options]

  --tokenizer FILE     tokenizer.json of byte-level BPE or the folder it is in, tokenizer.bin of a llama2.c checkpoint,
                       or the word bytes: every byte is a token
  --prompt TEXT        what to continue
  --prompt-file FILE   the same from a file; - is standard input
  --tokens N           at most so many new tokens (default: 256)
  --temperature T      0: always the likeliest token; 1: as likely as the model says (default: 0)
  --top-k K            only among the K likeliest tokens
  --top-p P            only among the likeliest tokens that together have the probability P
  --seed N             the same seed gives the same text (default: 0)
  --stop TEXT          end before this text; may be repeated
  --end-token T        end at this token, a number or what the vocabulary calls it; may be repeated
                       (default: what genai_config.json or the tokenizer names)
  --save-state FILE    keep the conversation
  --restore-state FILE go on with it; --prompt then says what comes next
  --echo               print the prompt, too
  --threads N          (default: 1)
  --chunk N            at most so many tokens of the prompt at once
  --show-tokens        print the tokens as numbers
The text goes to standard output, all else to standard error. Exit status: 0, or 2 when something fails.
)";

namespace {

template <typename T>
T number(const std::string& option, const std::string& text, T least, T most) {
  T value = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) {
    std::string range = "from " + std::to_string(least) +
                        (most < std::numeric_limits<T>::max() ? " to " + std::to_string(most) : " on");
    throw std::runtime_error(option + ": expected a number " + range + ", found '" + text + "'");
  }
  return value;
}

std::string read_prompt(const std::string& path) {
  if (path != "-") return read_file(path);
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  using Set = std::function<void(const std::string& option, const std::string& value)>;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::map<std::string, Set> with_value = {
      {"--tokenizer", [&](auto&, auto& v) { o.tokenizer = v; }},
      {"--prompt", [&](auto&, auto& v) { o.prompt = v; }},
      {"--prompt-file", [&](auto&, auto& v) { o.prompt = read_prompt(v); }},
      {"--tokens", [&](auto& n, auto& v) { o.tokens = number<int64_t>(n, v, 0, kMost); }},
      {"--temperature", [&](auto& n, auto& v) { o.sampling.temperature = number<double>(n, v, 0, 1000); }},
      {"--top-k", [&](auto& n, auto& v) { o.sampling.top_k = number<int64_t>(n, v, 0, kMost); }},
      {"--top-p", [&](auto& n, auto& v) { o.sampling.top_p = number<double>(n, v, 0, 1); }},
      {"--seed",
       [&](auto& n, auto& v) { o.seed = number<uint64_t>(n, v, 0, std::numeric_limits<uint64_t>::max()); }},
      {"--stop", [&](auto&, auto& v) { o.stops.push_back(v); }},
      {"--end-token", [&](auto&, auto& v) { o.end_tokens.push_back(v); }},
      {"--save-state", [&](auto&, auto& v) { o.save_state = v; }},
      {"--restore-state", [&](auto&, auto& v) { o.restore_state = v; }},
      {"--threads", [&](auto& n, auto& v) { o.threads = number<uint32_t>(n, v, 1, 256); }},
      {"--chunk", [&](auto& n, auto& v) { o.chunk = number<int64_t>(n, v, 1, kMost); }},
  };
  const std::map<std::string, bool*> flags = {
      {"--echo", &o.echo}, {"--show-tokens", &o.show_tokens}, {"--help", &o.help}, {"-h", &o.help}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (const auto set = with_value.find(argument); set != with_value.end()) {
      if (i + 1 == argc) throw std::runtime_error(argument + ": expected a value behind it");
      set->second(argument, argv[++i]);
    } else if (const auto flag = flags.find(argument); flag != flags.end()) {
      *flag->second = true;
    } else if (argument.starts_with("-") || !o.bundle.empty()) {
      throw std::runtime_error("unexpected argument '" + argument + "'; generate --help lists the options");
    } else {
      o.bundle = argument;
    }
  }
  if (o.help) return o;
  if (o.bundle.empty() || o.tokenizer.empty())
    throw std::runtime_error("expected a bundle and --tokenizer FILE; generate --help lists the options");
  for (const std::string& stop : o.stops)
    if (stop.empty()) throw std::runtime_error("--stop: expected a text, found an empty one");
  return o;
}

}  // namespace language_model
