// Turning inputs into states: variables that a graph keeps from run to run (Graph::State).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace quernel {

// The input that begins a run with the state's value and the output that ends it with the next one. One '*'
// in `input` stands for any text, and one in `output` for the same.
struct StatePair {
  std::string input, output;
};

// Makes states of the pairs; `initial`: values before the first run, by input, of those that do not begin as
// zeros. Errors: names that are not found, pairs of different types, types with free dims, initial values of
// another type.
Status make_states(Graph& graph, const std::vector<StatePair>& pairs,
                   const std::map<std::string, Tensor>& initial);

// Stores states of f32 in `dtype`, kF16 or kBF16, each element rounded to nearest when it is written: an error of at most
// 2^-12 of its magnitude in f16, where it is normal and does not overflow, 2^-9 in bf16. Arithmetic stays f32. Elements
// that a run does not write keep their bits.
Expected<Graph> narrow_states(const Graph& graph, DType dtype);

}  // namespace quernel
