// How often the loops of one invocation run: some drivers of GPUs end them after so many iterations.
#pragma once

#include <vector>

#include "graph/dim.h"
#include "loop/ir.h"

namespace quernel::lower {

// Returns an upper bound of the iterations of all loops of one invocation, nested ones multiplied. Requires a
// kernel after the loop passes. `symbols`: what its launch-time symbols are. Extents that are loaded from
// memory do not count; no kernel has such a loop without another bound.
Dim count_iterations(const loop::Kernel& kernel, const std::vector<Dim>& symbols);

}  // namespace quernel::lower
