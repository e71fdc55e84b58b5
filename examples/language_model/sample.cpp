#include "sample.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace language_model {

// splitmix64: 53 of its bits, in [0, 1).
double Sampler::next_uniform() {
  uint64_t z = random_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

bool Sampler::is_likelier(const Choice& a, const Choice& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

int32_t Sampler::sample(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]))
      throw std::runtime_error("the model's logit of token " + std::to_string(i) + " is not a number");
    if (logits[i] > logits[best]) best = i;
  }
  if (options_.temperature == 0 || std::isinf(logits[best])) return static_cast<int32_t>(best);

  choices_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    choices_.push_back({static_cast<int32_t>(i),
                        std::exp((static_cast<double>(logits[i]) - logits[best]) / options_.temperature)});
  keep_most_likely();
  keep_probable();
  double sum = 0;
  for (const Choice& choice : choices_) sum += choice.weight;
  double left = next_uniform() * sum;
  for (const Choice& choice : choices_)
    if ((left -= choice.weight) < 0) return choice.token;
  return choices_.back().token;
}

// The top_k likeliest, in the order of tokens.
void Sampler::keep_most_likely() {
  if (options_.top_k == 0 || static_cast<size_t>(options_.top_k) >= choices_.size()) return;
  const auto end = choices_.begin() + options_.top_k;
  std::nth_element(choices_.begin(), end, choices_.end(), is_likelier);
  choices_.erase(end, choices_.end());
  std::sort(choices_.begin(), choices_.end(),
            [](const Choice& a, const Choice& b) { return a.token < b.token; });
}

// The likeliest until they have top_p of the probability, the likeliest last. A heap: few of many are taken.
void Sampler::keep_probable() {
  if (options_.top_p >= 1) return;
  double sum = 0, taken = 0;
  for (const Choice& choice : choices_) sum += choice.weight;
  const auto is_less_likely = [](const Choice& a, const Choice& b) { return is_likelier(b, a); };
  std::make_heap(choices_.begin(), choices_.end(), is_less_likely);
  auto rest = choices_.end();
  do {
    std::pop_heap(choices_.begin(), rest, is_less_likely);
    taken += (--rest)->weight;
  } while (rest != choices_.begin() && taken < options_.top_p * sum);
  choices_.erase(choices_.begin(), rest);
}

}  // namespace language_model
