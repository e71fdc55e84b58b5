// What the present machine does at most, measured by kernels from the compiler's own code generation: the
// roofs of a roofline.
#pragma once

#include <cstdint>
#include <string>

#include "support/expected.h"
#include "targets/target.h"

namespace quernel::tools {

// Of all threads together, per second; best of several runs.
struct MachinePeaks {
  double flops = 0;       // f32 multiply-adds in registers, two each
  double byte_ops = 0;    // int8 dot products with i32 accumulators in registers: two for each product
  double near_bytes = 0;  // reads of data in each core's L2
  double far_bytes = 0;   // reads of `far_footprint` bytes, one after another
};

constexpr uint64_t kLargestFootprint = 128 << 20;

// `far_footprint` is cut to kLargestFootprint, and is at least what the near caches hold. Takes a few tenths
// of a second; writes to `scratch_dir`.
Expected<MachinePeaks> measure_peaks(const Target& target, int threads, uint64_t far_footprint,
                                     const std::string& scratch_dir);

}  // namespace quernel::tools
