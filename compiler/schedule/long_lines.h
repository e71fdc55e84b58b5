// Which lines of scans, ArgMax and sorts are too long for one workgroup.
#pragma once

#include "graph/passes/passes.h"
#include "targets/target.h"

namespace quernel::schedule {

// A processor's workgroups may be as long as they like; lines become blocks where there are too few for its
// threads. A GPU runs other workgroups meanwhile, and some drivers end the loops of an invocation, all
// together, after 65,535 turns without a word.
LongLines long_lines(const Target& target);

}  // namespace quernel::schedule
