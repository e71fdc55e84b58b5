// Limits of one kernel.
#pragma once

#include <cstddef>

namespace quernel::schedule {

// Values that a GPU's kernel reads and writes: the number of descriptors of the runtime's Vulkan device.
constexpr size_t kMostBindingsOfGpu = 64;

// Nodes of a group: keeps kernels small enough to compile quickly.
constexpr size_t kMostGroupNodes = 48;

// Evaluating a value that much more often, where it is read, is better than storing it.
constexpr double kMostRepeats = 1.25;

// Operands of a cat that one kernel copies. A code generator's time grows with the square of a kernel's
// bindings, whose pointers its entry block loads.
constexpr size_t kMostCatOperands = 32;

}  // namespace quernel::schedule
