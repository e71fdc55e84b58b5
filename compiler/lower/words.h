// Operands of dot products: words of 32 bits that hold four neighbouring bytes, one byte, or two neighbours
// of bf16.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// Whether the target has a dot product for bytes of these buffers' signs.
bool multiplies_bytes(const loop::Buffer& a, const loop::Buffer& b, const Target& target);
// An element of `buffer`, widened to i32, as a word of bytes of that sign.
loop::Expr word_of_byte(const loop::Buffer& buffer, const loop::Expr& value);
// As many neighbours of a row of `a` as the plan's words hold, or the `count` that are left of them, shifted
// as the plan says.
loop::Expr word_of_neighbours(const loop::Buffer& a, const loop::Expr& place, int64_t count,
                              const schedule::ContractionPlan& plan);

}  // namespace quernel::lower
