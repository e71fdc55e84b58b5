// Limits of one kernel.
#pragma once

#include <cstddef>

namespace quernel::schedule {

// Values that a GPU's kernel reads and writes: the number of descriptors of the runtime's Vulkan device.
constexpr size_t kMostBindingsOfGpu = 64;

// Operands of a cat that one kernel copies. A code generator's time grows with the square of a kernel's
// bindings, whose pointers its entry block loads.
constexpr size_t kMostCatOperands = 32;

}  // namespace quernel::schedule
