// What lies between two 8-bit integers runs on bytes. A chain of elementwise nodes from one to the other is a
// table of its 256 results, which the interpreter computes, so all targets give the same bytes. Movement, cats
// and maxima in the middle of such a chain move the bytes:
//   g(move(f(x))) -> table(move(x)),  table[b] = g(f(b))
// A table that changes nothing disappears: the quantiser behind a pool, with the parameters of the one before it.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// The least nodes of wider types in a chain that a table replaces where nothing moves: a vector of bytes takes
// about as many instructions to look up as such a chain has for the few elements of a vector of words.
constexpr int kFewestWide = 4;
// Bounds that keep the work linear in the graph's size: nodes between a value and the beginning of its chain,
// nodes that move a value, nodes that move a constant.
constexpr int kDeepest = 128;
constexpr size_t kLongestPath = 16;
constexpr int kMostMoves = 8;

// The one element of a known value, wherever it was moved; nullopt if it has several, or is not known.
std::optional<Tensor> uniform_element(const Graph& graph, ValueId v) {
  for (int i = 0; i < kMostMoves; ++i) {
    const Node* node = graph.def(v);
    if (node == nullptr ||
        (node->op != OpKind::k_permute && node->op != OpKind::k_reshape && node->op != OpKind::k_expand &&
         node->op != OpKind::k_slice && node->op != OpKind::k_flip))
      break;
    v = node->inputs[0];
  }
  return uniform_operand(graph, v);
}

class BytePaths {
 public:
  explicit BytePaths(Rewriter& r) : r_(r), g_(r.old), chains_(g_.values.size()) {
    for (size_t v = 0; v < chains_.size(); ++v) chains_[v].root = static_cast<ValueId>(v);
    for (const Node& node : g_.nodes)
      if (is_elementwise(node.op)) follow(node);
  }

  // The value that replaces the node's output; kNoValue: none.
  ValueId replace(const Node& node) {
    if (!is_elementwise(node.op) || !is_byte(g_.dtype(node.output))) return kNoValue;
    const Chain& chain = chains_[node.output];
    if (chain.root == node.output || chain.wide == 0) return kNoValue;
    if (!is_byte(g_.dtype(chain.root))) return moved(node);
    std::optional<Tensor> table = results(node.output);
    if (!table) return kNoValue;
    bool identity = is_identity(*table, g_.dtype(chain.root));
    return identity || chain.wide >= kFewestWide ? look_up(*table, r_(chain.root), identity) : kNoValue;
  }

 private:
  // How a value is computed element by element: from `root` alone, which is an 8-bit value if there is one.
  struct Chain {
    ValueId root = kNoValue;
    int wide = 0;   // nodes of wider types on the way, shared ones once for each reader
    int depth = 0;  // the most nodes one after the other
  };

  // The chain as a reader of `v` continues it: from the bytes of `v` where these begin none themselves.
  Chain continued(ValueId v) const {
    const Chain& chain = chains_[v];
    bool begins = is_byte(g_.dtype(v)) && !is_byte(g_.dtype(chain.root));
    return begins ? Chain{v, 0, 0} : chain;
  }

  void follow(const Node& node) {
    Chain chain;
    for (ValueId v : node.inputs) {
      if (uniform_element(g_, v)) continue;
      const Chain operand = continued(v);
      if (chain.root != kNoValue && chain.root != operand.root) return;
      chain.root = operand.root;
      chain.wide = std::min(chain.wide + operand.wide, kFewestWide);
      chain.depth = std::max(chain.depth, operand.depth);
    }
    if (chain.root == kNoValue || ++chain.depth > kDeepest ||
        !(g_.shape(chain.root) == g_.shape(node.output)))
      return;
    if (!is_byte(g_.dtype(node.output))) ++chain.wide;
    chains_[node.output] = chain;
  }

  static Tensor all_bytes(DType dtype) {
    std::vector<uint8_t> bytes(256);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
    return Tensor{dtype, {256}, Bytes::own(std::move(bytes))};
  }
  // The byte after which no other comes in the order of the dtype, or before.
  static size_t extreme_byte(DType dtype, bool lowest) {
    return dtype == DType::kU8 ? (lowest ? 0 : 255) : (lowest ? 128 : 127);
  }

  // The values of `v` for all bytes that its chain may begin with; nullopt if the interpreter cannot tell.
  std::optional<Tensor> results(ValueId v) {
    const ValueId root = continued(v).root;
    known_.try_emplace(root, all_bytes(g_.dtype(root)));
    return results(v, known_);
  }
  // The values of `v` if the root of its chain has those of `of_root`.
  std::optional<Tensor> results(ValueId v, const Tensor& of_root) const {
    std::map<ValueId, Tensor> known{{chains_[v].root, of_root}};
    return results(v, known);
  }
  std::optional<Tensor> results(ValueId v, std::map<ValueId, Tensor>& known) const {
    if (auto found = known.find(v); found != known.end()) return found->second;
    if (std::optional<Tensor> uniform = uniform_element(g_, v)) return uniform;
    const Node& node = *g_.def(v);
    std::vector<Tensor> operands;
    for (ValueId operand : node.inputs) {
      std::optional<Tensor> tensor = results(operand, known);
      if (!tensor) return std::nullopt;
      operands.push_back(std::move(*tensor));
    }
    Expected<Tensor> computed = evaluate_node(node.op, operands, node.attributes);
    if (!computed) return std::nullopt;
    return known.emplace(v, std::move(*computed)).first->second;
  }

  // Whether a table, of `from`'s bytes, changes none of them.
  static bool is_identity(const Tensor& table, DType from) {
    if (table.dtype != from) return false;
    for (size_t i = 0; i < 256; ++i)
      if (table.bytes.data()[i] != i) return false;
    return true;
  }
  ValueId look_up(const Tensor& table, ValueId bytes, bool identity) {
    if (identity) return bytes;
    if (r_.graph.dtype(bytes) != DType::kU8) {
      Attributes unsigned_bits;
      unsigned_bits.dtype = DType::kU8;
      bytes = r_.build.add(OpKind::k_bitcast, {bytes}, unsigned_bits);
    }
    return r_.build.take(r_.build.constant(table), bytes, 0);
  }

  // ---- movement in the middle of a chain

  // Nodes from the first reader of bytes' chains to the root of the last chain, the last one first.
  std::vector<const Node*> path_to(ValueId root) const {
    std::vector<const Node*> path;
    for (const Node* node = g_.def(root); node != nullptr; node = g_.def(node->inputs[0])) {
      bool extreme = node->op == OpKind::k_reduce_max || node->op == OpKind::k_reduce_min;
      if (node->op != OpKind::k_cat && !is_movement(node->op) && !extreme) break;
      path.push_back(node);
      if (path.size() > kLongestPath) return {};
      if (node->op == OpKind::k_cat || is_byte(g_.dtype(continued(node->inputs[0]).root))) break;
    }
    return path;
  }

  ValueId moved(const Node& last) {
    const ValueId root = chains_[last.output].root;
    std::vector<const Node*> path = path_to(root);
    if (path.empty()) return kNoValue;
    if (path.back()->op == OpKind::k_cat) return path.size() == 1 ? cat_of_bytes(last, *path[0]) : kNoValue;
    const ValueId first = path.back()->inputs[0];
    const Chain chain = continued(first);
    const DType dtype = g_.dtype(chain.root);
    if (!is_byte(dtype) || chain.root == first) return kNoValue;
    std::optional<Tensor> values = results(first);
    std::optional<Tensor> table = values ? results(last.output, *values) : std::nullopt;
    if (!table) return kNoValue;
    std::vector<double> fills;
    for (const Node* node : path) {
      std::optional<double> fill = byte_fill(last, *node, path, *values, *table, dtype);
      bool extreme = node->op == OpKind::k_reduce_max || node->op == OpKind::k_reduce_min;
      if (!fill || (extreme && !rises(*values, dtype))) return kNoValue;
      fills.push_back(*fill);
    }
    ValueId bytes = r_(chain.root);
    for (size_t i = path.size(); i-- > 0;) {
      Attributes attributes = path[i]->attributes;
      attributes.fill = fills[i];
      bytes = r_.build.add(path[i]->op, {bytes}, std::move(attributes));
    }
    return look_up(*table, bytes, is_identity(*table, dtype));
  }

  // The cat of the operands' tables.
  ValueId cat_of_bytes(const Node& last, const Node& cat) {
    std::vector<ValueId> operands;
    for (ValueId v : cat.inputs) {
      const Chain chain = continued(v);
      const DType dtype = g_.dtype(chain.root);
      if (!is_byte(dtype) || chain.root == v) return kNoValue;
      std::optional<Tensor> values = results(v);
      std::optional<Tensor> table = values ? results(last.output, *values) : std::nullopt;
      if (!table) return kNoValue;
      operands.push_back(look_up(*table, r_(chain.root), is_identity(*table, dtype)));
    }
    return r_.build.add(OpKind::k_cat, std::move(operands), cat.attributes);
  }

  // Whether larger bytes never have smaller values.
  static bool rises(const Tensor& values, DType dtype) {
    const size_t lowest = extreme_byte(dtype, true);
    for (size_t i = 1; i < 256; ++i) {
      auto at = [&](size_t k) { return element_as_f64(values, static_cast<int64_t>((lowest + k) % 256)); };
      if (!(at(i - 1) <= at(i))) return false;
    }
    return true;
  }

  // The byte, as a number, that a node fills with in place of its number; 0 if it does not fill. nullopt if no
  // byte gives the same results.
  std::optional<double> byte_fill(const Node& last, const Node& node, const std::vector<const Node*>& path,
                                  const Tensor& values, const Tensor& table, DType dtype) const {
    bool constant = node.op == OpKind::k_pad && node.attributes.mode == PadMode::kConstant;
    if (!constant && !(node.op == OpKind::k_view && !node.attributes.map.guards.empty())) return 0;
    const double fill = node.attributes.fill;
    auto number = [&](size_t byte) {
      return dtype == DType::kI8 ? static_cast<double>(static_cast<int8_t>(byte)) : static_cast<double>(byte);
    };
    for (size_t byte = 0; byte < 256; ++byte)
      if (element_as_f64(values, static_cast<int64_t>(byte)) == fill) return number(byte);
    // Beyond all values: what no extreme takes. It must still give what the number itself does, if all of a
    // window is padding.
    const OpKind extreme = fill < 0 ? OpKind::k_reduce_max : OpKind::k_reduce_min;
    bool compared =
        std::any_of(path.begin(), path.end(), [&](const Node* n) { return n->op == extreme; }) &&
        std::none_of(path.begin(), path.end(), [&](const Node* n) {
          return (n->op == OpKind::k_reduce_max || n->op == OpKind::k_reduce_min) && n->op != extreme;
        });
    if (!compared || !std::isinf(fill)) return std::nullopt;
    const size_t byte = extreme_byte(dtype, fill < 0);
    const DType of_values = values.dtype;
    std::optional<Tensor> filled = results(last.output, scalar_tensor(of_values, fill));
    if (!filled || element_as_f64(*filled, 0) != element_as_f64(table, static_cast<int64_t>(byte)))
      return std::nullopt;
    return number(byte);
  }

  Rewriter& r_;
  const Graph& g_;
  std::vector<Chain> chains_;        // per value
  std::map<ValueId, Tensor> known_;  // results for all bytes
};

}  // namespace

Expected<Graph> form_byte_tables(const Graph& graph) {
  std::optional<BytePaths> paths;
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (!paths) paths.emplace(r);
    return paths->replace(node);
  });
}

}  // namespace quernel
