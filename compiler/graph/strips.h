// Parts of a graph in strips of rows: what lies between a value and a later, smaller one is then never whole in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/ir.h"

namespace quernel {

struct Strips {
  ValueId first = kNoValue;  // which each strip reads
  ValueId last = kNoValue;   // whose rows are computed a strip at a time
  size_t dim = 0;            // of `last`: its positions are the rows
  int64_t count = 1;         // of strips
};

// Returns the graph in which `last` is the concatenation of strips of its rows. Each strip computes everything that
// depends on `first` for its rows alone, one after the other; rows that windows of neighbouring strips share are
// computed in each of them. The function is the same to the bit. nullopt: something on the way is used elsewhere, has no
// such rows, or mixes them.
std::optional<Graph> compute_in_strips(const Graph& graph, const Strips& strips);

}  // namespace quernel
