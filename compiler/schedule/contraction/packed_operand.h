// Constant operands of contractions, packed a part of the panels at a time.
#pragma once

#include "schedule/contraction/contraction_plan.h"
#include "schedule/packed_constant.h"

namespace quernel::schedule {

// Returns what pack_operand makes of `data`, with the tensors of plan.column_constants, as a constant that is made
// when it is written. `order`: what tells its order from others of the same data. Requires a packed plan.
PackedConstant packed_operand(const Tensor& data, const ContractionPlan& plan,
                              const std::vector<const Tensor*>& constants, const std::string& order);

}  // namespace quernel::schedule
