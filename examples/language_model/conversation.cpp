#include "conversation.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "read_file.h"

namespace language_model {
namespace {

// The file: this line, the tokens as i32, the model's state.
constexpr const char* kLine =
    "quernel conversation 1 bundle %016" PRIx64 " tokens %zu filled %zu random %016" PRIx64 "\n";

std::string line_of(uint64_t bundle, size_t tokens, size_t filled, uint64_t random) {
  char text[160];
  std::snprintf(text, sizeof text, kLine, bundle, tokens, filled, random);
  return text;
}

}  // namespace

void save_conversation(const std::string& path, const Conversation& conversation, Model* model) {
  std::string file = line_of(model->bundle_hash(), conversation.tokens.size(),
                             static_cast<size_t>(model->position()), conversation.random);
  file.append(reinterpret_cast<const char*>(conversation.tokens.data()),
              conversation.tokens.size() * sizeof(int32_t));
  write_file(path, file + model->save_state());
}

Conversation restore_conversation(const std::string& path, Model* model) {
  const std::string file = read_file(path);
  uint64_t bundle = 0;
  size_t tokens = 0, filled = 0;
  Conversation conversation;
  if (std::sscanf(file.c_str(),
                  "quernel conversation 1 bundle %" SCNx64 " tokens %zu filled %zu random %" SCNx64, &bundle,
                  &tokens, &filled, &conversation.random) != 4)
    throw std::runtime_error(path + ": expected a conversation that --save-state wrote");
  if (bundle != model->bundle_hash())
    throw std::runtime_error(
        path + ": this conversation was kept with another bundle; its caches do not fit this one");
  const auto damaged = [&] {
    return std::runtime_error(path + ": the conversation is damaged or cut short");
  };
  const std::string line = line_of(bundle, tokens, filled, conversation.random);
  const uint64_t state = model->state_bytes();
  if (tokens > file.size() || filled > tokens || filled > static_cast<size_t>(model->capacity()) ||
      file.size() != line.size() + tokens * sizeof(int32_t) + state)
    throw damaged();
  conversation.tokens.resize(tokens);
  std::memcpy(conversation.tokens.data(), file.data() + line.size(), tokens * sizeof(int32_t));
  for (int32_t token : conversation.tokens)
    if (token < 0 || token >= model->vocabulary()) throw damaged();
  model->restore_state(std::string_view(file).substr(file.size() - state), static_cast<int64_t>(filled));
  return conversation;
}

}  // namespace language_model
