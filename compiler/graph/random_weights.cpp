#include "graph/random_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>

#include "graph/control.h"
#include "schemas/bundle_hash.h"

namespace quernel {
namespace {

constexpr int64_t kBlock = 8;      // along each of the first two axes
constexpr size_t kFewValues = 64;  // of a mask, or of a table that is made of them
constexpr int kLevels = 127;       // of the random numbers in one direction: short ones compress better

bool is_wide_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 || dtype == DType::kBF16;
}

struct Statistics {
  double mean = 0, deviation = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
};

// Nothing where the constant has to stay.
std::optional<Statistics> statistics_of(const Tensor& tensor) {
  Statistics s;
  double sum = 0, squares = 0;
  std::unordered_set<double> values;
  int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i) {
    double value = element_as_f64(tensor, i);
    if (!std::isfinite(value)) return std::nullopt;
    if (values.size() <= kFewValues) values.insert(value);
    s.min = std::min(s.min, value);
    s.max = std::max(s.max, value);
    sum += value;
    squares += value * value;
  }
  if (values.size() <= kFewValues) return std::nullopt;
  s.mean = sum / static_cast<double>(count);
  s.deviation = std::sqrt(std::max(0.0, squares / static_cast<double>(count) - s.mean * s.mean));
  return s;
}

// A random 64-bit word for each index: the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", 2014).
uint64_t random_word(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

Tensor randomized(const Tensor& tensor, const Statistics& s, uint64_t seed) {
  std::vector<int64_t> dims = tensor.dims;
  dims.resize(std::max<size_t>(dims.size(), 2), 1);
  int64_t inner = 1;
  for (size_t d = 2; d < dims.size(); ++d) inner *= dims[d];
  std::vector<uint8_t> bytes(tensor.bytes.size());
  double root = std::sqrt(3.0) * s.deviation;  // uniform numbers in -1..1 have a variance of 1/3
  int64_t index = 0;
  for (int64_t i = 0; i < dims[0]; ++i)
    for (int64_t j = 0; j < dims[1]; ++j) {
      auto block = static_cast<uint64_t>(i / kBlock * ((dims[1] + kBlock - 1) / kBlock) + j / kBlock);
      double sign = random_word(~seed, block) & 1 ? -1 : 1;
      for (int64_t k = 0; k < inner; ++k, ++index) {
        auto within = static_cast<uint64_t>((i % kBlock * kBlock + j % kBlock) * inner + k);
        auto level = static_cast<int>(random_word(seed, within) % (2 * kLevels + 1)) - kLevels;
        double value = s.mean + root * sign * level / kLevels;
        store_f64(tensor.dtype, bytes.data(), index, std::clamp(value, s.min, s.max));
      }
    }
  return {tensor.dtype, tensor.dims, Bytes::own(std::move(bytes))};
}

}  // namespace

void randomize_weights(Graph& graph, uint64_t seed) {
  for (Node& node : graph.nodes) {
    if (is_control(node.op)) {
      auto control = std::make_shared<Control>(*node.attributes.control);
      for (Graph& body : control->bodies) randomize_weights(body, seed);
      node.attributes.control = std::move(control);
    }
    if (node.op != OpKind::k_constant) continue;
    Tensor& tensor = node.attributes.tensor;
    if (!is_wide_float(tensor.dtype) || tensor.count() < kRandomWeights) continue;
    if (std::optional<Statistics> s = statistics_of(tensor))
      tensor = randomized(tensor, *s, seed ^ qnl_hash(tensor.bytes.data(), tensor.bytes.size()));
  }
}

}  // namespace quernel
