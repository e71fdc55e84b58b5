// Plans a contraction: the vector axis, the row axes and the register tile.
#pragma once

#include "schedule/contraction/contraction_plan.h"
#include "schedule/contraction/operand_access.h"
#include "targets/target.h"

namespace quernel::schedule {

struct PlanOptions {
  // An operand may be copied first. If false, vector_axis is -1 where a copy would be needed.
  bool may_copy = false;
  // The panel width that the tile must fit, in vectors; 0: panels become as wide as the tile.
  int panel_v = 0;
};
// `a` and `b`: the strides of the first and second operand.
ContractionPlan plan_contraction(const Contraction& contraction, const OperandStrides& a,
                                 const OperandStrides& b, const Target& target,
                                 const PlanOptions& options = {});

// Returns how many int8 dot products, of elements of `bits` bits in unsigned bytes by signed bytes, the target adds in the
// 16-bit halves of a word, which cannot overflow. 0: whole words are accumulators, or the halves are too short.
int64_t words_in_halves(const Target& target, int bits);
// Returns whether the target multiplies words of quantised constants of `bits` bits by rows of bytes as integers.
bool multiplies_bytes(const Target& target, int bits);
// Returns what bytes of such words are above the elements of the constant by, for dot products that take them as unsigned; 0:
// they are signed (ContractionPlan::Blocks::signed_elements).
int64_t middle_of_bytes(const Target& target, int bits);

// Returns the number of products that one step of a sum takes, if operands of these dtypes are in 32-bit
// words.
int dot_width(DType a, DType b, DType accumulator, const Target& target);

}  // namespace quernel::schedule
