#include "graph/quantize_weights.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kFewest = 1 << 12;  // elements
constexpr int kTableBits = 8;

// How the readers of a constant use it: along which dim products sum, and whether rows are taken of it.
struct Use {
  int sum_dim = -1;
  bool is_table = false, is_other = false;
  std::string name;  // of the first reader
};

// The dim of the constant that a product of matrices sums over, seen through `permutes`, the last first; -1 if the
// contraction is none.
int sum_dim_of(const Graph& graph, const Node& node, size_t operand,
               const std::vector<const Node*>& permutes) {
  const Contraction& c = node.attributes.contraction;
  if (c.accumulator != DType::kF32 || graph.dtype(node.inputs[1 - operand]) != DType::kF32) return -1;
  int axis = -1;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    if (!c.axes[i].reduction || c.axes[i].extent == Dim(1)) continue;
    if (axis >= 0) return -1;
    axis = static_cast<int>(i);
  }
  const std::vector<IndexExpr>& map = operand == 0 ? c.a : c.b;
  int dim = -1;
  for (size_t d = 0; d < map.size(); ++d)
    if (axis >= 0 && uses_axis(map[d], axis)) {
      if (dim >= 0 || !(map[d] == IndexExpr::axis(axis))) return -1;
      dim = static_cast<int>(d);
    }
  for (const Node* permute : permutes)
    if (dim >= 0) dim = static_cast<int>(permute->attributes.ints[static_cast<size_t>(dim)]);
  return dim;
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
      const int dim = node.op == OpKind::k_contract ? sum_dim_of(graph, node, i, permutes) : -1;
      if (dim < 0 || (use.sum_dim >= 0 && use.sum_dim != dim)) use.is_other = true;
      use.sum_dim = dim;
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

QuantizedTensor quantized(const Tensor& data, int dim, int bits, int64_t block) {
  QuantizedTensor result;
  const auto along = static_cast<size_t>(dim);
  const int64_t extent = data.dims[along];
  block = block == 0 ? extent : std::min(block, extent);
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < data.dims.size(); ++d) {
    result.groups.push_back(d == along ? block : 1);
    if (d != along) (d < along ? outer : inner) *= data.dims[d];
  }
  const int64_t blocks = (extent + block - 1) / block;
  std::vector<int64_t> dims = data.dims;
  dims[along] = blocks;
  const DType dtype = bits == 4 ? DType::kI4 : DType::kI8;
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, data.count())), 0);
  std::vector<float> scales(static_cast<size_t>(outer * blocks * inner)), x;
  std::vector<int8_t> q;
  double changed = 0, all = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t first = (o * extent + b * block) * inner + i,
                      count = std::min(block, extent - b * block);
        x.resize(static_cast<size_t>(count));
        for (int64_t k = 0; k < count; ++k) {
          x[static_cast<size_t>(k)] = data.at<float>(first + k * inner);
          all += static_cast<double>(x[static_cast<size_t>(k)]) * x[static_cast<size_t>(k)];
        }
        changed += quantize_block(x, bits, q, scales[static_cast<size_t>((o * blocks + b) * inner + i)]);
        for (int64_t k = 0; k < count; ++k)
          store_i64(dtype, bytes.data(), first + k * inner, q[static_cast<size_t>(k)]);
      }
  result.elements = {dtype, data.dims, Bytes::own(std::move(bytes))};
  result.scales = f32_tensor(std::move(dims), scales);
  result.error = all > 0 ? std::sqrt(changed / all) : 0;
  return result;
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
  QUERNEL_TRY(
      graph, rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
        const auto use = uses.find(node.output);
        if (node.op != OpKind::k_constant || use == uses.end() || use->second.is_other) return kNoValue;
        const Tensor& data = node.attributes.tensor;
        if (data.dtype != DType::kF32 || data.dims.size() < 2 || data.count() < kFewest ||
            stays(use->second.name) || !is_finite(data))
          return kNoValue;
        const bool sums = use->second.sum_dim >= 0;
        if (use->second.is_table && (sums ? use->second.sum_dim == 0 : data.dims.size() != 2))
          return kNoValue;
        const int bits = sums ? format.bits : kTableBits;
        QuantizedTensor q = quantized(data, sums ? use->second.sum_dim : 1, bits, sums ? format.block : 0);
        layers.push_back({use->second.name, data.count(), bits, q.error});
        return r.build.dequantize(r.build.constant(std::move(q.elements)),
                                  r.build.constant(std::move(q.scales)), kNoValue, std::move(q.groups));
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
