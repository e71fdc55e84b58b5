// Packs quantised constant operands of contractions in the order in which kernels read them.
#pragma once

#include <string>
#include <vector>

#include "graph/quantized.h"
#include "schedule/contraction/contraction_plan.h"
#include "schedule/packed_constant.h"

namespace quernel::schedule {

// Returns the operand as constants that are made when they are written (ContractionPlan::Blocks): elements, u32 [grid
// axes][panel][words of the sum][panel_n]; scales [grid axes][panel][block][panel_n]; and zero points, minus
// QuantizedOperand::middle, where there are any. What is beyond the columns, or beyond the steps, is zero. `order`: what
// tells their order from others of the same data. Requires a packed plan with blocks.
std::vector<PackedConstant> pack_blocks(const QuantizedConstant& data, const ContractionPlan& plan,
                                        const std::string& order);

}  // namespace quernel::schedule
