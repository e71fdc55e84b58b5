// What is known of operands at compile time, as the passes see them: a constant, or the expand of a constant,
// which stays an expand so that broadcast data costs nothing. The tensor has the value's rank, and dims of 1
// where it repeats along a dim.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "graph/build.h"

namespace quernel {

// The constant behind `v`, not expanded; nullopt when `v` is not known at compile time.
std::optional<Tensor> constant_operand(const Graph& graph, ValueId v);
// An operand of `node` that is known, and the other one. `commutes`: it may be the first one.
std::optional<std::pair<ValueId, Tensor>> with_constant(const Graph& graph, const Node& node, bool commutes);
// The one element, as a scalar, that a known value consists of; nullopt when unknown, empty or not uniform.
std::optional<Tensor> uniform_operand(const Graph& graph, ValueId v);
bool all_elements_equal(const Tensor& tensor);
// Whether no element can be below zero, or zero with a sign; it may be a NaN.
bool known_non_negative(const Graph& graph, ValueId v);

// A node computed by the interpreter on constants. Elementwise operands broadcast against each other.
Expected<Tensor> evaluate_node(OpKind op, const std::vector<Tensor>& operands,
                               const Attributes& attributes = {});
// The tensor as a constant in the graph, followed by an expand where the shape is larger.
ValueId add_constant(GraphBuilder& build, Tensor tensor, const Shape& shape);

}  // namespace quernel
