// Packs constant operands of contractions in the order in which kernels read them.
#pragma once

#include <span>

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

// Offsets in b of every grid point that it depends on, of every step of the sum and of every column, each in packed order.
struct PackedOffsets {
  std::vector<int64_t> grid, reduction, column;
};
PackedOffsets packed_offsets(const ContractionPlan& plan);

// Returns [grid axes that it depends on][panel][reduction axes][panel_n], zero-filled; `constants`: the tensors of
// plan.column_constants, a row of each behind the others. Requires a packed plan.
Tensor pack_operand(const Tensor& data, const ContractionPlan& plan,
                    const std::vector<const Tensor*>& constants = {});

// Puts the columns of each lane together in packed rows of elements of `size` bytes (columns_of_lane).
void group_columns(const ContractionPlan& plan, std::span<uint8_t> rows, int size);

}  // namespace quernel::schedule
