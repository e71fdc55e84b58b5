// Packs constant operands of contractions in the order in which kernels read them.
#pragma once

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

// Returns [grid axes that it depends on][panel][reduction axes][panel_n], zero-filled; `constants`: the tensors of
// plan.column_constants, a row of each behind the others. Requires a packed plan.
Tensor pack_operand(const Tensor& data, const ContractionPlan& plan,
                    const std::vector<const Tensor*>& constants = {});

}  // namespace quernel::schedule
