// Constants that the epilogue of a contraction reads, one word per column of the result.
#pragma once

#include "schedule/schedule.h"

namespace quernel::schedule {

// Returns the constants of one word per column that the nodes of a contraction's group read, in the nodes' order. Leaves
// out those that are read at other indices, too. Requires group.contraction.
std::vector<ColumnConstant> column_constants(const Graph& graph, const Group& group);

}  // namespace quernel::schedule
