// Which lines, scatters, reductions and contractions are too long for one workgroup: the limits of the passes
// that split them, for each target.
#pragma once

#include "graph/passes/passes.h"
#include "targets/target.h"

namespace quernel::schedule {

// Scans, ArgMax and sorts. A processor's workgroups may be as long as they like; lines become blocks where
// there are too few for its threads. A GPU runs other workgroups meanwhile, and some drivers end the loops of
// an invocation, all together, after 65,535 turns without a word.
LongLines line_limits(const Target& target);
// An invocation of a GPU walks all updates of its places; threads of a processor share parts.
LongScatters scatter_limits(const Target& target);
// A part takes a processor tens of microseconds.
ReductionLimits reduction_limits(const Target& target);
// Sums of up to 16,384 products keep their order.
ContractionLimits contraction_limits(const Target& target);

}  // namespace quernel::schedule
