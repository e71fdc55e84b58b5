// Continues a text with a compiled language model, one byte after another, always the likeliest.
//
//   generate BUNDLE [--prompt TEXT] [--tokens N] [--chunk N] [--threads N]
//
// The bundle has two entry points that share the model's key and value caches as states: "prefill" takes the
// prompt, as many tokens at once as its symbol `length` allows (or --chunk says), "decode" takes one token.
// Prints the tokens as numbers and as text, then the speed of both. Exits with 2 when something fails.
#include <quernel/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

void require(qnl_status status, const qnl_error& error) {
  if (status != QNL_OK) throw std::runtime_error(error.text);
}

// One entry point of the model: tokens at their positions in, the likeliest next token out.
class Model {
 public:
  // The largest value that the bundle allows for `length` is the most tokens it takes at once; `share`: the
  // session whose states it uses too.
  Model(const quernel::Bundle& bundle, const quernel::Device& device, const char* entry, int64_t most,
        qnl_session* share)
      : most_(most) {
    qnl_session_options options = {};
    options.entry_point = entry;
    options.parent = share;
    options.share_state = share != nullptr ? 1 : 0;
    require(session_.create(bundle, device, &options, &error_), error_);
  }

  // All tokens, in pieces where there are many; `position`: of the first.
  int32_t run(const std::vector<int32_t>& tokens, int64_t position) {
    int32_t next = 0;
    for (size_t begin = 0; begin < tokens.size();) {
      const size_t count = std::min(tokens.size() - begin, static_cast<size_t>(most_));
      next = run_piece(tokens.data() + begin, count, position + static_cast<int64_t>(begin));
      begin += count;
    }
    return next;
  }

  qnl_session* session() const { return session_.get(); }

 private:
  int32_t run_piece(const int32_t* tokens, size_t count, int64_t position) {
    int64_t* in[2] = {input("tokens", count), input("positions", count)};
    for (size_t i = 0; i < count; ++i) {
      in[0][i] = tokens[i];
      in[1][i] = position + static_cast<int64_t>(i);
    }
    require(session_.run(&error_), error_);
    qnl_tensor logits = {};
    require(session_.tensor(QNL_OUTPUT, "logits", &logits, &error_), error_);
    const int64_t width = logits.shape[1];
    const float* last = static_cast<const float*>(logits.data) + (static_cast<int64_t>(count) - 1) * width;
    return static_cast<int32_t>(std::max_element(last, last + width) - last);
  }

  // The input's own memory, for `count` elements: filled in place, nothing is copied.
  int64_t* input(const char* name, size_t count) {
    qnl_tensor tensor = {};
    tensor.name = name;
    tensor.rank = 1;
    tensor.shape[0] = static_cast<int64_t>(count);
    require(session_.set_shape(tensor, &error_), error_);
    require(session_.tensor(QNL_INPUT, name, &tensor, &error_), error_);
    return static_cast<int64_t*>(tensor.data);
  }

  quernel::Session session_;
  qnl_error error_ = {};
  int64_t most_;
};

struct Options {
  const char* bundle = nullptr;
  std::string prompt = "The miller's wheel";
  int64_t tokens = 48, chunk = 0;
  uint32_t threads = 1;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--prompt" && has_value) {
      options.prompt = argv[++i];
    } else if (argument == "--tokens" && has_value) {
      options.tokens = std::atoll(argv[++i]);
    } else if (argument == "--chunk" && has_value) {
      options.chunk = std::atoll(argv[++i]);
    } else if (argument == "--threads" && has_value) {
      options.threads = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else if (argument.starts_with("--") || options.bundle != nullptr) {
      throw std::runtime_error("unexpected argument '" + argument + "'");
    } else {
      options.bundle = argv[i];
    }
  }
  if (options.bundle == nullptr || options.prompt.empty() || options.tokens < 1) {
    throw std::runtime_error("usage: generate BUNDLE [--prompt TEXT] [--tokens N] [--chunk N] [--threads N]");
  }
  return options;
}

// The largest value of the bundle's symbol `length`.
int64_t longest(const quernel::Bundle& bundle) {
  for (uint32_t i = 0; i < bundle.info().symbol_count; ++i) {
    qnl_symbol_info symbol = {};
    if (qnl_bundle_get_symbol(bundle.get(), i, &symbol) == QNL_OK && std::strcmp(symbol.name, "length") == 0)
      return symbol.max;
  }
  return 1;
}

void print(const char* what, const std::vector<int32_t>& tokens) {
  std::printf("%s", what);
  for (int32_t token : tokens) std::printf(" %d", token);
  std::printf("\n");
}

int run(const Options& options) {
  qnl_error error = {};
  quernel::Bundle bundle;
  quernel::Device device;
  require(bundle.open(options.bundle, nullptr, &error), error);
  require(device.open_cpu(options.threads, &error), error);
  const int64_t most = options.chunk > 0 ? std::min(options.chunk, longest(bundle)) : longest(bundle);
  Model prefill(bundle, device, "prefill", most, nullptr);
  Model decode(bundle, device, "decode", 1, prefill.session());

  std::vector<int32_t> prompt;
  for (char c : options.prompt) prompt.push_back(static_cast<uint8_t>(c));
  const double start = seconds();
  std::vector<int32_t> tokens{prefill.run(prompt, 0)};
  const double ready = seconds();
  std::vector<int32_t> token(1);
  for (int64_t position = static_cast<int64_t>(prompt.size());
       static_cast<int64_t>(tokens.size()) < options.tokens; ++position) {
    token[0] = tokens.back();
    tokens.push_back(decode.run(token, position));
  }
  const double end = seconds();

  print("prompt   ", prompt);
  print("tokens   ", tokens);
  std::printf("text      %s|", options.prompt.c_str());
  for (int32_t t : tokens) std::printf("%c", t >= 32 && t < 127 ? t : '.');
  std::printf("\nprefill   %zu tokens in %.2f ms\n", prompt.size(), (ready - start) * 1e3);
  if (tokens.size() > 1)
    std::printf("decode    %.0f tokens/s\n", static_cast<double>(tokens.size() - 1) / (end - ready));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 2;
  }
}
