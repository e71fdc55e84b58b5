// Refuses what this code generator cannot translate, before any LLVM code sees it: after a pass of
// check_kernel, emission cannot fail.
#pragma once

#include "loop/ir.h"
#include "support/expected.h"

namespace quernel::codegen {

Status check_kernel(const loop::Kernel& kernel);

}  // namespace quernel::codegen
