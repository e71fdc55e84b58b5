// Limits of one kernel.
#pragma once

#include <cstddef>

namespace quernel::schedule {

// Values that a GPU's kernel reads and writes, as the runtime's Vulkan device has descriptors for.
constexpr size_t kMostBindingsOfGpu = 64;

// Operands of a cat that one kernel copies. A code generator's time grows with the square of what a kernel
// binds, pointers that its entry block loads.
constexpr size_t kMostCatOperands = 32;

}  // namespace quernel::schedule
