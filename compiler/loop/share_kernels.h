// Kernels that differ in sizes and distances only become one kernel with launch-time symbols: less code for a few
// instructions a call.
#pragma once

#include <cstdint>
#include <vector>

#include "loop/ir.h"

namespace quernel::loop {

// How a kernel is run once others share its code.
struct SharedKernel {
  int kernel = 0;                  // index among the kernels that are left
  std::vector<int64_t> arguments;  // the values of its symbols
};

// Merges kernels of one workgroup and without symbols, and leaves the others alone. Those that become one are equal
// but for index constants outside of accumulating loops and for the numbers of their steps; inside of them a distance
// in a register would take instructions at every step. They are merged if the instructions saved are more than what their arguments take.
// Requires kernels after the loop passes. Returns one entry for each of the kernels before.
std::vector<SharedKernel> share_kernels(std::vector<Kernel>& kernels);

}  // namespace quernel::loop
