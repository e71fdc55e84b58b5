// The choice of the next token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace language_model {

struct SamplingOptions {
  double temperature = 0;  // 0: always the likeliest
  int64_t top_k = 0;       // only among the k likeliest; 0: among all
  double top_p = 1;        // only among the likeliest that together have this probability
};

class Sampler {
 public:
  // The same seed gives the same choices for the same logits.
  Sampler(const SamplingOptions& options, uint64_t seed) : options_(options), random_(seed) {}

  // Of equal logits the first is the likeliest. Throws std::runtime_error where one is not a number.
  int32_t sample(std::span<const float> logits);

  // What the next choices depend on.
  uint64_t random() const { return random_; }

 private:
  struct Choice {
    int32_t token;
    double weight;
  };
  static bool is_likelier(const Choice& a, const Choice& b);
  void keep_most_likely();
  void keep_probable();
  double next_uniform();

  SamplingOptions options_;
  uint64_t random_;
  std::vector<Choice> choices_;
};

}  // namespace language_model
