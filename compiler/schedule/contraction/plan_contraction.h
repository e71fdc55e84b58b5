// Plans a contraction: which axis runs in vectors, which in rows, and in what register tile.
#pragma once

#include "schedule/contraction/contraction_plan.h"
#include "schedule/contraction/operand_access.h"
#include "targets/target.h"

namespace quernel::schedule {

struct PlanOptions {
  bool may_copy = false;  // an operand may be copied first; else vector_axis is -1 where one would have to be
  int panel_v = 0;  // the width of panels that the tile has to fit; 0: panels become as wide as the tile
};
// `a` and `b`: the strides of the first and second operand.
ContractionPlan plan_contraction(const Contraction& contraction, const OperandStrides& a,
                                 const OperandStrides& b, const Target& target,
                                 const PlanOptions& options = {});

// Products that a step of a sum takes at a time, where operands of these dtypes lie in words of 32 bits.
int dot_width(DType a, DType b, DType accumulator, const Target& target);

}  // namespace quernel::schedule
