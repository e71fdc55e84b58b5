// The weights of Winograd's algorithm.
#pragma once

#include "graph/ir.h"
#include "schedule/winograd/winograd_plan.h"

namespace quernel::schedule {

// Returns the transformed weights, [panel][point][channel][panel_n], zero-filled. `b`: strides of the
// weights.
Tensor winograd_weights(const Tensor& data, const WinogradPlan& plan, const OperandStrides& b);

}  // namespace quernel::schedule
