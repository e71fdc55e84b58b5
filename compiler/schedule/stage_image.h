// Depthwise convolutions whose image is put together in scratch: which are, and how their windows slide.
#pragma once

#include <optional>
#include <vector>

#include "schedule/schedule.h"

namespace quernel::schedule {

constexpr int kMostTileRows = 14;  // of a register tile

// Operand `a`, which windows slide over by themselves along `vector`, as an image put together in scratch.
// `rows`: the output axes that the other operand does not have, in any order.
std::optional<ContractionPlan::Image> stage_image(const std::vector<ContractionPlan::Axis>& axes, int vector,
                                                  const std::vector<int>& rows, const OperandStrides& a,
                                                  const Target& target);

}  // namespace quernel::schedule
