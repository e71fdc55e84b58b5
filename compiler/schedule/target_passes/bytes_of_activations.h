// Products of activations with quantised constants, and rows of activations as bytes.
#pragma once

#include <optional>

#include "graph/build.h"
#include "graph/ir.h"
#include "targets/target.h"

namespace quernel::schedule {

// A product of activations, operand `operand`, whose rows, along reduction axis `axis` and their last dim, meet a quantised
// constant of `bits` bits: `group` elements of a row share scales of it.
struct QuantisedProduct {
  int operand = 0, axis = 0;
  int64_t group = 0;
  int bits = 0;
};
// Returns nullopt if the node is something else, or sums along several dims of the activations, or not along the last one.
std::optional<QuantisedProduct> quantised_product(const Graph& graph, const Node& node);
// Returns whether the node is a contraction with a quantised constant.
bool multiplies_quantised(const Graph& graph, const Node& node);

// How elements of a row become bytes: multiples of 1 / `most` of the largest magnitude of their group, which are integers of
// `count` digits of base `base`.
struct Digits {
  int count = 1;
  int64_t base = 0;
  double most = 127;
};
// Returns x as dequantize_rows gives it, with one scale for each group of a row, filled up to whole groups. `factor`: what
// sums are multiplied by, which kernels need (factor_of_sums).
ValueId bytes_of_rows(GraphBuilder& build, ValueId x, int64_t group, const Digits& digits, int64_t factor);
// The same with one scale for each row, and elements of one byte.
ValueId bytes_of_whole_rows(GraphBuilder& build, ValueId x, int64_t group, int64_t factor);
// Returns what the sums of rows that meet a constant of `bits` bits are multiplied by: minus the middle of its bytes, or 1.
int64_t factor_of_sums(const Target& target, int bits);

}  // namespace quernel::schedule
