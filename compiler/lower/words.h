// Operands of dot products: 32-bit words of four neighbouring 8-bit elements, of one such element, or of two
// neighbouring bf16.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// Returns an element of `buffer`, widened to i32, as a word of that signedness.
loop::Expr word_of_byte(const loop::Buffer& buffer, const loop::Expr& value);
// Returns a word of `count` neighbours in a row of `a`: as many as the plan's words hold, or the remaining
// ones, with zeros or the plan's slack after them. They are shifted as the plan says.
loop::Expr word_of_neighbours(const loop::Buffer& a, const loop::Expr& place, int64_t count,
                              const schedule::ContractionPlan& plan);

}  // namespace quernel::lower
