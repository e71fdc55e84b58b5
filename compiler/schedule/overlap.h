// Results that a kernel may write over an operand while it still reads later parts of it.
#pragma once

#include <cstdint>
#include <optional>

#include "schedule/schedule.h"

namespace quernel::schedule {

// How far apart the buffers of a result and an operand begin at least, in bytes, so that no step of the kernel's
// outermost loop writes what this step or a later one reads.
struct Overlap {
  int64_t before = 0;  // the result begins first
  int64_t after = 0;   // the operand begins first; ContractionPlan::backwards must be set
};

// Returns how the result may overlap the operand; nullopt: they must be apart. Requires a target whose kernels run in
// one thread, workgroups in order; storage and tilings must be final.
//   a depthwise 3x3 convolution of 27 rows of 448 bytes to 25 of 320: before 320, after 4416
std::optional<Overlap> find_overlap(const Schedule& schedule, const Group& group, ValueId result,
                                    ValueId operand, const Target& target);

}  // namespace quernel::schedule
