#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "graph/passes/passes.h"
#include "graph/print_parts.h"
#include "graph/rewrite.h"
#include "support/mapped_file.h"

namespace quernel {
namespace {

bool is_commutative(OpKind op) {
  switch (op) {
    case OpKind::k_add:
    case OpKind::k_mul:
    case OpKind::k_and:
    case OpKind::k_or:
    case OpKind::k_xor:
    case OpKind::k_eq:
    case OpKind::k_ne:
      return true;
    default:
      return false;
  }
}

// What makes two nodes equal: op, operands, every attribute that the op uses (its text form has them all),
// result type.
std::string key_of(const Rewriter& r, const Node& node) {
  std::vector<ValueId> operands;
  for (ValueId v : node.inputs) operands.push_back(r(v));
  if (is_commutative(node.op)) std::sort(operands.begin(), operands.end());
  std::string key(to_string(node.op));
  for (ValueId v : operands) key += " " + std::to_string(v);
  return key + " " + attributes_text(node) + " " + type_text(r.old.type(node.output));
}

constexpr size_t kPrefix = 256;

// Constants with equal keys may still differ: the key covers the type and the first bytes, so that large
// weights are read in full only where another constant starts alike.
std::string key_of(const Tensor& tensor) {
  std::string key(to_string(tensor.dtype));
  for (int64_t d : tensor.dims) key += "," + std::to_string(d);
  size_t prefix = std::min<size_t>(tensor.bytes.size(), kPrefix);
  return key + ":" + std::string(reinterpret_cast<const char*>(tensor.bytes.data()), prefix);
}
bool same_data(const Tensor& a, const Tensor& b) {
  return a.bytes.size() == b.bytes.size() &&
         (a.bytes.data() == b.bytes.data() ||
          std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0);
}

class Merge {
 public:
  ValueId rule(Rewriter& r, const Node& node) {
    if (node.op == OpKind::k_constant) return merge_constant(r, node);
    if (is_control(node.op)) return r.copy(node);
    auto [it, fresh] = nodes_.try_emplace(key_of(r, node), kNoValue);
    if (fresh) it->second = r.copy(node);
    return it->second;
  }

 private:
  ValueId merge_constant(Rewriter& r, const Node& node) {
    const Bytes& bytes = node.attributes.tensor.bytes;
    std::vector<ValueId>& candidates = constants_[key_of(node.attributes.tensor)];
    release_pages(bytes.data(), std::min<size_t>(bytes.size(), kPrefix));
    for (ValueId v : candidates)
      if (same_data(*r.graph.constant(v), node.attributes.tensor)) return v;
    candidates.push_back(r.copy(node));
    return candidates.back();
  }

  std::unordered_map<std::string, ValueId> nodes_;
  std::unordered_map<std::string, std::vector<ValueId>> constants_;
};

}  // namespace

Expected<Graph> merge_common_subexpressions(const Graph& graph) {
  Merge merge;
  return rewrite(graph, [&](Rewriter& r, const Node& node) { return merge.rule(r, node); });
}

}  // namespace quernel
