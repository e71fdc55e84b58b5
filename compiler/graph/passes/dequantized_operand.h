// Values that elementwise nodes compute from quantised ones, as frontends write them.
#pragma once

#include <optional>

#include "graph/ir.h"

namespace quernel {

// (x - zero) * scale: constants of x's rank, with dims of 1 where they repeat, or scalars.
struct Dequantized {
  ValueId x = kNoValue;
  std::optional<Tensor> zero;  // i32
  Tensor scale;                // f32
};
// Returns what `v` is computed from, if it is one of these, x being of 8 or 4 bits:
//   mul(cast(sub(cast x, zero)), scale), or mul(cast x, scale)
std::optional<Dequantized> find_dequantized(const Graph& graph, ValueId v);

}  // namespace quernel
