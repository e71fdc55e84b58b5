// What the accumulators of a contraction can begin with.
#pragma once

#include "schedule/schedule.h"

namespace quernel::schedule {

// Returns the node of a contraction's group that adds constant integers to the sums, such as a bias, if it is the
// only reader of the sums; -1 if there is none, if a tile has rows or columns past the end, or if lanes are added to
// scalar sums.
int first_addend(const Graph& graph, const Group& group);

}  // namespace quernel::schedule
