#include "merge_pairs.h"

#include <queue>
#include <tuple>

namespace language_model {
namespace {

constexpr size_t kNone = ~size_t{0};

struct Node {
  int32_t token;
  size_t before, after;
  bool dead = false;
};

struct Candidate {
  Merge merge;
  size_t at;            // of the left node
  int32_t left, right;  // the candidate is void when the nodes hold others
  bool operator>(const Candidate& other) const {
    return std::tie(merge.order, at) > std::tie(other.merge.order, other.at);
  }
};

}  // namespace

std::vector<int32_t> merge_pairs(const std::vector<int32_t>& tokens, const FindMerge& find) {
  std::vector<Node> nodes;
  for (size_t i = 0; i < tokens.size(); ++i)
    nodes.push_back({tokens[i], i == 0 ? kNone : i - 1, i + 1 == tokens.size() ? kNone : i + 1});
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](size_t at) {
    if (at == kNone || nodes[at].after == kNone) return;
    const int32_t left = nodes[at].token, right = nodes[nodes[at].after].token;
    if (const std::optional<Merge> merge = find(left, right)) queue.push({*merge, at, left, right});
  };
  for (size_t i = 0; i < nodes.size(); ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = nodes[best.at];
    if (left.dead || left.token != best.left || left.after == kNone) continue;
    Node& right = nodes[left.after];
    if (right.token != best.right) continue;
    left.token = best.merge.token;
    left.after = right.after;
    right.dead = true;
    if (left.after != kNone) nodes[left.after].before = best.at;
    consider(left.before);
    consider(best.at);
  }
  std::vector<int32_t> merged;
  for (size_t i = nodes.empty() ? kNone : 0; i != kNone; i = nodes[i].after) merged.push_back(nodes[i].token);
  return merged;
}

}  // namespace language_model
