#include "schedule/selection.h"

#include <bit>

namespace quernel::schedule {

int64_t selection_slots(int64_t kept) {
  return (int64_t{1} << std::bit_width(static_cast<uint64_t>(kept))) - 1;
}

int selection_words(const Graph& graph, const Node& argsort) {
  const TensorType& x = graph.type(argsort.inputs[0]);
  bool is_short = element_size(x.dtype) <= 4;
  return is_short && always_le(x.shape[static_cast<size_t>(argsort.attributes.ints[0])], INT32_MAX) ? 1 : 2;
}

bool selects_first(const Graph& graph, const Node& argsort, const Target& target) {
  const TensorType& x = graph.type(argsort.inputs[0]);
  bool has_key = is_float(x.dtype) ? x.dtype == DType::kF64 || x.dtype == DType::kF32 ||
                                         x.dtype == DType::kF16 || x.dtype == DType::kBF16
                                   : !is_packed(x.dtype);
  const Dim& count = x.shape[static_cast<size_t>(argsort.attributes.ints[0])];
  const Dim& kept = argsort.attributes.shape[0];
  if (!has_key || !kept.is_const() || kept.value() <= 0) return false;
  if (!target.memory_is_dear()) return !count.is_const() || kept.value() <= count.value();
  return selection_words(graph, argsort) == 1 && count.is_const() && kept.value() <= count.value() / 2;
}

}  // namespace quernel::schedule
