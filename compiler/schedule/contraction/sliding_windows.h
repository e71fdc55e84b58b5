// Convolutions whose windows reach beyond the image, or skip elements: how windows slide, which images need
// an im2row buffer, and which are read in place.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/passes.h"
#include "schedule/contraction/contraction_plan.h"
#include "schedule/contraction/operand_access.h"

namespace quernel::schedule {

constexpr int kMostTileRows = 14;  // of a register tile

// Returns the images that may be gathered in an im2row buffer on that target; none if windows move by at most
// one element.
StagedImages staged_images(const Target& target);

// Returns the im2row buffer for operand `image`, over which windows slide along `vector`. `rows`: the output
// axes that may run along its rows, in any order. `at_once`: the least number of result rows computed from
// it.
std::optional<ContractionPlan::Image> stage_image(const std::vector<ContractionPlan::Axis>& axes, int vector,
                                                  const std::vector<int>& rows, const OperandStrides& image,
                                                  int at_once, const Target& target);

// Returns how windows slide over elementwise operand `a` along some of the output axes `rows`, if a kernel
// reads it in place. Windows may reach beyond the image; only elements inside are summed. Returns nothing if
// the operand has guards that no window explains, or if windows reach further than a kernel distinguishes.
std::optional<std::vector<Slide>> slides_in_place(const std::vector<ContractionPlan::Axis>& axes,
                                                  const std::vector<int>& rows, const OperandStrides& a,
                                                  const Target& target);

}  // namespace quernel::schedule
