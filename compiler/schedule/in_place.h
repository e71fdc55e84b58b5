// Writing in place: which groups may write a result over an operand.
#pragma once

#include "schedule/schedule.h"

namespace quernel::schedule {

// Whether the group may write `result` over `operand`. Requires equal strides; the group reads each element
// just before it writes that very element, or it is a scatter into the operand.
bool may_write_over(const Schedule& schedule, const Group& group, ValueId operand, ValueId result);

}  // namespace quernel::schedule
