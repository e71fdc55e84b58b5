// Passes over the graph that know the target: which nodes run where, and how contractions get their operands.
// The pipeline runs them among the other passes (pipeline/pass_tables.cpp).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "graph/place_rule.h"
#include "schedule/choices.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::schedule {

// For a GPU with a companion CPU: moves the nodes that run on the CPU into bodies of on_companion nodes. The
// last rule that names a node decides. Nodes without a rule are divided by a minimum cut of estimated times.
// Invalid if a rule moves a node to the CPU that only the GPU can run.
Expected<Graph> place_nodes(const Graph& graph, const Target& target, const std::vector<PlaceRule>& rules);
// Returns whether the rule's pattern matches the name of a node.
bool names_a_node(const PlaceRule& rule, const Graph& graph);

// Marks the convolutions that Winograd's algorithm computes, by estimate or as `choices` say (may be null).
// On a GPU, replaces them by its transforms with the products between them.
Expected<Graph> choose_winograd(const Graph& graph, const Target& target, Choices* choices = nullptr,
                                DType precision = DType::kF32);

// Rounds the operands of contractions to `precision`, for a target that multiplies it; accumulators stay f32.
Expected<Graph> round_operands(const Graph& graph, const Target& target, DType precision);
// Returns whether round_operands rounds this contraction's operands: it has large weights, and its sums take
// neighbours. Winograd's algorithm keeps f32, because its transforms add to rounding errors.
bool rounds_operands(const Graph& graph, const Node& node, const Target& target, DType precision);

// Products of one operand with several quantised constants that are packed alike become one product, whose result is cut apart:
// fewer kernels, which share their work better. Not where memory is dear, and no more than a GPU's binding holds.
//   contract(x, w), contract(x, v) -> y[.., 0:n], y[.., n:m] of y = contract(x, cat(w, v))
Expected<Graph> join_products(const Graph& graph, const Target& target);

// Rounds rows of activations to i8 where quantised constants are multiplied with them: a scale per row and block of the
// constant, the largest of the block's absolute values over 127. Only along the last dim of the activations.
//   contract(x, dequantize c) -> contract(dequantize_rows(cast(round(x * 127 / most)), most / 127, sums), dequantize c)
// Sums have the factor by which the target's kernels would multiply them. `whole_rows`: a scale per row instead, and sums of
// the bytes of each block, as integers. `report`, if given, is added to.
struct RoundedActivations {
  std::set<int> bits;             // of the constants whose products have rounded activations
  std::vector<std::string> left;  // names of products with quantised constants that keep theirs
};
Expected<Graph> quantize_activations(const Graph& graph, const Target& target, bool whole_rows = false,
                                     RoundedActivations* report = nullptr);
// Returns what people should know about it.
std::vector<std::string> about_activations(const RoundedActivations& report, const Target& target);

// Splits rows of f32 that meet quantised constants into three bytes, where the target multiplies words of the constant by
// bytes and few rows are multiplied, as a language model does for a token. An element is rounded to 1 / 16,000,000 of
// the largest magnitude of its block of the constant; f32 would round each sum to such a share of itself. Blocks that are
// not finite give NaN.
//   contract(x, dequantize c) -> contract(dequantize_rows(high, middle, low, scales, sums), dequantize c)
// Constants of fewer elements than `least_weights` are multiplied sooner than rows are split, and so are more than
// most_rows_of_digits() rows.
Expected<Graph> split_activations(const Graph& graph, const Target& target,
                                  int64_t least_weights = int64_t{1} << 16);
// Returns how many rows split_activations splits at most, by a constant of `bits` bits; 0: the target does not multiply it
// by bytes.
int64_t most_rows_of_digits(const Target& target, int bits);

// Copies operands that a contraction kernel cannot read in place: non-affine accesses, guarded ones without
// an im2row buffer, vector operands that are not contiguous along the vector axis.
//   contract(q, k) -> contract(q, contiguous(permute(k)))
Expected<Graph> materialize_operands(const Graph& graph, const Target& target);

}  // namespace quernel::schedule
