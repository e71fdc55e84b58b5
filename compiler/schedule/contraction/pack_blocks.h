// Packs quantised constant operands of contractions in the order in which kernels read them.
#pragma once

#include <optional>

#include "graph/quantized.h"
#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

// See ContractionPlan::Blocks. What is beyond the columns, or beyond the steps, is zero.
struct PackedBlocks {
  Tensor elements;              // u32 [grid axes][panel][words of the sum][panel_n]
  Tensor scales;                // [grid axes][panel][block][panel_n]
  std::optional<Tensor> zeros;  // like scales, minus QuantizedOperand::middle
};
// Requires a packed plan with blocks.
PackedBlocks pack_blocks(const QuantizedConstant& data, const ContractionPlan& plan);

}  // namespace quernel::schedule
