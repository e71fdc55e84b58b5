// The weights of Winograd's algorithm.
#pragma once

#include "graph/ir.h"
#include "schedule/packed_constant.h"
#include "schedule/winograd/winograd_plan.h"

namespace quernel::schedule {

// Returns the transformed weights, [panel][point][channel][panel_n], zero-filled. `b`: strides of the
// weights.
Tensor winograd_weights(const Tensor& data, const WinogradPlan& plan, const OperandStrides& b);

// Returns the same as a constant that is made when it is written. `order`: what tells it from others of the same data.
PackedConstant packed_winograd_weights(const Tensor& data, const WinogradPlan& plan, const OperandStrides& b,
                                       const std::string& order);

}  // namespace quernel::schedule
