// Random kernels with the shapes lowering writes: grids, nested loops of all axis kinds, guards, Lets,
// accumulators. Iterations of vector loops touch disjoint elements, and no access leaves its buffer.
#pragma once

#include <cstdint>

#include "loop/ir.h"

namespace quernel::loop {

Kernel random_kernel(uint32_t seed);

}  // namespace quernel::loop
