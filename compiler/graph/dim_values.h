// Integer tensors whose elements are dims: what a model computes from shapes.
#pragma once

#include <optional>

#include "graph/ir.h"

namespace quernel {

// The elements of `v` in row-major order as expressions over symbols, where they follow from constants and
// dims by integer arithmetic and movement; nullopt otherwise, for no value, beyond 64 elements, and for
// expressions of more than 16 KiB of text.
std::optional<Shape> dim_values(const Graph& graph, ValueId v);

}  // namespace quernel
