// Checks that a kernel is well formed: types and lanes of every node, variables and buffers declared before
// use and named once, constant indices within their buffers, constant extents where the axis kind needs them,
// access rights.
#pragma once

#include "loop/ir.h"
#include "support/expected.h"

namespace quernel::loop {

// Returns all violations found (at most 20), as internal diagnostics that name the kernel and quote the
// expression.
Status verify(const Kernel& kernel);

}  // namespace quernel::loop
