// What a conversation is between two runs of the program, and its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model.h"

namespace language_model {

struct Conversation {
  std::vector<int32_t> tokens;  // all, of prompts and answers; the model has not seen the last ones yet
  uint64_t random = 0;          // what the sampler's next choices depend on
};

// Writes the conversation and the model's caches; the file is complete or absent. Throws std::runtime_error.
void save_conversation(const std::string& path, const Conversation& conversation, Model* model);
// Returns the conversation, and gives the model its caches. Throws std::runtime_error if the file is another bundle's,
// damaged, or no conversation.
Conversation restore_conversation(const std::string& path, Model* model);

}  // namespace language_model
