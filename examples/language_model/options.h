// The command line of `generate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sample.h"

namespace language_model {

struct Options {
  std::string bundle, tokenizer;
  std::string prompt;
  int64_t tokens = 256;  // at most
  SamplingOptions sampling;
  std::optional<uint64_t> seed;
  std::vector<std::string> stops, end_tokens;
  std::string save_state, restore_state;  // paths; empty: none
  uint32_t threads = 1;
  int64_t chunk = 0;  // of the prompt; 0: as large as the bundle takes
  bool echo = false, show_tokens = false, help = false;
};

extern const char* const kUsage;

// Throws std::runtime_error with what is wrong.
Options parse_options(int argc, char** argv);

}  // namespace language_model
