// The loop passes, in the order the pipeline runs them; each rewrites one kernel and keeps what it computes.
#pragma once

#include "loop/ir.h"

namespace quernel::loop {

// Folds constants, merges affine index arithmetic, drops branches and loops that never or always run (extent
// 0 or 1).
void simplify(Kernel& kernel);
// kVector loops become vector expressions: `for v in vector(16): o[16*i+v] = x[16*i+v]` ->
// `o[ramp(16*i,1,16)] = x[ramp(...)]`; conditions that depend on the lane become predicates.
void vectorize_loops(Kernel& kernel);
// kUnrolled loops become copies of their body.
void unroll_loops(Kernel& kernel);

}  // namespace quernel::loop
