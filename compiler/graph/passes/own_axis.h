// Axes of a contraction's result along which one operand can be split, or operands of several contractions concatenated.
#pragma once

#include <optional>

#include "graph/ir.h"

namespace quernel {

// An axis of the result that one operand has for itself: one dim of it, and one of the result, is that axis and nothing
// else, and the other operand lacks it.
struct OwnAxis {
  int axis = 0;
  size_t operand_dim = 0, result_dim = 0;
  bool operator==(const OwnAxis&) const = default;
};
// Returns the first such axis of operand `operand`, of an extent that is no symbol; nullopt if there is none.
std::optional<OwnAxis> find_own_axis(const Contraction& contraction, size_t operand);

}  // namespace quernel
