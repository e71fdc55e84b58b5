// Several independent graphs side by side in one, so that many are compiled at the price of few.
#pragma once

#include <string>

#include "graph/ir.h"

namespace quernel::testing {

// Appends the nodes, inputs and outputs of `graph`; their names get the prefix. Symbols of one name become
// one symbol, whose facts must be equal.
void join(Graph& into, const Graph& graph, const std::string& prefix);

}  // namespace quernel::testing
