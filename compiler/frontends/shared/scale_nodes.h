// Nodes between real numbers and integers of one scale, as an import meets them.
#pragma once

#include <vector>

#include "graph/io_types.h"

namespace quernel {

struct FoundScaleNode {
  ValueId real = kNoValue, integers = kNoValue;
  bool makes_integers = false;
  IntegerScale scale;
};

// Adds those next to inputs and outputs of the graph. Values have still the numbers that they had in the import.
void add_scale_nodes(const std::vector<FoundScaleNode>& found, const Graph& graph, IoScales& scales);

}  // namespace quernel
