#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/control.h"
#include "graph/interpret_parts.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"
#include "support/mapped_file.h"

namespace quernel {
namespace {

constexpr int64_t kFewest = 1 << 12;         // elements that are worth a conversion wherever they are read
constexpr double kLargestF16 = 65504 / 4.0;  // Winograd's algorithm adds up to 2.25 of them

// The constant in `storage`, or nullopt where it is not of f32, too small, or has elements out of range.
std::optional<Tensor> narrowed(const Tensor* data, DType storage) {
  if (!data || data->dtype != DType::kF32 || data->count() < kFewest) return std::nullopt;
  constexpr int64_t kChunk = 4096;
  std::vector<double> chunk(kChunk);
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(storage, data->count())));
  for (int64_t first = 0; first < data->count(); first += kChunk) {
    int64_t n = std::min(kChunk, data->count() - first);
    interpreter::load(*data, first, n, chunk.data());
    auto too_large = [](double v) { return std::isfinite(v) && std::abs(v) > kLargestF16; };
    if (storage == DType::kF16 && std::any_of(chunk.begin(), chunk.begin() + n, too_large))
      return std::nullopt;
    interpreter::store(storage, bytes.data(), first, n, chunk.data());
  }
  release_pages(data->bytes.data(), data->bytes.size());
  return Tensor{storage, data->dims, Bytes::own(std::move(bytes))};
}

// Adds up squares: of what rounding changes, and of all.
void add_squares(const Graph& graph, DType storage, double* changed, double* all) {
  for (const Node& node : graph.nodes) {
    if (is_control(node.op))
      for (const Graph& body : node.attributes.control->bodies) add_squares(body, storage, changed, all);
    const Tensor* data = graph.constant(node.output);
    std::optional<Tensor> narrow = narrowed(data, storage);
    if (!narrow) continue;
    for (int64_t i = 0; i < data->count(); ++i) {
      double value = data->at<float>(i);
      uint16_t bits = narrow->at<uint16_t>(i);
      double rounded = storage == DType::kF16 ? f16_bits_to_f32(bits) : bf16_bits_to_f32(bits);
      if (!std::isfinite(value)) continue;
      *changed += (rounded - value) * (rounded - value);
      *all += value * value;
    }
    release_pages(data->bytes.data(), data->bytes.size());
  }
}

// Whether the node reads its operand `i` as well where that is narrow. Winograd's algorithm adds to the
// rounding errors of weights, which is too much for those of bf16.
bool reads_narrow(const Graph& graph, const Node& node, size_t i, DType storage) {
  if (node.op == OpKind::k_take) return i == 0;
  if (node.op != OpKind::k_contract) return false;
  const Node* other = graph.def(node.inputs[1 - i]);
  bool winograd =
      node.attributes.contraction.winograd != 0 || (other && other->op == OpKind::k_winograd_input);
  return graph.dtype(node.inputs[1 - i]) == DType::kF32 && (storage == DType::kF16 || !winograd);
}

// Constants that somebody needs as they are.
std::unordered_set<ValueId> needed_wide(const Graph& graph, DType storage) {
  std::unordered_set<ValueId> needed;
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!reads_narrow(graph, node, i, storage)) needed.insert(node.inputs[i]);
  for (const Graph::Output& output : graph.outputs) needed.insert(output.value);
  return needed;
}

}  // namespace

Expected<Graph> narrow_weights(const Graph& graph, DType storage) {
  if (storage == DType::kF32) return graph;
  const std::unordered_set<ValueId> wide = needed_wide(graph, storage);
  std::unordered_map<ValueId, ValueId> known;  // constants of the old graph: the narrow ones of the new
  auto narrow = [&](Rewriter& r, ValueId v) -> ValueId {
    if (wide.count(v)) return kNoValue;
    if (auto it = known.find(v); it != known.end()) return it->second;
    std::optional<Tensor> data = narrowed(r.old.constant(v), storage);
    return known.emplace(v, data ? r.build.constant(std::move(*data)) : kNoValue).first->second;
  };
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.op == OpKind::k_take) {
      ValueId table = narrow(r, node.inputs[0]);
      if (table == kNoValue) return kNoValue;
      return r.build.cast(r.build.take(table, r(node.inputs[1]), node.attributes.ints[0]), DType::kF32);
    }
    if (node.op != OpKind::k_contract) return kNoValue;
    for (size_t i : {1, 0}) {
      if (!reads_narrow(r.old, node, i, storage)) continue;
      ValueId weights = narrow(r, node.inputs[i]);
      if (weights == kNoValue) continue;
      ValueId other = r(node.inputs[1 - i]);
      return i == 1 ? r.build.contract(other, weights, node.attributes.contraction)
                    : r.build.contract(weights, other, node.attributes.contraction);
    }
    return kNoValue;
  });
}

double rounding_error(const std::vector<Graph>& graphs, DType storage) {
  double changed = 0, all = 0;
  for (const Graph& graph : graphs) add_squares(graph, storage, &changed, &all);
  return all > 0 ? std::sqrt(changed / all) : 0;
}

}  // namespace quernel
