// Writing in place: which groups may write a result over an operand.
#pragma once

#include "schedule/schedule.h"

namespace quernel::schedule {

// Returns whether the group may write `result` over `operand`. Their strides must be equal. Either the group
// reads each element just before it writes that element, or it is a scatter into the operand.
bool may_write_over(const Schedule& schedule, const Group& group, ValueId operand, ValueId result);

}  // namespace quernel::schedule
