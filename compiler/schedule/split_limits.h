// Limits per target for the passes that split long lines, scatters, reductions and contractions: beyond them,
// one workgroup would have too much work.
#pragma once

#include "graph/passes/passes.h"
#include "targets/target.h"

namespace quernel::schedule {

// For scans, ArgMax and sorts. A CPU's workgroups may have any length; its lines become blocks if there are
// too few for its threads. A GPU runs other workgroups meanwhile. Some GPU drivers silently end the loops of
// an invocation after 65,535 iterations in all.
LongLines line_limits(const Target& target);
// An invocation of a GPU reads all updates of its places; a CPU's threads share parts.
LongScatters scatter_limits(const Target& target);
// A part takes a CPU tens of microseconds.
ReductionLimits reduction_limits(const Target& target);
// Sums of up to 16,384 products keep their order.
ContractionLimits contraction_limits(const Target& target);

}  // namespace quernel::schedule
