#include "graph/quantize_weights.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "graph/interpret_parts.h"
#include "graph/quantized.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kFewest = 1 << 12;  // elements
constexpr int kTableBits = 8;

// How the readers of a constant use it: along which of its dims products sum, and whether rows are taken of it.
struct Use {
  std::vector<char> sums;  // per dim; empty: no product reads it
  int block_dim = -1;      // of those, the one in which blocks lie
  bool is_table = false, is_other = false;
  std::string name;  // of the first reader
};

// The use of a constant as a contraction's weights, seen through `permutes`, the last first; nullopt if it is another.
std::optional<Use> use_as_weights(const Graph& graph, const Node& node, size_t operand,
                                  const std::vector<const Node*>& permutes) {
  if (!reads_weights(node, operand) || graph.dtype(node.inputs[1 - operand]) != DType::kF32)
    return std::nullopt;
  const Contraction& c = node.attributes.contraction;
  const std::vector<IndexExpr>&map = operand == 0 ? c.a : c.b, &other = operand == 0 ? c.b : c.a;
  Use use;
  use.sums.assign(map.size(), 0);
  // Blocks lie along the longest axis that is a dim of the other operand, too, and no part of a window if there is one.
  std::pair<bool, int64_t> longest{false, 0};
  for (size_t i = 0; i < c.axes.size(); ++i) {
    if (!c.axes[i].reduction || c.axes[i].extent == Dim(1)) continue;
    const IndexExpr axis = IndexExpr::axis(static_cast<int>(i));
    const auto dim = std::find(map.begin(), map.end(), axis);
    const auto uses = std::count_if(map.begin(), map.end(),
                                    [&](const IndexExpr& e) { return uses_axis(e, static_cast<int>(i)); });
    if (dim == map.end() || uses != 1) return std::nullopt;
    const auto d = static_cast<size_t>(dim - map.begin());
    use.sums[d] = 1;
    const std::pair rank{std::find(other.begin(), other.end(), axis) != other.end(),
                         c.axes[i].extent.estimate()};
    if (rank > longest) longest = rank, use.block_dim = static_cast<int>(d);
  }
  for (const Node* permute : permutes) {
    std::vector<char> sums(use.sums.size());
    auto before = [&](size_t d) { return static_cast<size_t>(permute->attributes.ints[d]); };
    for (size_t d = 0; d < sums.size(); ++d) sums[before(d)] = use.sums[d];
    use.sums = std::move(sums);
    use.block_dim = static_cast<int>(before(static_cast<size_t>(use.block_dim)));
  }
  return use;
}

// Per constant.
std::map<ValueId, Use> uses_of_constants(const Graph& graph) {
  std::map<ValueId, Use> uses;
  auto constant_of = [&](ValueId v, std::vector<const Node*>& permutes) {
    while (const Node* node = graph.def(v)) {
      if (node->op == OpKind::k_constant) return v;
      if (node->op != OpKind::k_permute) break;
      permutes.push_back(node);
      v = node->inputs[0];
    }
    return kNoValue;
  };
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::k_permute) continue;  // its readers count
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      std::vector<const Node*> permutes;
      const ValueId v = constant_of(node.inputs[i], permutes);
      if (v == kNoValue) continue;
      Use& use = uses[v];
      if (use.name.empty()) use.name = node.location.node;
      if (node.op == OpKind::k_take && i == 0 && permutes.empty() && node.attributes.ints[0] == 0) {
        use.is_table = true;
        continue;
      }
      std::optional<Use> weights = use_as_weights(graph, node, i, permutes);
      if (!weights || (!use.sums.empty() && use.sums != weights->sums)) {
        use.is_other = true;
      } else {
        use.sums = std::move(weights->sums);
        use.block_dim = weights->block_dim;
      }
    }
  }
  for (const Graph::Output& output : graph.outputs) {
    std::vector<const Node*> permutes;
    if (ValueId v = constant_of(output.value, permutes); v != kNoValue) uses[v].is_other = true;
  }
  return uses;
}

// Integers of `bits` bits and the scale of the least squared error for a block of floats. Returns the error's square.
double quantize_block(const std::vector<float>& x, int bits, std::vector<int8_t>& q, float& scale) {
  constexpr double kShares[] = {1, 0.95, 0.9, 0.85, 0.8, 0.75};
  const int low = -(1 << (bits - 1)), high = -low - 1;
  float largest = 0;
  double squares = 0;
  for (float value : x) {
    if (std::abs(value) > std::abs(largest)) largest = value;
    squares += static_cast<double>(value) * value;
  }
  q.assign(x.size(), 0);
  scale = 0;
  if (largest == 0) return 0;
  double best = 0;
  std::vector<int8_t> tried(x.size());
  auto attempt = [&](double step) {
    const auto inverse = static_cast<float>(1 / step);
    double products = 0, integers = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const int value = std::clamp(static_cast<int>(std::lrint(x[i] * inverse)), low, high);
      tried[i] = static_cast<int8_t>(value);
      products += static_cast<double>(x[i]) * value;
      integers += static_cast<double>(value) * value;
    }
    // The scale of the least error for these integers, and by how much it makes the error smaller.
    if (integers == 0 || products * products / integers <= best) return;
    best = products * products / integers;
    scale = static_cast<float>(products / integers);
    q.swap(tried);
  };
  attempt(static_cast<double>(largest) / -high);
  for (double share : kShares) attempt(largest * share / low);
  return std::max(0.0, squares - best);
}

struct QuantizedTensor {
  Tensor elements, scales;
  std::vector<int64_t> groups;
  double error = 0;
};

// `groups`: per dim, neighbours that share a scale.
QuantizedTensor quantized(const Tensor& data, std::vector<int64_t> groups, int bits) {
  const size_t rank = groups.size();
  std::vector<int64_t> blocks(rank), first(rank), within(rank);
  for (size_t d = 0; d < rank; ++d) blocks[d] = (data.dims[d] + groups[d] - 1) / groups[d];
  const std::vector<int64_t> strides = interpreter::row_major_strides(data.dims);
  // The next index of `extents`; false past the last one.
  auto advance = [](std::vector<int64_t>& index, const std::vector<int64_t>& extents) {
    for (size_t d = index.size(); d-- > 0; index[d] = 0)
      if (++index[d] < extents[d]) return true;
    return false;
  };
  const DType dtype = bits == 4 ? DType::kI4 : DType::kI8;
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, data.count())), 0);
  std::vector<float> scales, x;
  std::vector<int64_t> places, extents(rank);
  std::vector<int8_t> q;
  double changed = 0, all = 0;
  do {
    for (size_t d = 0; d < rank; ++d) extents[d] = std::min(groups[d], data.dims[d] - first[d] * groups[d]);
    places.clear(), x.clear();
    std::fill(within.begin(), within.end(), 0);
    do {
      int64_t place = 0;
      for (size_t d = 0; d < rank; ++d) place += (first[d] * groups[d] + within[d]) * strides[d];
      places.push_back(place);
      x.push_back(data.at<float>(place));
      all += static_cast<double>(x.back()) * x.back();
    } while (advance(within, extents));
    changed += quantize_block(x, bits, q, scales.emplace_back());
    for (size_t k = 0; k < places.size(); ++k) store_i64(dtype, bytes.data(), places[k], q[k]);
  } while (advance(first, blocks));
  QuantizedTensor result;
  result.elements = {dtype, data.dims, Bytes::own(std::move(bytes))};
  result.scales = f32_tensor(std::move(blocks), scales);
  result.groups = std::move(groups);
  result.error = all > 0 ? std::sqrt(changed / all) : 0;
  return result;
}

// Per dim, the neighbours that share a scale; empty: none do, as the constant has no use that quantised ones have.
std::vector<int64_t> groups_of(const Use& use, const std::vector<int64_t>& dims, int64_t block) {
  std::vector<int64_t> groups(dims.size(), 1);
  if (use.sums.empty()) {  // rows of a table, with a scale for each
    if (dims.size() != 2) return {};
    groups[1] = dims[1];
    return groups;
  }
  if (use.is_table && use.sums[0]) return {};
  for (size_t d = 0; d < dims.size(); ++d)
    if (use.sums[d]) groups[d] = block == 0 ? dims[d] : 1;
  const auto d = static_cast<size_t>(use.block_dim);
  if (block != 0) groups[d] = std::min(block, dims[d]);
  return groups;
}

bool is_finite(const Tensor& data) {
  for (int64_t i = 0; i < data.count(); ++i)
    if (!std::isfinite(data.at<float>(i))) return false;
  return true;
}

}  // namespace

Expected<std::vector<QuantizedLayer>> quantize_weights(Graph& graph, const WeightFormat& format,
                                                       const std::vector<std::string>& floats) {
  std::vector<char> matched(floats.size(), 0);
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < floats.size(); ++i)
      matched[i] |= fnmatch(floats[i].c_str(), node.location.node.c_str(), 0) == 0;
  for (size_t i = 0; i < floats.size(); ++i)
    if (!matched[i])
      return invalid_input("--float-weights: expected a pattern that names a node, found '" + floats[i] +
                           "'");
  auto stays = [&](const std::string& name) {
    return std::any_of(floats.begin(), floats.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
  };
  const std::map<ValueId, Use> uses = uses_of_constants(graph);
  std::vector<QuantizedLayer> layers;
  QUERNEL_TRY(graph, rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
                const auto use = uses.find(node.output);
                if (node.op != OpKind::k_constant || use == uses.end() || use->second.is_other)
                  return kNoValue;
                const Tensor& data = node.attributes.tensor;
                if (data.dtype != DType::kF32 || data.dims.size() < 2 || data.count() < kFewest ||
                    stays(use->second.name) || !is_finite(data))
                  return kNoValue;
                std::vector<int64_t> groups = groups_of(use->second, data.dims, format.block);
                if (groups.empty()) return kNoValue;
                const int bits = use->second.sums.empty() ? kTableBits : format.bits;
                QuantizedTensor q = quantized(data, std::move(groups), bits);
                layers.push_back({use->second.name, data.count(), bits, q.error});
                return r.build.dequantize(r.build.constant(std::move(q.elements)),
                                          r.build.constant(std::move(q.scales)), kNoValue,
                                          std::move(q.groups));
              }));
  return layers;
}

std::vector<std::string> about_layers(const std::vector<QuantizedLayer>& layers) {
  constexpr size_t kMostNamed = 8;
  if (layers.empty()) return {"no weights are large enough, or read by products alone, to be quantised"};
  auto percent = [](double share) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2g %%", 100 * share);
    return std::string(text);
  };
  double squares = 0;
  int64_t elements = 0;
  for (const QuantizedLayer& layer : layers) {
    squares += layer.error * layer.error;
    elements += layer.elements;
  }
  std::vector<QuantizedLayer> worst = layers;
  std::stable_sort(worst.begin(), worst.end(),
                   [](const QuantizedLayer& a, const QuantizedLayer& b) { return a.error > b.error; });
  std::string text = std::to_string(layers.size()) + " layers with " + std::to_string(elements) +
                     " weights are quantised, off by " +
                     percent(std::sqrt(squares / static_cast<double>(layers.size()))) +
                     " (root mean square); most, --json has all:";
  for (size_t i = 0; i < std::min(worst.size(), kMostNamed); ++i)
    text += (i == 0 ? " '" : ", '") + worst[i].name + "' " + percent(worst[i].error);
  return {text};
}

}  // namespace quernel
