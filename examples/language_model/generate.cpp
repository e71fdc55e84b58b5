// Continues a text with a compiled language model: the prompt in large pieces, then one token after another. Options:
// options.cpp.
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "conversation.h"
#include "end_tokens.h"
#include "model.h"
#include "options.h"
#include "sample.h"
#include "stream_text.h"
#include "tokenizer.h"

namespace language_model {
namespace {

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

void write_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void show_tokens(const char* what, const std::vector<int32_t>& tokens, size_t begin, size_t end) {
  std::fprintf(stderr, "%s", what);
  for (size_t i = begin; i < end; ++i) std::fprintf(stderr, " %d", tokens[i]);
  std::fprintf(stderr, "\n");
}

void show_speed(const char* what, size_t tokens, double time) {
  if (tokens > 0)
    std::fprintf(stderr, "%s %zu tokens in %.2f ms, %.1f tokens/s\n", what, tokens, time * 1e3,
                 tokens / time);
}

// The bytes of all tokens: what people have read so far.
std::string text_of(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i)
    text += tokenizer.bytes_of(tokens[i], i == 0 ? kNoToken : tokens[i - 1]);
  return text;
}

// Why a text ends.
enum class End { kTokens, kEndToken, kStop, kFull };

class Generation {
 public:
  explicit Generation(const Options& options)
      : options_(options),
        model_(options.bundle, options.threads, options.chunk),
        tokenizer_(load_tokenizer(options.tokenizer)),
        ends_(find_end_tokens(options.end_tokens, options.tokenizer, *tokenizer_)),
        stream_(options.stops, write_text) {
    if (!options.restore_state.empty()) conversation_ = restore_conversation(options.restore_state, &model_);
    sampler_.emplace(options.sampling, options.seed.value_or(conversation_.random));
  }

  void run() {
    const size_t old = tokens().size();
    if (options_.prompt.empty()) stream_.add(unfinished_character(text_of(*tokenizer_, tokens())));
    add_prompt();
    if (options_.echo) write_text(options_.prompt);
    const size_t prompt_end = tokens().size();
    const auto waiting = std::span<const int32_t>(tokens()).subspan(static_cast<size_t>(model_.position()));
    const double start = seconds();
    const std::span<const float> logits = model_.append(waiting);
    const double ready = seconds();
    const End end = continue_text(logits);
    const double done = seconds();
    stream_.finish();
    write_text("\n");
    if (options_.show_tokens) {
      show_tokens("prompt tokens:", tokens(), old, prompt_end);
      show_tokens("new tokens:", tokens(), prompt_end, tokens().size());
    }
    show_speed("prompt:", prompt_end - waiting_begin_, ready - start);
    show_speed("answer:", tokens().size() - prompt_end, done - ready);
    if (end == End::kFull)
      std::fprintf(
          stderr,
          "the context is full: the caches hold %lld positions, and the text ends here; for longer ones "
          "compile a bundle with longer caches\n",
          static_cast<long long>(model_.capacity()));
    conversation_.random = sampler_->random();
    if (!options_.save_state.empty()) save_conversation(options_.save_state, conversation_, &model_);
  }

 private:
  std::vector<int32_t>& tokens() { return conversation_.tokens; }

  // Appends the prompt's tokens. Throws unless the model can take all that it has not seen.
  void add_prompt() {
    const std::vector<int32_t> prompt = tokenizer_->encode(options_.prompt, tokens().empty());
    for (int32_t token : prompt)
      if (token >= model_.vocabulary())
        throw std::runtime_error("the prompt has token " + std::to_string(token) +
                                 ", the model has tokens up to " + std::to_string(model_.vocabulary() - 1) +
                                 ": this is another model's tokenizer");
    tokens().insert(tokens().end(), prompt.begin(), prompt.end());
    waiting_begin_ = static_cast<size_t>(model_.position());
    if (tokens().size() == waiting_begin_)
      throw std::runtime_error("expected a prompt (--prompt TEXT): there is nothing to continue");
    if (static_cast<int64_t>(tokens().size()) > model_.capacity())
      throw std::runtime_error("the prompt and what was before it have " + std::to_string(tokens().size()) +
                               " tokens, but the caches hold " + std::to_string(model_.capacity()) +
                               " positions; give a shorter prompt, or compile a bundle with longer caches");
  }

  End continue_text(std::span<const float> logits) {
    for (int64_t count = 0; count < options_.tokens; ++count) {
      const int32_t previous = tokens().back(), next = sampler_->sample(logits);
      tokens().push_back(next);
      if (ends_.contains(next)) return End::kEndToken;
      stream_.add(tokenizer_->bytes_of(next, previous));
      if (stream_.stopped()) return End::kStop;
      if (count + 1 == options_.tokens) break;
      if (model_.position() == model_.capacity()) return End::kFull;
      logits = model_.append(std::span<const int32_t>(&next, 1));
    }
    return End::kTokens;
  }

  const Options& options_;
  Model model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::set<int32_t> ends_;
  TextStream stream_;
  Conversation conversation_;
  std::optional<Sampler> sampler_;
  size_t waiting_begin_ = 0;  // of the tokens that the model has not seen
};

}  // namespace
}  // namespace language_model

int main(int argc, char** argv) {
  try {
    const language_model::Options options = language_model::parse_options(argc, argv);
    if (options.help) return std::fputs(language_model::kUsage, stdout) < 0 ? 2 : 0;
    language_model::Generation(options).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 2;
  }
}
