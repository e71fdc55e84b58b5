// Counts what one workgroup of a kernel does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loop/ir.h"

namespace quernel {

struct KernelSteps {
  double turns =
      0;  // of the loops of one invocation, nested ones multiplied: a driver may count them together
  std::string unknown;  // an extent that depends on loaded values
};

// Of a kernel after the loop passes. `symbols`: the values of its launch-time symbols. Both sides of a branch
// count, unless loop variables and symbols decide it; the workgroup is the first one.
KernelSteps count_steps(const loop::Kernel& kernel, const std::vector<int64_t>& symbols);

}  // namespace quernel
