// The loop passes. Each rewrites one kernel and preserves what it computes. pipeline/pass_tables.cpp has
// their order.
#pragma once

#include "loop/ir.h"

namespace quernel::loop {

// Folds constants, merges affine index arithmetic, and removes branches and loops that never or always run
// (extent 0 or 1).
void simplify(Kernel& kernel);
// Turns kVector loops into vector expressions: `for v in vector(16): o[16*i+v] = x[16*i+v]` ->
// `o[ramp(16*i,1,16)] = x[ramp(...)]`. Conditions that depend on the lane become predicates.
void vectorize_loops(Kernel& kernel);
// Turns kUnrolled loops into copies of their body.
void unroll_loops(Kernel& kernel);

}  // namespace quernel::loop
