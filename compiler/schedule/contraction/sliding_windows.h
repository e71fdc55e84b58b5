// Convolutions whose windows reach beyond the image, or step over its elements: how they slide, which images
// are put together in scratch, and which are read as they lie.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/passes.h"
#include "schedule/contraction/contraction_plan.h"
#include "schedule/contraction/operand_access.h"

namespace quernel::schedule {

constexpr int kMostTileRows = 14;  // of a register tile

// What images may be put together in scratch on that target; none where windows move on by one at most.
StagedImages staged_images(const Target& target);

// Operand `image`, which windows slide over along `vector`, as it is put together in scratch. `rows`: the
// output axes that may walk its rows, in any order. `at_once`: rows of results that are computed from it, at
// least.
std::optional<ContractionPlan::Image> stage_image(const std::vector<ContractionPlan::Axis>& axes, int vector,
                                                  const std::vector<int>& rows, const OperandStrides& image,
                                                  int at_once, const Target& target);

// How windows slide over elementwise operand `a` along some of the output axes `rows`, where a kernel reads
// it as it lies: they may reach beyond the image, and only what sees elements is summed. Nothing where the
// operand has guards that no window explains, or windows reach further than a kernel tells apart.
std::optional<std::vector<Slide>> slides_in_place(const std::vector<ContractionPlan::Axis>& axes,
                                                  const std::vector<int>& rows, const OperandStrides& a,
                                                  const Target& target);

}  // namespace quernel::schedule
