// Results that a kernel may write over an operand while it still reads later parts of it.
#pragma once

#include <cstdint>
#include <optional>

#include "schedule/schedule.h"

namespace quernel::schedule {

// Returns the least number of bytes by which the buffer of `result` must begin before that of `operand`, so that
// no step of the kernel's outermost loop writes what this step or a later one reads; nullopt: they must be apart.
// Requires a target whose kernels run in one thread, workgroups in order; storage and tilings must be final.
//   a depthwise 3x3 convolution of rows of 448 bytes to rows of 320: 320
std::optional<int64_t> overlap_lead(const Schedule& schedule, const Group& group, ValueId result,
                                    ValueId operand, const Target& target);

}  // namespace quernel::schedule
