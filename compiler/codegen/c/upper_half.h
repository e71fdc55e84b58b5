// Upper halves of products of 32-bit integers, of which requantization is made.
#pragma once

#include <optional>

#include "loop/ir.h"

namespace quernel::codegen {

// Factors as i32, and the shift behind the upper half of their product.
struct UpperHalf {
  loop::Expr a, b;
  int64_t shift;
};

// Returns nullopt if the cast `e` is something else. The factors may be new nodes.
std::optional<UpperHalf> upper_half(const loop::ExprNode& e);

}  // namespace quernel::codegen
