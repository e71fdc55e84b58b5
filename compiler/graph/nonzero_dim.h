// Dims that may be 0, where it matters that they are not: an index along a dim exists only where the dim has
// elements.
#pragma once

#include <vector>

#include "graph/dim.h"

namespace quernel {

// The same dim with what follows from its not being 0: every factor is at least 1. What it is used for must
// mean nothing where the dim is 0.
Dim nonzero(const Dim& dim);
// The dim with the facts of its symbols as they are declared, which `nonzero` may have changed.
Dim as_declared(const Dim& dim, const std::vector<Symbol>& symbols);
// The dim as a divisor: 1 in place of 0.
Dim as_divisor(const Dim& dim, const std::vector<Symbol>& symbols);

}  // namespace quernel
