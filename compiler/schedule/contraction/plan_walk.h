// Chooses how a contraction's kernel walks over its tiles.
#pragma once

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

// The dtypes of a contraction's stored operands, in the plan's roles, and of its accumulators.
struct ContractionDTypes {
  DType a = DType::kF32, b = DType::kF32, accumulator = DType::kF32;
};
// Returns the walk of a kernel over all tiles.
TileWalk plan_walk(const ContractionPlan& plan, const ContractionDTypes& dtypes, const Target& target);
// Returns the walk over a block of `rows` rows inside another kernel, which has the loops over blocks.
TileWalk plan_walk_of_block(const ContractionPlan& plan, int64_t rows, const ContractionDTypes& dtypes,
                            const Target& target);

}  // namespace quernel::schedule
