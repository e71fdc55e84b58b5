// Limits of one kernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quernel::schedule {

// Values that a GPU's kernel reads and writes: the number of descriptors of the runtime's Vulkan device.
constexpr size_t kMostBindingsOfGpu = 64;

// How far ahead of what they read kernels ask for lines of memory that they read once. Hardware prefetchers stop at the end
// of a page: a C program that read 80 MB as a product of one row does went from 9.7 to 12.6, 19, 24 and 23 GB/s with lines
// asked for 1, 2, 4 and 8 KB ahead (one thread of an Emerald Rapids; 26 to 28 where 40 MB stayed in L3).
constexpr int64_t kPrefetchBytes = 4096;
constexpr int64_t kPrefetchedLine = 64;  // bytes that one prefetch brings

// Nodes of a group: keeps kernels small enough to compile quickly.
constexpr size_t kMostGroupNodes = 48;

// Evaluating a value that much more often, where it is read, is better than storing it.
constexpr double kMostRepeats = 1.25;

// Operands of a cat that one kernel copies. A code generator's time grows with the square of a kernel's
// bindings, whose pointers its entry block loads.
constexpr size_t kMostCatOperands = 32;

}  // namespace quernel::schedule
