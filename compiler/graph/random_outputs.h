// Which outputs of a graph depend on random numbers: only their types are defined.
#pragma once

#include <string>
#include <vector>

#include "graph/ir.h"

namespace quernel {

// Names of the outputs, in order; numbers that are drawn in bodies count.
std::vector<std::string> random_outputs(const Graph& graph);

}  // namespace quernel
