// Constants of 4 or 8 bits with scales and zero points: dequantize nodes of constants.
#pragma once

#include <optional>
#include <vector>

#include "graph/build.h"

namespace quernel {

// A constant of floats whose element i is (elements[i] - zeros[i / groups]) * scales[i / groups]. The pointers are into the
// graph.
struct QuantizedConstant {
  const Tensor *elements = nullptr, *scales = nullptr;
  const Tensor* zeros = nullptr;  // null: 0
  const std::vector<int64_t>* groups = nullptr;
};
// Returns nullopt if `v` is not a dequantize node of constants.
std::optional<QuantizedConstant> quantized_constant(const Graph& graph, ValueId v);

// Returns whether `v` is a constant, or a quantised one.
bool is_constant_operand(const Graph& graph, ValueId v);

// Returns whether operand `operand` of the node can be weights that its kernel widens: the node adds up products in f32, of
// matrices, or along windows for columns of the result that only the weights have (depthwise filters have none).
bool reads_weights(const Node& node, size_t operand);

// Returns the value of a dequantize node in other core ops. `zeros`: kNoValue for none.
//   dequantize x, s, z {g} -> mul(sub(cast x, repeat z), repeat s)
ValueId dequantized(GraphBuilder& build, ValueId x, ValueId scales, ValueId zeros,
                    const std::vector<int64_t>& groups);

}  // namespace quernel
