// The loop of byte-pair encoding.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace language_model {

// What a pair of tokens becomes; the pair of the lowest order comes first.
struct Merge {
  double order;
  int32_t token;
};
using FindMerge = std::function<std::optional<Merge>(int32_t left, int32_t right)>;

// Merges the neighbours of the lowest order, of these the leftmost, until no neighbours merge. n log n.
std::vector<int32_t> merge_pairs(const std::vector<int32_t>& tokens, const FindMerge& find);

}  // namespace language_model
